"""The paper's tables as data: every number is a cell of a named preset.

A preset is a grid of tasks and models. A cell of it is one task and one model,
trained at each learning rate with each seed; `cells` spells them out.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import dataclasses
import itertools
import reprlib
from typing import Any

from experiments.formal import automata, registries
from experiments.formal import config as config_lib

Fields = Mapping[str, Any]
# The preset whose tasks are the automata of a user's folder.
OF_AUTOMATA = 'mlregtest'


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
        # All are made, so that a bad seed or rate fails now.
        experiment, *_ = (
          config_lib.Experiment(
            **{
              **fields,
              'learning_rate': learning_rate,
              'seed': seed,
              'model_init_seed': seed,
            }
          )
          for learning_rate, seed in runs
        )
      tests = preset.tests.get(task, {'': experiment.task_params})
      found.append(Cell(task, model, experiment, runs, tests))
  return found


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


def with_tasks(preset: Preset, folder: str | None) -> Preset:
  """Returns a preset whose tasks, if it has none, are automata of a folder.

  Args:
    preset: With or without tasks.
    folder: Each file that ends as one of an automaton is a task, called so.

  Raises:
    ValueError: If tasks are given twice or not at all, or if there is no
      automaton, or one cannot be read.
  """
  if preset.tasks and folder is None:
    return preset
  if preset.tasks:
    raise ValueError(f'--automata is for --preset={OF_AUTOMATA}.')
  if folder is None:
    raise ValueError('Give --automata, the folder of automata to learn.')
  found = automata.read_folder(folder)
  tasks = {name: {'automaton': fields} for name, fields in found.items()}
  return dataclasses.replace(preset, tasks=tasks)


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


# Chi et al. (2023), appendix A; the number of test strings is ours.
_PAPER = {
  'batch_size': 128,
  'training_steps': 100_000,
  'embedding_dim': 256,
  'num_heads': 8,
  'precision': 'float32',
  'range_test_batch_size': 512,
  # Four programs (8, 16, 32 and 40 symbols) in place of one: half the work.
  'smallest_bucket': 8,
  'log_every': 1000,
  'checkpoint_every': 10_000,
}
# Trained and tested on; Table 1's caption.
_FIRST_GROUP = {'sequence_length': 40, 'max_range_test_length': 500}
_SECOND_GROUP = {'sequence_length': 50, 'max_range_test_length': 100}

_TASKS = {
  'even_pairs': _FIRST_GROUP,
  # What the authors ran puts a + before every string.
  'modular_arithmetic': {
    **_FIRST_GROUP,
    'task_params': {'leading_plus': True},
  },
  'parity_check': _FIRST_GROUP,
  'cycle_navigation': _FIRST_GROUP,
  'd_2': _SECOND_GROUP,
  'd_3': _SECOND_GROUP,
  'd_4': _SECOND_GROUP,
  'd_12': _SECOND_GROUP,
  'tomita_3': _SECOND_GROUP,
  'tomita_4': _SECOND_GROUP,
  'tomita_5': _SECOND_GROUP,
  'tomita_6': _SECOND_GROUP,
}

_RNN = {'architecture': 'rnn', 'architecture_params': {'hidden_size': 256}}
# 4.3 M parameters; the paper's Transformer-XL-style baseline.
_TRANSFORMER = {
  'architecture': 'transformer_encoder',
  'architecture_params': {'positional_encodings': 'RELATIVE', 'num_layers': 5},
}
_REGULAR_GPT_C2 = {'architecture': 'regular_gpt', 'chunk_size': 2}
_REGULAR_GPT_C3 = {'architecture': 'regular_gpt', 'chunk_size': 3}
# Ours: the paper trains at no depth beyond what the length needs.
_EXTRA = {'max_extra_levels': 4}

_MODELS = {
  'rnn': _RNN,
  'transformer': _TRANSFORMER,
  'regular_gpt_c2': _REGULAR_GPT_C2,
  'regular_gpt_c3': _REGULAR_GPT_C3,
}
_EXTRA_MODELS = {
  'regular_gpt_c2_extra': {**_REGULAR_GPT_C2, **_EXTRA},
  'regular_gpt_c3_extra': {**_REGULAR_GPT_C3, **_EXTRA},
}
_PROBABILITIES = {
  f'p={probability}': {'probability': probability}
  for probability in (0.1, 0.3, 0.5, 0.7, 0.9)
}

# Minutes to an hour a cell on two CPU cores.
_SMALL = {**_PAPER, 'embedding_dim': 64, 'training_steps': 3000}
_SMALL_RNN = {**_RNN, 'architecture_params': {'hidden_size': 64}}

_TINY = {
  **_PAPER,
  'batch_size': 16,
  'training_steps': 20,
  'embedding_dim': 16,
  'num_heads': 2,
  'range_test_batch_size': 32,
  'log_every': 5,
  'checkpoint_every': 10,
}
_TINY_LENGTHS = {'sequence_length': 8, 'max_range_test_length': 20}
_TINY_PARAMS = {
  'rnn': {'architecture_params': {'hidden_size': 16}},
  'transformer': {
    'architecture_params': {
      'positional_encodings': 'RELATIVE',
      'num_layers': 1,
    }
  },
}

# Trained and tested on the lengths of MLRegTest's files (van der Poel et al.,
# 2023), on a CPU: a minute a cell.
_MLREGTEST = {
  **_PAPER,
  'embedding_dim': 32,
  'num_heads': 4,
  'batch_size': 64,
  'training_steps': 2000,
  'sequence_length': 29,
  'curriculum_params': {'values': list(range(20, 30))},
  'min_range_test_length': 20,
  'max_range_test_length': 50,
  'range_test_batch_size': 256,
  'adversarial': True,
  # One program to train, one to test: most of a cell's time goes into them.
  'smallest_bucket': 64,
}

PRESETS = {
  'table1': Preset(_PAPER, _TASKS, _MODELS, paper=1),
  'table1_extra': Preset(_PAPER, _TASKS, _EXTRA_MODELS),
  'table2': Preset(
    _PAPER,
    {'parity_check': {**_FIRST_GROUP, 'task_params': {'probability': 0.5}}},
    {name: _MODELS[name] for name in ('regular_gpt_c2', 'rnn', 'transformer')},
    tests={'parity_check': _PROBABILITIES},
    paper=2,
  ),
  # Without the transformer, which is slow on a CPU.
  'table1_small': Preset(
    _SMALL,
    _TASKS,
    {
      'rnn': _SMALL_RNN,
      'regular_gpt_c2': _REGULAR_GPT_C2,
      'regular_gpt_c3': _REGULAR_GPT_C3,
    },
    learning_rates=(5e-4, 2e-3),
    paper=1,
    about='Table 1 with models of width 64, not 256, trained for 3,000 steps,'
    ' not 100,000, at two other learning rates, and without its transformer.',
  ),
  OF_AUTOMATA: Preset(
    _MLREGTEST,
    {},
    {
      'rnn': _SMALL_RNN,
      'regular_gpt_c2': _REGULAR_GPT_C2,
      'regular_gpt_c2_extra': {**_REGULAR_GPT_C2, **_EXTRA},
    },
    learning_rates=(1e-3, 3e-3),
    seeds=(0,),
  ),
  # All kinds of cell of the other presets, tiny: minutes on a CPU.
  'smoke': Preset(
    _TINY,
    {name: {**fields, **_TINY_LENGTHS} for name, fields in _TASKS.items()},
    {
      name: {**fields, **_TINY_PARAMS.get(name, {})}
      for name, fields in {**_MODELS, **_EXTRA_MODELS}.items()
    },
    learning_rates=(1e-3, 3e-3),
    seeds=(0, 1),
    tests={'parity_check': _PROBABILITIES},
  ),
}
