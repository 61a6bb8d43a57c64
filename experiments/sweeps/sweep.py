"""A sweep's cells, one after another: train, evaluate, keep the result."""

from collections.abc import Sequence
import dataclasses
import math
import os
import shlex
import time
from typing import Any, NamedTuple

from experiments.engine import (
  clock,
  devices,
  files,
  locks,
  loop,
  metrics,
  options,
  parameters,
  progress,
  selection,
  stopping,
)
from experiments.engine import experiment as experiment_lib
from experiments.engine import results as results_lib
from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  builders,
  evaluation,
  limits,
  models,
  strings,
  training,
)
from experiments.formal import config as config_lib
from experiments.sweeps import (
  grid,
  numbers,
  own,
  presets,
  protocols,
  results,
)


class _Made(NamedTuple):
  """What a cell is made of.

  Attributes:
    task: What is learned.
    model: What learns it.
    tests: What is tested on, by the test's name: an experiment and its task.
  """

  task: Any
  model: models.Model
  tests: dict[str, tuple[config_lib.Experiment, Any]]


# Fields that say how much is done, or how fast, not what.
_AMOUNTS = (
  'warmup_steps',
  'training_steps',
  'batch_size',
  'sequence_length',
  'min_range_test_length',
  'max_range_test_length',
  'range_test_batch_size',
  'smallest_bucket',
)


def narrowed(
  preset: grid.Preset,
  tasks: Sequence[str] | None = None,
  models: Sequence[str] | None = None,
  learning_rates: Sequence[float] | None = None,
  seeds: Sequence[int] | None = None,
  **fields: Any,
) -> grid.Preset:
  """Returns a preset with less or other in it; what is None stays.

  Args:
    preset: What there is.
    tasks: Names of those to keep.
    models: Names of those to keep.
    learning_rates: In place of the preset's.
    seeds: In place of the preset's.
    **fields: Of `Experiment`, in place of those that all cells share; how much
      is done also in place of what cells have of their own.

  Raises:
    ValueError: If it has no such task or model, nothing is left, cells have
      another field of their own, or no model reads a size.
  """
  selection.check_lists(
    tasks=tasks, models=models, learning_rates=learning_rates, seeds=seeds
  )
  tasks = selection.chosen('task', tasks, preset.tasks)
  models = selection.chosen('model', models, preset.models)
  fields = options.given(fields)
  amounts = {k: v for k, v in fields.items() if k in _AMOUNTS}
  for name in fields:
    of_cells = [
      key
      for kind in (tasks, models)
      for key, values in kind.items()
      if name in values and name not in amounts
    ]
    if of_cells or name in own.OF_CELLS:
      which = ', '.join(of_cells) or 'the tasks and models'
      raise ValueError(
        f'--{name} is not one for all: the sweep sets it for {which}. To choose'
        ' it, write a file for --cells.'
      )
  found = dataclasses.replace(
    preset,
    base={**preset.base, **_of_curriculum(preset.base, fields), **fields},
    tasks={k: _with(v, amounts) for k, v in tasks.items()},
    tests={k: tests for k, tests in preset.tests.items() if k in tasks},
    models={k: _with(v, amounts) for k, v in models.items()},
    learning_rates=learning_rates or preset.learning_rates,
    seeds=seeds or preset.seeds,
  )
  grid.check_read(found, fields)
  return found


def _of_curriculum(base, fields):
  """Returns curriculum_params, if fields ask for others than the base has.

  Those of another curriculum are its defaults, and lengths grow to the longest.
  """
  name, params = base.get('curriculum'), base.get('curriculum_params', {})
  longest = base.get('sequence_length')
  wanted = params
  if fields.get('curriculum', name) != name:
    wanted = {}
  elif longest is not None and params.get('max_sequence_length') == longest:
    longest = fields.get('sequence_length', longest)
    wanted = {**params, 'max_sequence_length': longest}
  return {'curriculum_params': wanted} if wanted != params else {}


def _with(fields, others):
  """Returns fields with the values that others have of the same."""
  return {name: others.get(name, value) for name, value in fields.items()}


def part_of(cells: Sequence[grid.Cell], part: str) -> Sequence[grid.Cell]:
  """Returns one of several equal shares of the cells.

  Args:
    cells: All of them.
    part: As 2/4, the second of four.

  Raises:
    ValueError: If it is written otherwise.
  """
  try:
    index, number = (int(text) for text in part.split('/'))
  except ValueError:
    index = number = 0
  if not 1 <= index <= number:
    raise ValueError(f'part must be as 1/4, 2/4, 3/4 or 4/4, got {part!r}.')
  # In one piece: models take turns in the list, and cost very unlike time.
  first, last = (len(cells) * i // number for i in (index - 1, index))
  return cells[first:last]


def sweep(
  name: str,
  preset: grid.Preset,
  workdir: str | None = None,
  results_dir: str | None = None,
  part: str = '1/1',
  time_budget_s: float = math.inf,
  whole: grid.Preset | None = None,
) -> bool:
  """Measures the cells that have no result yet.

  Run again, it goes on where it stopped.

  Args:
    name: Of the preset.
    preset: Its cells are measured, in order.
    workdir: Folder for what is in progress, made if it does not exist; by
      default `runs/` and the preset's name.
    results_dir: Folder for the results; by default `results` in the workdir.
    part: Which share of the cells, as 1/1.
    time_budget_s: Seconds after which to stop training; what is trained by
      then is kept.
    whole: What is kept beside the results of a user's sweep, of which `preset`
      is a part; by default that is all.

  Returns:
    Whether all cells of the part have a result.

  Raises:
    ValueError: If an experiment is impossible, or a folder holds another.
    stopping.RunInterruptedError: If a signal came; all is saved.
    OSError: If a file cannot be written, or another process is using a folder.
  """
  parameters.check_bounds('time_budget_s', time_budget_s, 0)
  stop_at = time.monotonic() + time_budget_s
  workdir, results_dir = selection.folders(name, workdir, results_dir)
  report_flags = [f'--results={results_dir}', f'--output_dir={workdir}']
  if results_dir == os.path.join(workdir, results_lib.FOLDER):
    report_flags = [f'--workdir={workdir}']
  places = files.absolute(workdir), files.absolute(results_dir)
  devices.check_alike(repr((name, preset, *places, part, time_budget_s)))
  cells = part_of(grid.cells(preset), part)
  if not cells:
    progress.say(f'Part {part} has no cell.')
    return True
  if name in protocols.PROTOCOLS:
    for cell in cells:
      if others := evaluation.names(cell.experiment)[1:]:
        raise ValueError(
          f"The preset {name} is scored on its tasks' own strings alone, not on"
          f' {", ".join(others)}.'
        )
  # What is impossible fails now, or never.
  made = devices.on_all(lambda: {cell.name: _make(cell) for cell in cells})
  devices.from_main(lambda: files.make_folder(results_dir))
  part_folder = os.path.join(workdir, f'part_{part.replace("/", "_of_")}')
  with locks.locked(part_folder):
    waiting = [c for c in cells if not _has_result(name, c, results_dir)]
    for cell in waiting:
      workdir_lib.check(cell.experiment, _folder(workdir, cell), _runs(cell))
    if name not in presets.PRESETS:
      devices.from_main(lambda: own.keep(name, whole or preset, results_dir))
    if len(waiting) < len(cells):
      progress.say(
        f'{len(cells) - len(waiting)} of {len(cells)} cells have results.'
      )
    steps_left = sum(cell.experiment.training_steps for cell in waiting)
    for i, cell in enumerate(waiting, len(cells) - len(waiting) + 1):
      if devices.largest(time.monotonic() > stop_at):
        progress.say('The time is over. Run the same command again to go on.')
        return False
      progress.say(f'Cell {i} of {len(cells)}: {cell.name}')
      steps_left -= cell.experiment.training_steps
      try:
        what = f'{i}/{len(cells)} {cell.name}'
        _measure(
          name,
          cell,
          made.pop(cell.name),
          workdir,
          results_dir,
          stop_at,
          what,
          steps_left,
        )
      except stopping.OutOfTimeError as error:
        progress.say(str(error))
        return False
  progress.say(
    'All have results. For the report: python -m launch.report'
    f' {shlex.join(report_flags)}'
  )
  return True


def _make(cell: grid.Cell) -> _Made:
  """Returns what a cell is made of.

  Raises:
    ValueError: If the cell is impossible.
  """
  experiment = cell.experiment
  with grid.blamed(cell.name):
    parameters.check_bounds('training_steps', experiment.training_steps, 1)
    longest = builders.longest_trained(experiment)
    has_longer = experiment.max_range_test_length > longest
    if not (has_longer or experiment.has_strings_alone):
      raise ValueError(
        f'max_range_test_length ({experiment.max_range_test_length}) must'
        f' exceed the longest training string ({longest}): the score is of'
        ' longer ones.'
      )
    task, model = builders.make_task_and_model(experiment)
    strings.check(experiment, task)
    limits.check(experiment, task, model, len(cell.runs))
  tests = {}
  for test, params in cell.tests.items():
    with grid.blamed(f'{cell.name}, the test {test!r}'):
      tested = dataclasses.replace(experiment, task_params=dict(params))
      other = task if tested == experiment else builders.make_task(tested)
      builders.check_sizes(other, task)
      tests[test] = tested, other
  return _Made(task, model, tests)


def _has_result(name: str, cell: grid.Cell, results_dir: str) -> bool:
  """Whether a cell is measured.

  Raises:
    ValueError: If what is measured is another experiment.
  """
  path = results.path(results_dir, name, cell)
  return results_lib.is_measured(
    path, lambda: numbers.differences(results.load(path), cell, 'here')
  )


def _folder(workdir: str, cell: grid.Cell) -> str:
  return os.path.join(workdir, 'cells', cell.task, cell.model)


def _runs(cell: grid.Cell) -> list[experiment_lib.Run]:
  return [(rate, seed, seed) for rate, seed in cell.runs]


def _measure(
  name: str,
  cell: grid.Cell,
  made: _Made,
  workdir: str,
  results_dir: str,
  stop_at: float,
  what: str,
  steps_after: int,
) -> None:
  """Trains, evaluates and writes the result of one cell."""
  experiment = cell.experiment
  task, model = made.task, made.model
  folder, runs = _folder(workdir, cell), _runs(cell)
  with locks.locked(folder):
    try:
      with workdir_lib.claimed(experiment, folder, runs):
        state = training.train(
          experiment,
          folder,
          task,
          model,
          runs,
          stop_at - time.monotonic(),
          what,
          steps_after,
        )
    except loop.DivergedError as error:
      progress.say('Every run has diverged.')
      state = error.state
    start = time.perf_counter()
    accuracies, constant = {}, {}
    trained = builders.longest_trained(experiment)
    for test, (tested, tested_task) in made.tests.items():
      if test:
        progress.say(f'Testing with {test}')
      found = evaluation.evaluate(tested, tested_task, model, state.params)
      for kind, values in found.items():
        named = evaluation.named(test, kind)
        accuracies[named] = values.accuracy
        # As a sweep's scores, which are means over lengths, of files too.
        score = evaluation.best_constant(values._replace(files=None), trained)
        if score is not None:
          constant[named] = score
    diverged_at = devices.fetch(state.diverged_at)
    evaluation_s = time.perf_counter() - start

    def write():
      result = results.make(
        name,
        cell,
        diverged_at,
        trained,
        1 / task.output_size,
        accuracies,
        metrics.read(folder),
        {'training': clock.seconds(folder), 'evaluation': evaluation_s},
        constant,
      )
      results.save(result, results.path(results_dir, name, cell))

    devices.from_main(write)
