"""Trained runs and measured cells side by side: one table, one picture.

What is read is what was written when they were evaluated; nothing is evaluated
again, and no code that a folder names is run.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import hashlib
import json
import os
from typing import Any

import numpy as np

from experiments.engine import files, pictures
from experiments.engine import results as results_lib
from experiments.engine import tables as tables_lib
from experiments.engine import workdir as workdir_lib
from experiments.formal import accuracy_curves, builders, report
from experiments.formal import config as config_lib
from experiments.sweeps import (
  grid,
  numbers,
  own,
  presets,
  results,
  tables,
)

NAME = 'comparison'
_MAX_VALUE = 40
# Of the table of what differs; beyond it the longer side goes down.
_MAX_COLUMNS = 8
# Is no field: a sweep's tests may have other parameters of the task than it
# trains with.
_AT_TEST = 'task_params at test'
_PERFECT = (
  'Accuracies are in percent. `perfect`: how many of all runs are right on all'
  ' strings beyond training.'
)


@dataclasses.dataclass(frozen=True)
class Curve:
  """Accuracy against length.

  Attributes:
    name: Of the folder, and of the cell in it.
    fields: Of the experiment; a cell's learning rates, the chosen ones, are a
      list, as its seeds.
    accuracy: Of each run, at lengths 1, 2, ..., [S, lengths]; NaN where it is
      not tested.
    training_length: The longest training string; 0 if nothing was trained.
    chance: Accuracy of a uniform guess.
    shortest_trained: The shortest training string.
    preset: Of the cell, if it is one.
    num_runs: Of the cell, at all learning rates, if it is one.
    num_perfect: How many of these are right on all strings beyond training.
  """

  name: str
  fields: Mapping[str, Any]
  accuracy: np.ndarray
  training_length: int
  chance: float
  shortest_trained: int
  preset: str | None
  num_runs: int
  num_perfect: int


def compare(places: Sequence[str], output_dir: str) -> None:
  """Prints a comparison, and writes it as Markdown, CSV and PNG.

  Args:
    places: Each the workdir of a run, the folder of an evaluation, the workdir
      of a sweep, a folder of results, or the file of a measured cell.
    output_dir: Where to, made if it does not exist.

  Raises:
    ValueError: If a place has nothing to compare, or cannot be read.
    OSError: If a file cannot be written.
  """
  if not places:
    raise ValueError('--workdirs names no folder to compare.')
  if not all(places):  # Which would be the folder that one stands in.
    raise ValueError(f'--workdirs has an empty name: {",".join(places)!r}.')
  if len({*map(os.path.realpath, places)}) < len(places):
    raise ValueError('--workdirs has the same folder twice.')
  curves = [curve for place in places for curve in _curves(place)]
  header, rows = _accuracies(curves)
  text = tables_lib.markdown(header, rows) + f'\n\n{_note(curves)}'
  differing = _differences(curves)
  if differing[1]:
    text += '\n\nWhat differs:\n\n' + tables_lib.markdown(*differing)
  tasks = {_meant(curve.fields, 'task') for curve in curves}
  task = f' on {tasks.pop()}' if len(tasks) == 1 and all(tasks) else ''
  picture = accuracy_curves.picture(
    f'accuracy{task} against length',
    [
      accuracy_curves.Line(curve.name, curve.accuracy, pictures.style(i))
      for i, curve in enumerate(curves)
    ],
    {
      (curve.shortest_trained, curve.training_length)
      for curve in curves
      if curve.training_length
    },
    {curve.chance for curve in curves},
  )
  files.make_folder(output_dir)
  path = os.path.join(output_dir, NAME)
  files.write_atomically(f'{path}.md', f'# Comparison\n\n{text}\n')
  files.write_atomically(
    f'{path}.csv', tables_lib.comma_separated(_by_length(curves))
  )
  files.write_atomically(f'{path}.png', picture)
  print(text)
  print(f'picture: {path}.png')


def _note(curves: Sequence[Curve]) -> str:
  """Says how the learning rates of cells were chosen, and what is perfect."""
  names = {curve.preset for curve in curves if curve.preset is not None}
  if not names:
    return _PERFECT
  return (
    'A cell with several learning rates is shown at the one of the highest mean'
    f' over its seeds of {tables.choice(names)}, or at all that are equal.'
    f' {_PERFECT}'
  )


def _curves(place: str) -> Iterator[Curve]:
  """Yields what there is to compare in a place."""
  if place.endswith('.json'):
    result = results.load(place)
    above = os.path.dirname(os.path.dirname(files.absolute(place)))
    is_kept = files.exists(os.path.join(above, results.DEFINITION))
    known = _presets(os.path.dirname(above)) if is_kept else presets.PRESETS
    yield from _of_result(place, result, known)
    return
  if not files.is_folder(place):
    raise ValueError(f'There is no folder {place}.')
  if files.exists(os.path.join(place, f'{report.NAME}.json')):
    found = report.load(place)
    accuracy = found.accuracy[None]
    # What was compiled was trained on nothing.
    is_trained = found.experiment.training_steps > 0
    trained = found.training_length if is_trained else 0
    yield Curve(
      place,
      {
        **results.stored(found.experiment),
        _AT_TEST: found.experiment.task_params,
      },
      accuracy,
      trained,
      found.chance,
      shortest_trained=builders.trained_bounds(found.experiment)[0],
      preset=None,
      num_runs=1,
      num_perfect=int(numbers.is_perfect(accuracy, trained).sum()),
    )
    return
  in_workdir = os.path.join(place, results_lib.FOLDER)
  folder = in_workdir if files.is_folder(in_workdir) else place
  is_run = workdir_lib.holds_run(place)
  known = {} if is_run else _presets(folder)
  found = [] if is_run else list(results.load_all(folder))
  has_many = len({result.preset for result in found}) > 1
  for result in found:
    name = f'{place}: {f"{result.preset}/" * has_many}{result.name}'
    yield from _of_result(name, result, known)
  if not found:
    raise ValueError(
      f'{place} has nothing to compare: neither {report.NAME}.json, which'
      ' launch.train and launch.evaluate write, nor measured cells of a sweep.'
    )


def _presets(folder: str) -> Mapping[str, grid.Preset]:
  """Returns ours, and the sweeps that are kept in a folder of results."""
  return {**own.kept(folder), **presets.PRESETS}


def _of_result(
  name: str, result: results.Result, known: Mapping[str, grid.Preset]
) -> Iterator[Curve]:
  """Yields a cell's tests, each at the learning rates that its report has.

  Args:
    name: Of the cell.
    result: Its result.
    known: Sweeps, which say what a test's parameters are.
  """
  preset = known.get(result.preset)
  tests = preset.tests.get(result.task, {}) if preset else {}
  for test in result.accuracy:
    accuracy = results.accuracies(result, test)
    rates, runs = numbers.chosen(result, test)
    seeds = sorted({result.runs[i]['seed'] for i in runs})
    params = result.experiment.get('task_params', {})
    fields = {
      **dataclasses.asdict(config_lib.Experiment()),
      **result.experiment,
      # Behind a comma stands a further kind of strings.
      _AT_TEST: tests.get(test.partition(', ')[0], params),
      'learning_rate': rates,
      'seed': seeds,
      'model_init_seed': seeds,
    }
    yield Curve(
      ', '.join(filter(None, (name, test))),
      fields,
      accuracy[runs],
      result.training_length,
      result.chance,
      shortest_trained=results.trained_bounds(result)[0],
      preset=result.preset,
      num_runs=len(accuracy),
      num_perfect=numbers.num_perfect(result, test),
    )


def _accuracies(curves: Sequence[Curve]) -> tuple[list[str], list[list[str]]]:
  """Returns the table of accuracies, in percent, a row for each curve.

  Means are over the lengths that are tested. The last column, if there is one,
  is over the lengths beyond training that all have, without which scores on
  different lengths would be compared.
  """
  longest_trained = max(curve.training_length for curve in curves)
  tested_by_each = [set(_tested(curve).tolist()) for curve in curves]
  in_common = [
    length
    for length in sorted(set.intersection(*tested_by_each))
    if length > longest_trained
  ]
  header = [
    '',
    'trained up to',
    'accuracy there',
    'tested on',
    'score',
    'worst',
    'chance',
    'runs',
    'perfect',
  ]
  if in_common:
    header.append(f'on {in_common[0]}..{in_common[-1]}')
  rows = []
  for curve in curves:
    trained = curve.training_length
    beyond = _tested(curve)
    beyond = beyond[beyond > trained]
    mean_T = curve.accuracy.mean(axis=0)
    worst = int(np.argmin(np.nan_to_num(mean_T, nan=np.inf)))
    row = [
      curve.name,
      str(trained) if trained else '-',
      _percent(mean_T[:trained]),
      f'{beyond[0]}..{beyond[-1]}' if beyond.size else '-',
      _percent(mean_T[trained:]),
      _percent(mean_T[worst : worst + 1])
      + f' at {worst + 1}' * bool(mean_T[worst] < np.nanmax(mean_T)),
      _percent(np.array([curve.chance])),
      _of(len(curve.accuracy), curve.num_runs),
      f'{curve.num_perfect} of {curve.num_runs}' if beyond.size else '-',
    ]
    if in_common:
      row.append(_percent(mean_T[np.array(in_common) - 1]))
    rows.append(row)
  return header, rows


def _tested(curve: Curve) -> np.ndarray:
  """Returns the lengths that every run is tested on."""
  return np.flatnonzero(~np.isnan(curve.accuracy).any(axis=0)) + 1


def _of(number: int, total: int) -> str:
  return f'{number} of {total}' if number < total else str(number)


def _percent(values: np.ndarray) -> str:
  values = values[~np.isnan(values)]
  return tables_lib.percent(100 * values.mean() if values.size else None)


def _differences(curves: Sequence[Curve]) -> tuple[list[str], list[list[str]]]:
  """Returns the table of the fields in which experiments differ, a row each."""
  free = {
    field.name
    for field in dataclasses.fields(config_lib.Experiment)
    if field.metadata.get('may_change')
  }
  names = dict.fromkeys(name for curve in curves for name in curve.fields)
  rows = []
  for name in names:
    shown = [_shown(_meant(curve.fields, name)) for curve in curves]
    if name not in free and len(set(shown)) > 1:
      rows.append([name, *shown])
  header = ['', *(curve.name for curve in curves)]
  if len(curves) > max(_MAX_COLUMNS, len(rows)):
    header, *rows = map(list, zip(header, *rows, strict=True))
  return header, rows


def _meant(fields: Mapping[str, Any], name: str) -> Any:
  """Returns a field's value; nothing for what has no meaning."""
  value = fields.get(name)
  others = {
    'task': ('task_module', *config_lib.SOURCES),
    'architecture': ('model_module',),
  }
  if name in config_lib.RANGE_FIELDS and config_lib.has_strings_alone(fields):
    return ''
  is_replaced = any(fields.get(other) for other in others.get(name, ()))
  is_default = value == getattr(config_lib.Experiment, name, None)
  return '' if is_replaced and is_default else value


def _shown(value: Any) -> str:
  """Returns a field's value, short; long ones are told apart by a checksum."""
  text = json.dumps(value, ensure_ascii=False)
  if isinstance(value, str):
    text = value
  if isinstance(value, list) and len(value) == 1:
    text = json.dumps(value[0])
  if len(text) > _MAX_VALUE:
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    text = f'{text[:_MAX_VALUE]}... ({digest})'
  return text or '-'


def _by_length(curves: Sequence[Curve]) -> Iterator[Sequence[Any]]:
  """Yields the rows of a table of each curve's mean at each length."""
  yield ['length', *(curve.name for curve in curves)]
  means = [curve.accuracy.mean(axis=0) for curve in curves]
  for i in range(max(map(len, means))):
    at = (mean_T[i] if i < len(mean_T) else np.nan for mean_T in means)
    yield [i + 1, *map(float, at)]
