"""A run's folder: which experiment it holds, and whether it takes another."""

from collections.abc import Iterator, Sequence
import contextlib
import os
from typing import Any, NamedTuple

from experiments.engine import (
  checkpoints,
  devices,
  files,
  json_reading,
  results,
)
from experiments.engine import experiment as experiment_lib

CONFIG_FILE = 'config.json'


class Held(NamedTuple):
  """What a folder holds.

  Attributes:
    experiment: Of its first run.
    runs: All that train together in it.
  """

  experiment: experiment_lib.BaseExperiment
  runs: list[experiment_lib.Run]


def claim(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  runs: Sequence[experiment_lib.Run] | None = None,
) -> bool:
  """Makes a folder an experiment's, or checks that it holds this very one.

  Args:
    experiment: What is about to run.
    workdir: Its folder, which exists; `config.json` is written into it if it
      has none.
    runs: Where several train together, all of them.

  Returns:
    Whether it held none before.

  Raises:
    ValueError: If the folder holds a different experiment, or other files
      and no experiment. Nothing is changed then.
  """
  return bool(
    devices.from_main(
      lambda: _claim(experiment, workdir, experiment.runs(runs))
    )
  )


@contextlib.contextmanager
def claimed(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  runs: Sequence[experiment_lib.Run] | None = None,
) -> Iterator[None]:
  """As `claim`; gives the folder back if what is done within is refused.

  A program that does not fit is known only when it is compiled. What was
  trained to a checkpoint is kept.

  Raises:
    ValueError: As `claim`.
  """
  is_new = claim(experiment, workdir, runs)
  try:
    yield
  except ValueError:
    if is_new and devices.is_main() and not checkpoints.has_any(workdir):
      for name in _contents(workdir):
        files.remove(os.path.join(workdir, name))
    raise


def _contents(workdir: str) -> list[str]:
  """Returns what is in a folder, but for locks and their kind."""
  return [name for name in files.names(workdir) if not name.startswith('.')]


def check_output(folder: str, workdir: str, is_own: bool) -> None:
  """Refuses to put results into the workdir of another experiment.

  Args:
    folder: Where the results are to go.
    workdir: Of what is evaluated.
    is_own: Whether they are the results of the experiment in the workdir.

  Raises:
    ValueError: If the folder is the workdir, and they are not, or if it is that
      of another run, or of a sweep.
  """
  if os.path.realpath(folder) == os.path.realpath(workdir):
    if not is_own:
      raise ValueError(
        'Give an --output_dir: these results are not those of the experiment in'
        f' {workdir}, whose own belong there.'
      )
    return
  check_no_run(folder, 'another --output_dir')
  if files.is_folder(os.path.join(folder, results.FOLDER)):
    raise ValueError(f'{folder} holds a sweep: give another --output_dir.')


def check_no_run(folder: str, other: str) -> None:
  """Refuses a folder that holds a trained run.

  Args:
    folder: Which to look at.
    other: What to give in its place, as 'another --workdir'.

  Raises:
    ValueError: If it does.
  """
  if holds_run(folder):
    raise ValueError(f'{folder} holds a trained run: give {other}.')


def holds_run(folder: str) -> bool:
  """Whether a folder is that of an experiment."""
  return files.exists(os.path.join(folder, CONFIG_FILE))


def check(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  runs: Sequence[experiment_lib.Run] | None = None,
) -> None:
  """Refuses what `claim` would, and changes nothing.

  Raises:
    ValueError: As `claim`.
  """
  devices.from_main(
    lambda: _held(experiment, workdir, experiment.runs(runs)) is None
  )


def _claim(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  runs: list[experiment_lib.Run],
) -> bool:
  found = _held(experiment, workdir, runs)
  if found != experiment:
    _write(experiment, runs, os.path.join(workdir, CONFIG_FILE))
  return found is None


def _held(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  runs: list[experiment_lib.Run],
) -> experiment_lib.BaseExperiment | None:
  """Returns what a folder holds, None if nothing, or refuses it."""
  path = os.path.join(workdir, CONFIG_FILE)
  if files.exists(path):
    found, found_runs = load(workdir, type(experiment))
    is_trained = bool(found.training_steps)
    if is_trained != bool(experiment.training_steps):
      raise ValueError(
        f'{workdir} holds a different experiment, a model that was'
        f' {"trained" if is_trained else "compiled"}. Choose another --workdir.'
      )
    refused = _refused(found, experiment)
    if not refused and found_runs != runs:
      refused.append(f'runs {found_runs} (here: {runs})')
    if refused:
      raise ValueError(
        f'{workdir} holds a different experiment: {"; ".join(refused)}.'
        ' Choose another --workdir, or remove this one to start anew'
        f' ({experiment.evaluated_by} tests a trained model on other lengths).'
      )
    return found
  if files.exists(workdir) and _contents(workdir):
    raise ValueError(
      f'{workdir} has files but no {CONFIG_FILE}. Choose another --workdir, or'
      ' remove this one to start anew.'
    )
  return None


def _refused(
  found: experiment_lib.BaseExperiment, wanted: experiment_lib.BaseExperiment
) -> list[str]:
  """Returns the differences with which the steps done would be others."""
  differing = experiment_lib.differences(found, wanted)
  is_prolonged = wanted.training_steps > found.training_steps
  if is_prolonged and not wanted.steps_depend_on_their_number():
    differing.pop('training_steps')
  return list(differing.values())


def _write(
  experiment: experiment_lib.BaseExperiment,
  runs: list[experiment_lib.Run],
  path: str,
) -> None:
  contents = results.origin(experiment)
  if runs != experiment.runs():
    contents['runs'] = runs
  results.save_json(path, contents)


def load(workdir: str, *kinds: type[experiment_lib.BaseExperiment]) -> Held:
  """Reads what a folder holds.

  Args:
    workdir: The folder.
    *kinds: Classes of experiment, one of which it must be of.

  Raises:
    ValueError: If there is none, it is of another class, or it cannot be read.
  """
  path = os.path.join(workdir, CONFIG_FILE)
  try:
    contents = json_reading.read(path)
    if not isinstance(contents, dict) or not isinstance(
      contents.get('experiment'), dict
    ):
      raise ValueError('it holds no experiment.')
    fields = contents['experiment']
    experiment = experiment_lib.of_fields(_kind(fields, kinds), fields)
    runs = [_as_run(*run) for run in contents.get('runs') or ()]
    return Held(experiment, experiment.runs(runs))
  except FileNotFoundError:
    raise ValueError(
      f'{workdir} holds no experiment: it has no {CONFIG_FILE}.'
    ) from None
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise ValueError(f'Cannot read {path}: {error}') from error


def _kind(
  fields: dict[str, Any], kinds: Sequence[type[experiment_lib.BaseExperiment]]
) -> type[experiment_lib.BaseExperiment]:
  """Returns the class, of some, that an experiment's fields are of."""
  for kind in kinds:
    found = [what for mark, what in kind.other_kinds.items() if mark in fields]
    if not found:
      return kind
  raise ValueError(f'it is of {found[0]}.')


def _as_run(rate: Any, seed: Any, model_init_seed: Any) -> experiment_lib.Run:
  """Checks a run as an experiment does its own."""
  values = rate, seed, model_init_seed
  fields = dict(zip(experiment_lib.RUN_FIELDS, values, strict=True))
  return experiment_lib.BaseExperiment(**fields).run
