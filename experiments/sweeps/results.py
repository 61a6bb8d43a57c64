"""A measured cell as one small JSON file, the unit that reports are made of."""

from collections.abc import Iterator, Sequence
import dataclasses
import datetime
import hashlib
import json
import math
import os
import reprlib
import typing
from typing import Any

import numpy as np

from experiments.engine import environment, files
from experiments.engine import experiment as experiment_lib
from experiments.engine import results as results_lib
from experiments.formal import builders
from experiments.formal import config as config_lib
from experiments.sweeps import grid

# Folder in a folder of results that holds those of language models.
LANGUAGE = 'language'
# What a user's sweep is, in the folder of its results: see `own.keep`.
DEFINITION = 'cells.json'
# Points of a training curve that are kept.
_MAX_CURVE_POINTS = 100
_DIGITS = 4


@dataclasses.dataclass(frozen=True)
class Result:
  """What a cell gave.

  Attributes:
    preset: The preset's name.
    task: The task's name in the preset.
    model: The model's name in the preset.
    experiment: Of the cell's first run, as `stored` gives it.
    runs: One dict a run: `learning_rate`, `seed`, and `diverged_at`, the step
      at which it diverged and was frozen, or None.
    training_length: The longest training string.
    chance: Accuracy of a uniform guess.
    accuracy: By test, then by run: accuracy at lengths 1, 2, ..., None where it
      is not tested.
    curves: Training curves: `step`, a list; `loss` (nats) and `accuracy`, a
      list for each run.
    wall_time_s: Seconds of `training` and of `evaluation`, of all runs
      together, compilation included; without the last part of a process that
      was killed.
    date: Of the measurement, as 2023-05-05.
    environment: Versions, device and commit of the process that finished it.
    constant: By test, the score of the best model that always gives one answer;
      not there of pairs, nor in older results.
  """

  preset: str
  task: str
  model: str
  experiment: dict[str, Any]
  runs: list[dict[str, Any]]
  training_length: int
  chance: float
  accuracy: dict[str, list[list[float | None]]]
  curves: dict[str, list]
  wall_time_s: dict[str, float]
  date: str
  environment: dict[str, Any]
  constant: dict[str, float] = dataclasses.field(default_factory=dict)

  @property
  def name(self) -> str:
    """That of its cell."""
    return f'{self.task}/{self.model}'


def of_no_preset(result: Result) -> ValueError:
  """Returns the error of a result whose preset has no such cell."""
  return ValueError(f'No preset has the cell {result.preset}/{result.name}.')


def make(
  preset: str,
  cell: grid.Cell,
  diverged_at: Sequence[int],
  training_length: int,
  chance: float,
  accuracy: dict[str, np.ndarray],
  metrics: Sequence[dict[str, float]],
  wall_time_s: dict[str, float],
  constant: dict[str, float] | None = None,
) -> Result:
  """Returns the result of a cell that has just been measured.

  Args:
    preset: The preset's name.
    cell: The cell.
    diverged_at: Of each run, -1 for none.
    training_length: The longest training string.
    chance: Accuracy of a uniform guess.
    accuracy: By test, [R, lengths], NaN where it is not tested.
    metrics: Rows of `metrics.read`.
    wall_time_s: Seconds of training and of evaluation.
    constant: By test, the score of the best constant answer.
  """
  return Result(
    preset=preset,
    task=cell.task,
    model=cell.model,
    experiment=stored(cell.experiment),
    runs=[
      {
        'learning_rate': learning_rate,
        'seed': seed,
        'diverged_at': None if step < 0 else int(step),
      }
      for (learning_rate, seed), step in zip(
        cell.runs, diverged_at, strict=True
      )
    ],
    training_length=training_length,
    chance=chance,
    accuracy={
      name: [
        [None if np.isnan(x) else _rounded(x) for x in row]
        for row in values.astype(float).tolist()
      ]
      for name, values in accuracy.items()
    },
    curves=_curves(metrics, len(cell.runs)),
    wall_time_s={k: round(v, 1) for k, v in wall_time_s.items()},
    date=datetime.date.today().isoformat(),
    environment=environment.current(),
    constant={k: _rounded(v) for k, v in (constant or {}).items()},
  )


def _rounded(accuracy: float) -> float:
  """Returns an accuracy as it is stored: 1 only if all was right."""
  at_most = 1 if accuracy == 1 else 1 - 10**-_DIGITS
  return min(round(accuracy, _DIGITS), at_most)


def stored(experiment: config_lib.Experiment) -> dict[str, Any]:
  """Returns an experiment's fields, in place of an automaton its checksum."""
  fields = json.loads(json.dumps(dataclasses.asdict(experiment)))
  if automaton := fields['automaton']:
    content = json.dumps(automaton, sort_keys=True).encode()
    fields['automaton'] = {
      'states': len(automaton['states']),
      'symbols': len(automaton['alphabet']),
      'sha256': hashlib.sha256(content).hexdigest(),
    }
  return fields


def experiment_of(result: Result) -> config_lib.Experiment:
  """Returns what was measured, as far as `stored` keeps it.

  A field that is newer than a result is what it always was: its default.
  """
  return config_lib.Experiment(**result.experiment)


def accuracies(result: Result, test: str) -> np.ndarray:
  """Returns [R, lengths], NaN where it is not tested."""
  return np.array(result.accuracy[test], float)


def _curves(
  metrics: Sequence[dict[str, float]], num_runs: int
) -> dict[str, list]:
  steps = sorted({row['step'] for row in metrics})
  stride = -(-len(steps) // _MAX_CURVE_POINTS) or 1
  # The last step is always among them.
  steps = steps[::-1][::stride][::-1]
  at = {(row['step'], row['run']): row for row in metrics}
  curves: dict[str, list] = {'step': steps}
  for name in ('loss', 'accuracy'):
    # None where a run has diverged, or a line was lost.
    values = [
      [at.get((step, run), {}).get(name) for step in steps]
      for run in range(num_runs)
    ]
    curves[name] = [
      [None if x is None else round(x, _DIGITS) for x in row] for row in values
    ]
  return curves


def path(folder: str, preset: str, cell: grid.Cell) -> str:
  """Returns where a cell's result lies in a folder of results."""
  return os.path.join(folder, preset, cell.task, f'{cell.model}.json')


def save(result: Result, file: str) -> None:
  """Writes a result, whole or not at all; makes the folder."""
  # A line a field: what changed can be seen.
  lines = [
    f'{json.dumps(name)}: {json.dumps(value)}'
    for name, value in dataclasses.asdict(result).items()
  ]
  text = '{\n' + ',\n'.join(lines) + '\n}\n'
  results_lib.save(file, text)


def load(file: str) -> Result:
  """Reads a result.

  Raises:
    ValueError: If it cannot be read, or is not the result of a cell.
  """

  def take(contents):
    names = [field.name for field in dataclasses.fields(Result)]
    # The last one is not in older results.
    if not isinstance(contents, dict) or not (
      {*names[:-1]} <= {*contents} <= {*names}
    ):
      raise ValueError(
        'it is no measured cell of a sweep, which has'
        f' {", ".join(names)}. (Of a trained run, its folder is compared.)'
      )
    result = Result(**contents)
    _check(result)
    return result

  return results_lib.load(file, take)


def _check(result: Result) -> None:
  """Refuses types, shapes and values that no measurement gives."""
  for field in dataclasses.fields(result):
    kind = typing.get_origin(field.type) or field.type
    kinds = (int, float) if kind is float else kind
    if not isinstance(getattr(result, field.name), kinds):
      raise ValueError(f'its {field.name} is not of type {kind.__name__}.')
  experiment = experiment_lib.of_fields(
    config_lib.Experiment, result.experiment
  )
  num_runs = len(result.runs)
  if not (num_runs and result.accuracy and result.training_length > 0):
    raise ValueError('it has no runs, accuracy or training length.')
  for run in result.runs:
    rate, seed, step = (
      run[name] for name in ('learning_rate', 'seed', 'diverged_at')
    )
    if not (
      _is_number(rate)
      and 0 < rate < math.inf
      and isinstance(seed, int)
      and (step is None or (isinstance(step, int) and 0 <= step < 2**31))
    ):
      raise ValueError(f'it has a run {reprlib.repr(run)}.')
  if not 0 <= result.chance <= 1:
    raise ValueError(f'its chance is {result.chance}.')
  for test, value in result.constant.items():
    if not (test in result.accuracy and _is_number(value) and 0 <= value <= 1):
      raise ValueError(f'its constant {test!r} is {reprlib.repr(value)}.')
  for name, seconds in result.wall_time_s.items():
    if not (_is_number(seconds) and 0 <= seconds < 1e9):
      raise ValueError(f'its wall time of {name} is {seconds!r} s.')
  for test, values in result.accuracy.items():
    array = _array(f'accuracy {test!r}', values)
    # Files of strings need not have longer ones.
    of_files = experiment.strings or experiment.test_strings
    longest = 0 if of_files else result.training_length
    if (
      array.shape[:1] != (num_runs,)
      or array.ndim != 2
      or array.shape[1] <= longest
    ):
      raise ValueError(
        f'its accuracy {test!r} is not of {num_runs} runs on lengths beyond'
        f' {longest}.'
      )
    if not ((array >= 0) & (array <= 1) | np.isnan(array)).all():
      raise ValueError(f'its accuracy {test!r} leaves 0..1.')
  steps = result.curves['step']
  if not all(isinstance(step, int) and 0 <= step < 2**31 for step in steps):
    raise ValueError("its training curve 'step' has something else than steps.")
  shape = (num_runs, len(steps))
  for name in ('loss', 'accuracy'):
    array = _array(f'training curve {name!r}', result.curves[name])
    if array.shape != shape:
      raise ValueError(f'its training curve {name!r} is not {shape}.')


def _is_number(value: Any) -> bool:
  return isinstance(value, (int, float)) and not isinstance(value, bool)


def _array(name: str, rows: Any) -> np.ndarray:
  """Returns rows of numbers as an array; None, where there is none, is NaN."""
  for row in rows:
    for value in row:
      if not (value is None or (_is_number(value) and value == value)):
        raise ValueError(f'its {name} has {reprlib.repr(value)}, no number.')
  return np.array(rows, float)


def trained_bounds(result: Result) -> tuple[int, int]:
  """Returns the shortest and the longest training string's length."""
  return builders.trained_bounds(config_lib.Experiment(**result.experiment))


def load_all(folder: str) -> Iterator[Result]:
  """Yields every result below a folder, in the order of their paths.

  Raises:
    ValueError: If a JSON file is no result, or that of another path's cell.
  """
  for name in files.below(folder):
    of_language = name.startswith(LANGUAGE + os.sep)
    is_sweep = os.path.basename(name) == DEFINITION and name.count(os.sep) < 2
    if name.endswith('.json') and not (of_language or is_sweep):
      file = os.path.join(folder, name)
      result = load(file)
      place = os.path.join(result.preset, result.task, f'{result.model}.json')
      if name != place:
        raise ValueError(
          f'{file} holds the result of {place}; it is in the wrong place, or'
          f' {folder} is not the folder above {result.preset}.'
        )
      yield result
