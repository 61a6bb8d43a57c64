"""One language model: everything its result depends on."""

from collections.abc import Iterable
import dataclasses
import functools
import types

import jax.numpy as jnp

from experiments.engine import experiment as experiment_lib
from experiments.engine import options
from regulargpt_jax import config as regular_gpt_config
from regulargpt_jax import depth, gpt_lm, language_models, model

# Of an evaluation: tokens of context, last tokens to predict after each (both
# as in Table 3), and tokens that the model reads at once. They stand here since
# `evaluation` needs the extra `text`, and --help does not.
LENGTHS = (512, 1024, 2048, 4096, 8192)
NUM_SEQUENCES = 1000
BATCH_TOKENS = 2**16

# Fields that one architecture has: which its model takes as they are, and
# others.
_FIELDS_OF = {
  'regular_gpt_lm': ('chunk_size', 'thickness'),
  'gpt_lm': ('num_layers', 'position_bias'),
}
_OTHER_FIELDS_OF = {
  'regular_gpt_lm': ('max_extra_levels', 'max_levels'),
  'gpt_lm': (),
}


_default = functools.partial(
  options.with_default, experiment_lib.BaseExperiment
)


@dataclasses.dataclass(frozen=True)
class LanguageExperiment(experiment_lib.BaseExperiment):
  """A language model, a prepared text, and how the one is trained on the other.

  The help text of each field is its documentation. The defaults are RegularGPT
  128/6 of the paper's Table 3 (Chi et al., 2023, section 5 and appendix B).
  """

  evaluated_by = 'launch.evaluate_lm'
  other_kinds = types.MappingProxyType(
    {'task': 'a model of a formal language, for launch.evaluate'}
  )

  data_dir: str = options.option(
    '', 'Folder of the text, as of launch.prepare_text.', may_change=True
  )
  tokenizer: str = options.option(
    '', 'Which tokens of the text, gpt2 or byte, where there are both.'
  )
  vocab_size: int = options.option(0, 'Of the tokenizer; found in the text.')
  fingerprint: str = options.option(
    '', "Of the text's tokens; found there.", if_other='another text'
  )
  architecture: str = options.option(
    'regular_gpt_lm',
    'Model to train.',
    choices=tuple(language_models.BUILDERS),
  )
  chunk_size: int = _default('chunk_size', 128)
  thickness: int = _default('thickness', 6)
  embedding_dim: int = _default('embedding_dim', 768)
  num_heads: int = _default('num_heads', 12)
  precision: str = _default('precision', 'bfloat16')
  sequence_length: int = _default(
    'sequence_length', 512, 'Tokens of a training string.'
  )
  batch_size: int = _default('batch_size', 32)
  training_steps: int = _default('training_steps', 50_000)
  learning_rate: float = _default('learning_rate', 6e-4)
  seed: int = _default('seed', 0, "Seed of the data's order.")
  checkpoint_every: int = _default('checkpoint_every', 1000)
  num_layers: int = options.option(
    12, 'Layers of the GPT.', minimum=1, maximum=2**8
  )
  position_bias: str = options.option(
    'alibi',
    'Position bias of the GPT.',
    choices=regular_gpt_config.POSITION_BIASES,
  )
  max_extra_levels: int = options.option(
    0,
    'In a quarter of the training steps RegularGPT repeats its last level, 1 to'
    ' this many times, drawn uniformly: so many levels more, for longer'
    ' contexts, are then read as well. 0 as in the paper.',
    minimum=0,
    maximum=16,
  )
  max_levels: int = options.option(
    0,
    'Levels that RegularGPT goes through at most, no fewer than training'
    ' strings need: with L of them it reads the last 1 + K (C^L - 1) tokens. 0'
    ' for as many as the context needs, as in the paper.',
    minimum=0,
    maximum=regular_gpt_config.MAX_LEVELS,
  )
  remat: bool = options.option(
    False,
    'Whether to compute each level or layer again in the backward pass, which'
    ' saves memory.',
    may_change=True,
  )
  accumulation_steps: int = options.option(
    1,
    'Parts of a batch that go through the model one after another, where all of'
    ' it does not fit.',
    minimum=1,
    may_change=True,
  )
  weight_decay: float = options.option(
    0.0,
    'Of matrices, decoupled from the gradient (AdamW).',
    minimum=0,
    maximum=1,
  )
  fsdp: int = options.option(
    1,
    'Devices that share one copy of the parameters and of the state of Adam;'
    ' the batch is divided among all devices.',
    minimum=1,
    may_change=True,
  )
  validate_every: int = options.option(
    1000,
    'Steps between two validation losses; 0 for one at the end.',
    minimum=0,
    may_change=True,
  )
  validation_batches: int = options.option(
    20,
    'Batches of the validation split for one, if it has so many.',
    minimum=1,
    may_change=True,
  )

  def __post_init__(self):
    super().__post_init__()
    if self.batch_size % self.accumulation_steps:
      raise ValueError(
        f'batch_size ({self.batch_size}) must be a multiple of'
        f' accumulation_steps ({self.accumulation_steps}).'
      )


# What a launcher has no flag for.
FOUND_IN_TEXT = ('vocab_size', 'fingerprint')
FLAGS = tuple(
  field.name
  for field in dataclasses.fields(LanguageExperiment)
  if field.name not in FOUND_IN_TEXT
)


def check_fields(architecture: str, given: Iterable[str]) -> None:
  """Checks that what a user gives is not of another architecture alone.

  Raises:
    ValueError: If a field is.
  """
  given = set(given)
  for other, names in _FIELDS_OF.items():
    names += _OTHER_FIELDS_OF[other]
    for name in names if other != architecture else ():
      if name in given:
        raise ValueError(f'--{name} is for --architecture={other}.')


@functools.cache
def make_model(
  experiment: LanguageExperiment,
) -> model.RegularGPT | gpt_lm.GPT:
  """Returns an experiment's model.

  Raises:
    ValueError: If a field has a bad value.
  """
  fields = {
    name: getattr(experiment, name)
    for name in _FIELDS_OF[experiment.architecture]
  }
  if experiment.architecture == 'regular_gpt_lm':
    # In training all positions are at this depth, those of few tokens too.
    needed = depth.depth(experiment.sequence_length, experiment.chunk_size)
    fields['min_levels'] = needed
    if experiment.max_levels:
      if experiment.max_levels < needed:
        raise ValueError(
          f'max_levels must be 0, or at least the {needed} levels that a'
          f' training string needs, got {experiment.max_levels}.'
        )
      fields['max_levels'] = experiment.max_levels
  return language_models.BUILDERS[experiment.architecture](
    experiment.vocab_size,
    embedding_dim=experiment.embedding_dim,
    num_heads=experiment.num_heads,
    dtype=jnp.dtype(experiment.precision),
    remat=experiment.remat,
    **fields,
  )


def title(experiment: LanguageExperiment) -> str:
  """Returns what a model is called in reports."""
  if experiment.architecture == 'regular_gpt_lm':
    levels = experiment.max_levels
    stops = f', at most {levels} levels' if levels else ''
    return f'RegularGPT {experiment.chunk_size}/{experiment.thickness}{stops}'
  return f'GPT, {experiment.position_bias}, {experiment.num_layers} layers'
