"""One experiment: everything its result depends on, and how often to save."""

from collections.abc import Callable, Sequence
import dataclasses
import json
import os
import platform
import subprocess
from typing import Any

import flax
import jax

from experiments.engine import devices, files, options

CONFIG_FILE = 'config.json'


@dataclasses.dataclass(frozen=True)
class Experiment:
  """A model, a task, and how the one is trained on the other.

  The help text of each field is its documentation. The defaults train on
  PARITY, in a minute on two CPU cores, to an accuracy of 1 on lengths 41..500.
  """

  task: str = options.option('parity_check', 'Language to learn.')
  task_params: dict = options.option(
    {}, 'JSON: arguments of the task, as {"probability": 0.3}.'
  )
  task_module: str = options.option(
    '',
    "Module of a user's own task, as my_package.my_task; --task then names its"
    ' class, which may be left out where there is only one.',
  )
  regex: str = options.option(
    '', "Regular expression to learn, in place of --task, as '(01)*'."
  )
  alphabet: str = options.option(
    '01', 'Symbols of --regex, one character each.'
  )
  automaton: dict = options.option(
    {},
    'Automaton to learn, in place of --task: a JSON file, {"alphabet": [...],'
    ' "states": [...], "start": ..., "accepting": [...], "transitions": {state:'
    ' {symbol: state}}}.',
    is_file=True,
  )
  target: str = options.option(
    'membership',
    'What to learn of --regex or --automaton: whether the string is in the'
    ' language, or the state that it leads to.',
    choices=('membership', 'state'),
  )
  architecture: str = options.option('regular_gpt', 'Model to train.')
  architecture_params: dict = options.option(
    {}, 'JSON: further arguments of the model, as {"hidden_size": 64}.'
  )
  is_autoregressive: bool = options.option(
    False, 'Whether the model reads its outputs, one by one.'
  )
  computation_steps_mult: int = options.option(
    0,
    'Empty tokens between input and output, as a multiple of the input.',
    minimum=0,
  )
  preset: str = options.option(
    'benchmark',
    "RegularGPT's block: `benchmark` (post-norm, learned pad) or `language`"
    ' (as GPT-2).',
  )
  chunk_size: int = options.option(
    2, 'Window width C of RegularGPT.', minimum=2
  )
  thickness: int = options.option(1, 'Distinct blocks K per level.', minimum=1)
  embedding_dim: int = options.option(
    64, 'Width of RegularGPT and of the transformers.', minimum=1
  )
  num_heads: int = options.option(
    8, 'Attention heads of RegularGPT and of the transformers.', minimum=1
  )
  dropout_rate: float = options.option(0.0, 'Dropout, in [0, 1).', minimum=0)
  precision: str = options.option(
    'float32',
    'Type of the computation; parameters and softmax are float32 always.',
    choices=('float32', 'bfloat16'),
  )
  max_extra_levels: int = options.option(
    0,
    'Each training step runs 0 to this many levels beyond the depth that the'
    ' length needs, drawn uniformly. 0 as in the paper; 4 generalizes to'
    ' depths never trained.',
    minimum=0,
  )
  sequence_length: int = options.option(
    40, 'Longest training string.', minimum=1
  )
  curriculum: str = options.option(
    'uniform', 'Distribution of training lengths.'
  )
  curriculum_params: dict = options.option(
    {}, 'JSON: arguments of the curriculum, as {"tau": 0.9}; `seed` is one.'
  )
  batch_size: int = options.option(128, 'Strings per training step.', minimum=1)
  training_steps: int = options.option(
    1000, 'Training steps; 0 for a model that launch.compile made.', minimum=0
  )
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
  max_range_test_length: int = options.option(
    500, 'Longest test string; every length from 1 is tested.', minimum=1
  )
  range_test_batch_size: int = options.option(
    512, 'Strings per test length.', minimum=1
  )
  smallest_bucket: int = options.option(
    64,
    'Shorter strings are padded to this width. Smaller means more programs'
    ' to compile, each faster.',
    minimum=1,
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


def replaced(experiment: Experiment, **fields) -> Experiment:
  """Returns the experiment with some fields replaced, where not None."""
  given = {k: v for k, v in fields.items() if v is not None}
  return dataclasses.replace(experiment, **given)


def environment() -> dict[str, Any]:
  """Returns what else a result may depend on: versions, device, commit."""
  return {
    'python': platform.python_version(),
    'jax': jax.__version__,
    'flax': flax.__version__,
    'device': jax.devices()[0].device_kind,
    'num_devices': jax.device_count(),
    'git_commit': _git_commit(),
  }


def _git_commit() -> str | None:
  """Returns the commit of this code, or None outside a git checkout."""
  try:
    return subprocess.run(
      ['git', 'rev-parse', 'HEAD'],
      cwd=os.path.dirname(os.path.abspath(__file__)),
      capture_output=True,
      text=True,
      check=True,
    ).stdout.strip()
  except (OSError, subprocess.CalledProcessError):
    return None


def task_title(experiment: Experiment) -> str:
  """Returns what an experiment's task is called in reports."""
  if experiment.regex:
    return f'the regex {experiment.regex}'
  if experiment.automaton:
    return 'an automaton'
  return experiment.task_module or experiment.task


# Learning rate, seed, and seed of the initial parameters.
Run = tuple[float, int, int]


def runs_of(experiment: Experiment) -> list[Run]:
  """Returns the one run that an experiment is."""
  return [
    (experiment.learning_rate, experiment.seed, experiment.model_init_seed)
  ]


def claim_workdir(
  experiment: Experiment, workdir: str, runs: Sequence[Run] | None = None
) -> None:
  """Makes a run's folder, or checks that it holds this very experiment.

  Args:
    experiment: What is about to run.
    workdir: Its folder, which exists; `config.json` is written into it if it
      has none.
    runs: Where several train together, all of them.

  Raises:
    ValueError: If the folder holds a different experiment, or other files
      and no experiment. Nothing is changed then.
  """
  devices.from_main(
    lambda: _claim(experiment, workdir, runs or runs_of(experiment))
  )


def _claim(experiment: Experiment, workdir: str, runs: Sequence[Run]) -> None:
  path = os.path.join(workdir, CONFIG_FILE)
  if os.path.exists(path):
    found = load(workdir, type(experiment))
    is_trained = bool(found.training_steps)
    if is_trained != bool(experiment.training_steps):
      raise ValueError(
        f'{workdir} holds a different experiment, a model that was'
        f' {"trained" if is_trained else "compiled"}. Choose another --workdir.'
      )
    differing = [
      field
      for field in dataclasses.fields(experiment)
      if getattr(found, field.name) != getattr(experiment, field.name)
    ]
    refused = [
      field.metadata.get('if_other')
      or f'{field.name}={getattr(found, field.name)!r} there,'
      f' {getattr(experiment, field.name)!r} here'
      for field in differing
      if not _may_change(field, found, experiment)
    ]
    found_runs = load_runs(workdir, type(experiment))
    if not refused and found_runs != list(runs):
      refused.append(f'runs={found_runs} there, {list(runs)} here')
    if refused:
      raise ValueError(
        f'{workdir} holds a different experiment: {"; ".join(refused)}.'
        ' Choose another --workdir, or remove this one to start anew'
        ' (launch.evaluate and launch.evaluate_lm test a trained model on other'
        ' lengths).'
      )
    if differing:
      _write_config(experiment, runs, path)
    return
  if any(not name.startswith('.') for name in os.listdir(workdir)):
    raise ValueError(
      f'{workdir} has files but no {CONFIG_FILE}. Choose another --workdir, or'
      ' remove this one to start anew.'
    )
  _write_config(experiment, runs, path)


def _may_change(
  field: dataclasses.Field, found: Experiment, wanted: Experiment
) -> bool:
  """Whether the steps already done are the same with the wanted value."""
  if field.name == 'training_steps':
    return (
      wanted.training_steps > found.training_steps
      and wanted.schedule == 'constant'
      and getattr(wanted, 'curriculum', None) != 'regular_increase'
    )
  return field.metadata.get('may_change', False)


def _write_config(
  experiment: Experiment, runs: Sequence[Run], path: str
) -> None:
  contents = {
    'experiment': dataclasses.asdict(experiment),
    'environment': environment(),
  }
  if list(runs) != runs_of(experiment):
    contents['runs'] = list(runs)
  files.write_atomically(path, json.dumps(contents, indent=2) + '\n')


def load(workdir: str, kind: type = Experiment) -> Any:
  """Reads the experiment that a folder holds.

  Args:
    workdir: The folder.
    kind: Class of the experiment.

  Raises:
    ValueError: If there is none, or it cannot be read.
  """

  def take(contents):
    is_language_model = _is_language_model(contents)
    if is_language_model != (kind is not Experiment):
      found = (
        'a language model, for launch.evaluate_lm and launch.sample'
        if is_language_model
        else 'a model of a formal language, for launch.evaluate'
      )
      raise ValueError(f'it is of {found}.')
    return kind(**contents['experiment'])

  return _read(workdir, take)


def holds_language_model(workdir: str) -> bool:
  """Whether a folder's experiment is one of language models.

  Raises:
    ValueError: As `load`.
  """
  return _read(workdir, _is_language_model)


def _is_language_model(contents: dict[str, Any]) -> bool:
  return 'data_dir' in contents['experiment']


def load_runs(workdir: str, kind: type = Experiment) -> list[Run]:
  """Reads the runs that a folder holds.

  Raises:
    ValueError: As `load`.
  """
  experiment = load(workdir, kind)
  return _read(
    workdir,
    lambda contents: (
      [(float(rate), int(seed), int(init)) for rate, seed, init in runs]
      if (runs := contents.get('runs'))
      else runs_of(experiment)
    ),
  )


def _read(workdir: str, take: Callable[[dict[str, Any]], Any]) -> Any:
  """Returns what a function takes from a folder's `config.json`."""
  path = os.path.join(workdir, CONFIG_FILE)
  try:
    with open(path, encoding='utf-8') as f:
      return take(json.load(f))
  except FileNotFoundError:
    raise ValueError(
      f'{workdir} holds no experiment: it has no {CONFIG_FILE}.'
    ) from None
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise ValueError(f'Cannot read {path}: {error}') from error
