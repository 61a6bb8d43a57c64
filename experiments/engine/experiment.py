"""What every experiment says, whatever it trains and on what."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, ClassVar, Self, TypeVar

from experiments.engine import options

# Learning rate, seed, and seed of the initial parameters.
Run = tuple[float, int, int]
RUN_FIELDS = ('learning_rate', 'seed', 'model_init_seed')


@dataclasses.dataclass(frozen=True)
class BaseExperiment:
  """The fields that all experiments share.

  The help text of each field is its documentation.

  Attributes:
    evaluated_by: The command that tests what was trained.
    other_kinds: What else a folder may hold, by a field that this kind of
      experiment has not.
  """

  evaluated_by: ClassVar[str] = ''
  other_kinds: ClassVar[Mapping[str, str]] = {}

  chunk_size: int = options.option(
    2, 'Window width C of RegularGPT.', minimum=2, maximum=2**16
  )
  thickness: int = options.option(
    1, 'Distinct blocks K per level.', minimum=1, maximum=2**8
  )
  embedding_dim: int = options.option(64, 'Width of the model.', minimum=1)
  num_heads: int = options.option(8, 'Attention heads.', minimum=1)
  precision: str = options.option(
    'float32',
    'Type of the computation; parameters and softmax are float32 always.',
    choices=('float32', 'bfloat16'),
  )
  sequence_length: int = options.option(
    40, 'Longest training string.', minimum=1, maximum=2**24
  )
  batch_size: int = options.option(128, 'Strings per training step.', minimum=1)
  training_steps: int = options.option(1000, 'Training steps.', minimum=1)
  learning_rate: float = options.option(1e-3, 'Peak learning rate of Adam.')
  schedule: str = options.option(
    'constant',
    'Learning rate after the warm-up: kept, or lowered to 0 by a cosine.',
    choices=('constant', 'cosine'),
  )
  warmup_steps: int = options.option(0, 'Steps of linear warm-up.', minimum=0)
  seed: int = options.option(
    0, 'Seed of the data and of dropout.', minimum=0, maximum=2**32 - 1
  )
  model_init_seed: int = options.option(
    0, 'Seed of the initial parameters.', minimum=0, maximum=2**32 - 1
  )
  log_every: int = options.option(
    100,
    'Steps between two lines of metrics; 0 for one at the end.',
    minimum=0,
    may_change=True,
  )
  checkpoint_every: int = options.option(
    500,
    'Steps between two checkpoints; 0 for one at the end.',
    minimum=0,
    may_change=True,
  )

  def __post_init__(self):
    options.check(self)
    if not 1e-30 < self.learning_rate < 1e30:
      raise ValueError(
        'learning_rate must be positive and finite in float32, got'
        f' {self.learning_rate}.'
      )
    if self.warmup_steps > self.training_steps:
      raise ValueError(
        f'warmup_steps ({self.warmup_steps}) must not exceed training_steps'
        f' ({self.training_steps}); give fewer, with --warmup_steps.'
      )

  @property
  def run(self) -> Run:
    """The one run that an experiment is."""
    return self.learning_rate, self.seed, self.model_init_seed

  def runs(self, given: Sequence[Run] | None = None) -> list[Run]:
    """Returns runs that train together; by default its own alone."""
    return list(given or [self.run])

  def steps_depend_on_their_number(self) -> bool:
    """Whether a step is another where more steps are to come."""
    return self.schedule != 'constant'

  def replaced(self, **fields: Any) -> Self:
    """Returns the experiment with some fields replaced, where not None."""
    return dataclasses.replace(self, **options.given(fields))


def differences(
  found: BaseExperiment, wanted: BaseExperiment, where: str = 'here'
) -> dict[str, str]:
  """Returns in what a found experiment differs, and so its result.

  Args:
    found: As it is stored.
    wanted: As it should be.
    where: Where that stands, for the texts.

  Returns:
    By the field's name, what a message says of it, as `training_steps 1000
    (here: 100000)`.
  """
  return {
    field.name: field.metadata.get('if_other')
    or f'{field.name} {getattr(found, field.name)!r}'
    f' ({where}: {getattr(wanted, field.name)!r})'
    for field in dataclasses.fields(found)
    if not field.metadata.get('may_change')
    and getattr(found, field.name) != getattr(wanted, field.name)
  }


_Kind = TypeVar('_Kind', bound=BaseExperiment)


def of_fields(kind: type[_Kind], fields: Mapping[str, Any]) -> _Kind:
  """Returns an experiment that someone may have written.

  Args:
    kind: Its class.
    fields: As a file has them.

  Raises:
    ValueError: If a field is unknown, or has a bad value.
  """
  unknown = sorted({*fields} - {*kind.__dataclass_fields__})
  if unknown:
    raise ValueError(f'an experiment has no {unknown[0]!r}.')
  return kind(**fields)
