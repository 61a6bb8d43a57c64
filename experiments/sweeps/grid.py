"""A sweep's grid: every number of a table is a cell of one.

A preset is a grid of tasks and models. A cell of it is one task and one model,
trained at each learning rate with each seed; `cells` spells them out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import itertools
import reprlib
from typing import Any

from experiments.formal import config as config_lib
from experiments.formal import models, registries

Fields = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Preset:
  """A grid of tasks and models.

  Attributes:
    base: Fields of `Experiment` that all cells share.
    tasks: Fields of each task, by its name in reports.
    models: Fields of each model, by its name in reports.
    learning_rates: Each is trained with each seed.
    seeds: Of the parameters and of the data.
    tests: Of a task that is tested on others than its own strings: its
      parameters at test, by the test's name in reports.
    paper: Number of the paper's table beside which a report sets it; 0 for
      none.
    beside: Name of the preset in whose table a report shows its cells, as ours.
    about: What a report says of it.
  """

  base: Fields
  tasks: Mapping[str, Fields]
  models: Mapping[str, Fields]
  learning_rates: Sequence[float] = (1e-4, 3e-4, 5e-4)
  seeds: Sequence[int] = (0, 1, 2)
  tests: Mapping[str, Mapping[str, Fields]] = dataclasses.field(
    default_factory=dict
  )
  paper: int = 0
  beside: str = ''
  about: str = ''


@dataclasses.dataclass(frozen=True)
class Cell:
  """One task and one model of a preset.

  Attributes:
    task: Its name in the preset.
    model: Its name in the preset.
    experiment: Of its first run.
    runs: Learning rate and seed of every run.
    tests: The task's parameters at test, by the test's name; the task's own
      are named ''.
  """

  task: str
  model: str
  experiment: config_lib.Experiment
  runs: Sequence[tuple[float, int]]
  tests: Mapping[str, Fields]

  @property
  def name(self) -> str:
    """Also the path of its folder."""
    return f'{self.task}/{self.model}'


def cells(preset: Preset) -> list[Cell]:
  """Returns a preset's cells, task by task.

  Raises:
    ValueError: If an experiment is impossible.
  """
  runs = list(itertools.product(preset.learning_rates, preset.seeds))
  if not runs:
    raise ValueError('Give at least one seed and one learning rate.')
  found = []
  for task, task_fields in preset.tasks.items():
    for model, model_fields in preset.models.items():
      with blamed(f'{task}/{model}'):
        names = _names(task, model, preset.base, task_fields, model_fields)
        fields = {**names, **preset.base, **task_fields, **model_fields}
        if held := fields.get('strings'):
          # Which say themselves how long they are.
          longest, _ = held['lengths'][-1]
          fields.setdefault('sequence_length', longest)
        fields['learning_rate'], seed = runs[0]
        fields['seed'] = fields['model_init_seed'] = seed
        experiment = config_lib.Experiment(**fields)
        # A bad rate or seed fails now.
        for learning_rate in preset.learning_rates[1:]:
          experiment.replaced(learning_rate=learning_rate)
        for seed in preset.seeds[1:]:
          experiment.replaced(seed=seed)
      tests = preset.tests.get(task, {'': experiment.task_params})
      found.append(Cell(task, model, experiment, runs, tests))
  return found


def check_read(preset: Preset, names: Iterable[str]) -> None:
  """Refuses sizes that no model of a preset reads.

  Args:
    preset: Its cells.
    names: Fields that were given for all of them.

  Raises:
    ValueError: If no cell's model reads one, or an experiment is impossible.
  """
  unread = [models.unread_sizes(cell.experiment) for cell in cells(preset)]
  for name in names:
    if all(name in sizes for sizes in unread):
      raise ValueError(f'--{name} {unread[0][name]}')


@contextlib.contextmanager
def blamed(where: str) -> Iterator[None]:
  """Says of what is impossible in a cell in which one.

  Raises:
    ValueError: If what is done within does; with the cell's name before it.
  """
  try:
    yield
  except ValueError as error:
    raise ValueError(f'{where}: {error}') from error


def _names(
  task: str, model: str, base: Fields, task_fields: Fields, model_fields: Fields
) -> Fields:
  """Returns which task and model a cell's names mean, where its fields do not.

  The name of a task is one of ours, or one in a module that all cells share; so
  is that of a model.

  Raises:
    ValueError: If a name is that of another task or model of ours.
  """
  names = {}
  sources = [
    name for name in config_lib.SOURCES if {**base, **task_fields}.get(name)
  ]
  if not (sources or task_fields.get('task_module')):
    names['task'] = task
  if not model_fields.get('model_module'):
    names['architecture'] = model
  # A cell's own fields may say what they like, but not those of all cells.
  if not {'architecture', 'model_module'} & {*model_fields}:
    meant = base.get('architecture', model)
    _check_name('model', model, meant, registries.MODEL_BUILDERS)
  if not {'task', 'task_module', *config_lib.SOURCES} & {*task_fields}:
    meant = base[sources[0]] if sources else base.get('task', task)
    _check_name('task', task, meant, registries.TASK_BUILDERS)
  return names


def _check_name(
  kind: str, name: str, meant: Any, known: Mapping[str, Any]
) -> None:
  if name in known and meant != name:
    raise ValueError(
      f'it is called as our {kind} {name}, but base says'
      f' {reprlib.repr(meant)}: give one of them alone.'
    )
