"""Cells of protocols as tables: scores beside the published ones.

The choice never sees what is scored: see `protocols`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.engine import tables as tables_lib
from experiments.sweeps import (
  grid,
  numbers,
  presets,
  protocols,
  results,
  tables,
)


class Score(NamedTuple):
  """What a cell comes to, in percent; NaN for what is not tested.

  Attributes:
    learning_rates: The chosen ones.
    trained: Accuracy on fresh strings of training lengths, by which they were
      chosen; the mean over their runs.
    mean: Score, the mean over these runs.
    best: Of them.
    perfect: How many of them are right on every string that is scored.
    runs: How many there are.
  """

  learning_rates: Sequence[float]
  trained: float
  mean: float
  best: float
  perfect: int
  runs: int


def measure(result: results.Result) -> Score:
  """Returns the numbers of a cell."""
  protocol = protocols.PROTOCOLS[result.preset]
  last = numbers.longest_unscored(result)
  rates, runs = numbers.chosen(result, '')
  accuracy_RxT = results.accuracies(result, '')[runs]
  score_R = numbers.means(accuracy_RxT[:, last:])
  if protocol.is_scaled:
    score_R = (score_R - result.chance) / (1 - result.chance)
  return Score(
    rates,
    float(numbers.on_training_lengths(result)[runs].mean()),
    *(float(100 * x) for x in (score_R.mean(), score_R.max())),
    perfect=int(numbers.is_perfect(accuracy_RxT, last).sum()),
    runs=len(runs),
  )


def table(preset: str, measured: Sequence[results.Result]) -> tables.Text:
  """Returns a header and rows, task by task, as the preset has them."""
  known = [*presets.PRESETS[preset].tasks], [*presets.PRESETS[preset].models]

  def place(result):
    return known[0].index(result.task), known[1].index(result.model)

  published = protocols.PROTOCOLS[preset].published
  rows = []
  before = None
  for result in sorted(measured, key=place):
    score = measure(result)
    label, before = (result.task if result.task != before else ''), result.task
    rows.append(
      [
        label,
        result.model,
        tables_lib.percent(score.mean),
        tables_lib.percent(score.best),
        f'{score.perfect} of {score.runs}',
        tables_lib.percent(score.trained),
        numbers.spelled(score.learning_rates),
        '; '.join(
          f'{number.percent:.1f} ({number.source})'
          for number in published.get((result.task, result.model), ())
        ),
      ]
    )
  header = [
    *('task', 'model', 'mean', 'best', 'perfect runs', 'training lengths'),
    *('learning rates', 'published'),
  ]
  return header, rows


def overview(preset: str, measured: Sequence[results.Result]) -> tables.Text:
  """Returns a header and rows: a model each, with a column for each task.

  An entry has the mean of what is scored, the number of perfect runs, if any,
  and in parentheses the accuracy on trained lengths.
  """
  by_cell = {(result.task, result.model): result for result in measured}

  def shown(task, model):
    if (task, model) not in by_cell:
      return ''
    score = measure(by_cell[task, model])
    perfect = f', {score.perfect} of {score.runs}' if score.perfect else ''
    trained = '-' if np.isnan(score.trained) else f'{score.trained:.0f}'
    if trained == '100' and score.trained < 100:
      trained = '>99'
    return f'{tables_lib.percent(score.mean)}{perfect} ({trained})'

  found_tasks, found_models = map(set, zip(*by_cell, strict=True))
  tasks = [x for x in presets.PRESETS[preset].tasks if x in found_tasks]
  models = [x for x in presets.PRESETS[preset].models if x in found_models]
  return ['model', *tasks], [
    [model, *(shown(task, model) for task in tasks)] for model in models
  ]


def legend(preset: str, measured: Sequence[results.Result]) -> str:
  """Says what the numbers are, and how cells were run otherwise."""
  chances = {r.task: f'{100 * r.chance:.1f} ({r.task})' for r in measured}
  floors = ''
  if presets.PRESETS[preset].base.get('answers') == 'prefixes':
    found = [f'{x:.1f} ({r.task})' for r in measured if (x := floor(r))]
    if found:
      floors = (
        ' Prefixes of trained lengths count too: what is right on these, and'
        f' guesses beyond, gets {", ".join(dict.fromkeys(found))}.'
      )
  cells = {cell.name: cell for cell in grid.cells(presets.PRESETS[preset])}
  num_strings = {
    str(results.experiment_of(result).range_test_batch_size)
    for result in measured
  }
  text = (
    f'{presets.PRESETS[preset].about}'
    f'{tables.remarks([(r, cells[r.name]) for r in measured])}'
    ' In percent: mean, best and perfect runs (right on every string that is'
    f' scored, of each length {" or ".join(sorted(num_strings))}) are of the'
    ' runs of the chosen rates; best is picked by what is scored; training'
    ' lengths is the accuracy that rates were chosen by. Published numbers are'
    ' of other models, recipes and choices, as each says. Chance is'
    f' {", ".join(chances.values())}.{floors} {tables.conditions(measured)}'
  )
  usual = presets.PRESETS[preset].base['sequence_length']
  for result in measured:
    if result.training_length != usual:
      text += (
        f' {result.name}: trained to {result.training_length}, scored from'
        f' {numbers.longest_unscored(result) + 1}.'
      )
  return text


def floor(result: results.Result) -> float | None:
  """Returns what prefixes of trained lengths alone get, in percent.

  It is the mean over the lengths that are scored, None without any, if a model
  is right on each such prefix, and at chance on longer ones.
  """
  is_tested_T = ~np.isnan(results.accuracies(result, '')).any(axis=0)
  lengths = np.flatnonzero(is_tested_T) + 1
  lengths = lengths[lengths > numbers.longest_unscored(result)]
  if not lengths.size:
    return None
  trained = result.training_length / lengths
  return float(100 * np.mean(trained + (1 - trained) * result.chance))


def of(found: Sequence[results.Result]) -> list[results.Result]:
  """Returns those of a protocol.

  Raises:
    ValueError: If one of them cannot be scored.
  """
  measured = [r for r in found if r.preset in protocols.PROTOCOLS]
  for result in measured:
    if '' not in result.accuracy or result.chance == 1:
      raise ValueError(
        f"The result {result.preset}/{result.name} has no test of its task's"
        ' own strings, or a chance of 1.'
      )
  return measured


def by_preset(
  measured: Sequence[results.Result],
) -> dict[str, list[results.Result]]:
  """Returns the results of each protocol that has any, of results of any kind.

  Raises:
    ValueError: If a result is not of a preset's cell.
  """
  found: dict[str, list[results.Result]] = {}
  for result in of(measured):
    preset = presets.PRESETS[result.preset]
    if result.task not in preset.tasks or result.model not in preset.models:
      raise results.of_no_preset(result)
    found.setdefault(result.preset, []).append(result)
  return {name: found[name] for name in protocols.PRESETS if name in found}


def sections(measured: Sequence[results.Result]) -> list[tables.Section]:
  """Returns a section for each protocol that has results, of any kind."""
  return [
    tables.Section(
      f'{preset}: {len(found)} of {len(grid.cells(presets.PRESETS[preset]))}'
      ' cells measured',
      table(preset, found),
      legend(preset, found),
    )
    for preset, found in by_preset(measured).items()
  ]


def comma_separated(measured: Sequence[results.Result]) -> str:
  """Returns every cell's numbers as CSV, a line each."""
  header = [
    *('preset', 'task', 'model', *Score._fields),
    *('training_length', 'training_steps', 'strings_of_each_length'),
    *('date', 'device', 'jax', 'commit'),
  ]
  rows = []
  for result in measured:
    experiment = results.experiment_of(result)
    score = measure(result)
    score = score._replace(learning_rates=numbers.spelled(score.learning_rates))
    score = (float(f'{x:.8g}') if isinstance(x, float) else x for x in score)
    rows.append(
      [
        *(result.preset, result.task, result.model, *score),
        result.training_length,
        experiment.training_steps,
        experiment.range_test_batch_size,
        result.date,
        *(result.environment.get(x) for x in ('device', 'jax', 'git_commit')),
      ]
    )
  return tables_lib.comma_separated([header, *rows])
