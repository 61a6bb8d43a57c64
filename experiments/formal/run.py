"""A whole experiment: train, evaluate on every length, report."""

from collections.abc import Sequence
import os
import shlex

import chex

from experiments.engine import (
  checkpoints,
  devices,
  files,
  locks,
  progress,
)
from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  builders,
  evaluation,
  limits,
  long_strings,
  models,
  report,
  strings,
  training,
)
from experiments.formal import config as config_lib
from tasks import task as task_lib


def train_and_evaluate(experiment: config_lib.Experiment, workdir: str) -> None:
  """Runs an experiment in its folder, prints its table and its plot's path.

  Run again, it goes on where it stopped.

  Args:
    experiment: What to run.
    workdir: The folder for all output; made if it does not exist.

  Raises:
    ValueError: If the experiment is impossible, or the folder holds another.
    loop.DivergedError: If the loss is not finite.
    stopping.StoppedError: If a signal came; all is saved.
    OSError: If a file cannot be written, no checkpoint can be read, or another
      process is using the folder.
  """
  if not experiment.training_steps:
    raise ValueError('training_steps must be at least 1, got 0.')

  def make():  # What is impossible fails now, or never.
    models.check_sizes(experiment)
    builders.make_curriculum(experiment)
    task, model = builders.make_task_and_model(experiment)
    strings.check(experiment, task)
    limits.check(experiment, task, model)
    return task, model

  task, model = devices.on_all(make)
  devices.check_alike(repr((experiment, files.absolute(workdir))))
  with locks.locked(workdir):
    with workdir_lib.claimed(experiment, workdir):
      state = training.train(experiment, workdir, task, model)
    _evaluate_and_report(experiment, task, model, state.params, workdir)


def load_experiment(
  workdir: str, task_module: str = '', model_module: str = ''
) -> workdir_lib.Held:
  """Reads a trained experiment, without running any code that it names.

  Args:
    workdir: Its folder.
    task_module: The module of its task, where that is a user's own: it runs, so
      it is not enough that the folder names it.
    model_module: The same of its model.

  Raises:
    ValueError: If the folder holds no experiment, or one of another module.
  """
  held = workdir_lib.load(workdir, config_lib.Experiment)
  check_module('task', held.experiment, workdir, task_module)
  check_module('model', held.experiment, workdir, model_module)
  return held


def check_module(
  kind: str, experiment: config_lib.Experiment, workdir: str, given: str
) -> None:
  """Checks that the module of a folder's experiment is trusted.

  Args:
    kind: 'task' or 'model'.
    experiment: What the folder holds.
    workdir: The folder.
    given: The module that the user names.

  Raises:
    ValueError: As `load_experiment`.
  """
  flag = f'{kind}_module'
  named = getattr(experiment, flag)
  if named == given:
    return
  if not named:
    raise ValueError(f'{workdir} has no {flag}, so leave out {given!r}.')
  raise ValueError(
    f'The {kind} of {workdir} is in a module, {to_trust(flag, named)}.'
  )


def to_trust(flag: str, module: str) -> str:
  """Returns what errors say of a module that a file names and nobody else."""
  found = ascii(module)
  return (
    f'which would run: to trust it, give --{flag}={shlex.quote(found[1:-1])}'
    f' (in Python, {flag}={found})'
  )


def load(
  workdir: str, task_module: str = '', model_module: str = ''
) -> tuple[
  config_lib.Experiment,
  task_lib.GeneralizationTask,
  models.Model,
  chex.ArrayTree,
]:
  """Returns a trained experiment, its task and model, and its parameters.

  The parameters are of the newest good checkpoint, [R, ...].

  Args:
    workdir: Its folder.
    task_module: See `load_experiment`.
    model_module: See `load_experiment`.

  Raises:
    ValueError: As `load_experiment`, or if the task or the model does not do
      what it says.
    OSError: If it has no good checkpoint.
  """
  held = load_experiment(workdir, task_module, model_module)
  task, model = builders.make_task_and_model(held.experiment)
  return held.experiment, task, model, load_params(workdir, held, model)


def load_params(
  workdir: str, held: workdir_lib.Held, model: models.Model
) -> chex.ArrayTree:
  """Returns the parameters of a folder's newest good checkpoint, [R, ...].

  Args:
    workdir: The folder.
    held: What it holds, as `load_experiment` returns it.
    model: Of its experiment.

  Raises:
    OSError: If it has no good checkpoint.
  """
  experiment, runs = held
  if len(runs) > 1:
    rate, seed, _ = runs[0]
    progress.say(
      f'{workdir} holds {len(runs)} runs, the first of learning rate {rate:g}'
      f' and seed {seed}.'
    )
  like = training.state_shapes(experiment, model, len(runs)).params
  _, params = checkpoints.load(workdir, like, experiment.training_steps)
  return params


def evaluate(
  workdir: str,
  output_dir: str | None = None,
  task_module: str = '',
  model_module: str = '',
  lengths: Sequence[int] | None = None,
  **overrides,
) -> None:
  """Evaluates a trained experiment from its newest checkpoint.

  Args:
    workdir: Its folder.
    output_dir: Where to write; by default the workdir.
    task_module: See `load_experiment`.
    model_module: See `load_experiment`.
    lengths: Where given, strings of these alone are tested, and a table is
      printed; nothing is written.
    **overrides: Fields of the experiment to evaluate with other values, as
      `max_range_test_length`, where not None. Their results need an
      `output_dir` of their own.

  Raises:
    ValueError: As `load`, or if a value is impossible, or another task has
      other symbols or answers, or the output_dir is that of another run.
    OSError: If there is no good checkpoint.
  """
  held = load_experiment(workdir, task_module, model_module)
  trained = held.experiment
  config_lib.check_range(trained.has_strings_alone, overrides)
  if lengths is None:
    experiment = trained.replaced(**overrides)
    folder = output_dir or workdir
    workdir_lib.check_output(folder, workdir, experiment == trained)
  else:
    if output_dir is not None:
      raise ValueError(
        '--output_dir is not for --lengths, with which nothing is written.'
      )
    experiment = long_strings.test_experiment(trained, lengths, overrides)
  if len(held.runs) > 1:
    raise ValueError(
      f'{workdir} holds the runs of a sweep; launch.report shows them.'
    )
  task = builders.make_test_task(experiment, trained)
  model = builders.make_model(experiment, task)
  if lengths is not None:
    long_strings.check(experiment, task, model)
    params = load_params(workdir, held, model)
    found = long_strings.evaluate(experiment, task, model, params, lengths)
    table = report.of_lengths(experiment, found, 1 / task.output_size)
    devices.from_main(lambda: print(table))
    return
  strings.load_tests(experiment, task)
  strings.say_notes(experiment.test_strings.values())
  limits.check_evaluation(experiment, task, model)
  params = load_params(workdir, held, model)
  files.make_folder(folder)  # Fails before the work, or never.
  _evaluate_and_report(experiment, task, model, params, folder)


def _evaluate_and_report(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  params: chex.ArrayTree,
  folder: str,
) -> None:
  tests = evaluation.evaluate(experiment, task, model, params)

  def write():
    chance = 1 / task.output_size
    report.save(experiment, tests, chance, folder)
    print(report.table(experiment, tests, chance))
    print(f'plot: {os.path.join(folder, report.NAME)}.png')

  devices.from_main(write)
