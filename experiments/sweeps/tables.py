"""Measured cells as tables: of accuracies, and of how they came about."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import datetime
import json
import shlex
from typing import NamedTuple

from scipy import stats

from experiments.engine import experiment as experiment_lib
from experiments.engine import tables as tables_lib
from experiments.formal import config as config_lib
from experiments.sweeps import grid, numbers, paper, presets, results

MISSING = 'missing'
# Of fewer runs an interval says nothing.
_MIN_SEEDS = 16
_DIVERGED = '†'
_DIFFERS = '‡'
_NO_LONGER = '§'

Tables = Mapping[str, Sequence[numbers.Entry]]
# Of text: a header and rows.
Text = tuple[list[str], list[list[str]]]


class Section(NamedTuple):
  """A part of a report.

  Attributes:
    title: Its heading.
    table: What it is about.
    legend: Says what the numbers are.
    details: Another table, if there is one.
  """

  title: str
  table: Text
  legend: str
  details: Text | None = None


def num_measured(entries: Sequence[numbers.Entry]) -> str:
  """Says how many cells of a table are measured."""
  cells = {(entry.preset, entry.cell.name): entry.result for entry in entries}
  number = sum(result is not None for result in cells.values())
  return f'{number} of {len(cells)} cells measured'


def model_name(entry: numbers.Entry) -> str:
  """Returns a model's name, saying so where the paper does not have it."""
  return entry.cell.model + (' (ours)' if entry.is_ours else '')


def legend(entries: Sequence[numbers.Entry]) -> str:
  """Says what the numbers of a table are."""
  about = dict.fromkeys(entry.about for entry in entries if entry.about)
  text = ''.join(f'{part} ' for part in about)
  text += 'Mean accuracy over all lengths beyond training, in percent'
  if any(entry.test for entry in entries):
    text += (
      ' (same length: accuracy at the longest training length, which any choice'
      ' saw)'
    )
  text += (
    '. Measured: Max / Avg / mean: the best of all runs, which sees the test /'
    ' the mean over the runs of the chosen learning rates / the mean over all'
    ' runs. Chosen is the rate of the highest mean over its seeds of'
    f' {choice(entry.preset for entry in entries)}, or all that are equal, as'
    ' where no such string is tested; where there is one rate alone, nothing'
    ' was chosen. Perfect runs are'
    ' right on every string beyond training (of many runs, with the interval of'
    ' Wilson, 1927, for their share). Chance is that of a uniform guess.'
  )
  if any(entry.paper for entry in entries):
    text += (
      ' Paper: Max / Avg of Chi et al. (2023). Difference: measured less paper.'
    )
  results_ = [entry.result for entry in entries if entry.result]
  if any(map(numbers.diverged, results_)):
    text += f' {_DIVERGED} Some runs diverged and count as frozen then.'
  if any(map(_has_no_longer, entries)):
    text += (
      f' {_NO_LONGER} Nothing beyond training is tested: the mean over all'
      ' lengths that are, which any choice saw.'
    )
  if any(differences(entry) for entry in entries):
    text += f' {_DIFFERS} Not as the preset says: see below.'
  return text


def choice(names: Iterable[str]) -> str:
  """Says by what the learning rates of presets' cells are chosen."""
  kinds = {numbers.is_chosen_on_test(name) for name in names}
  texts = {
    True: 'the scores that are shown, as in the paper (a choice that sees the'
    ' test)',
    False: 'the accuracies on strings of training lengths',
  }
  return " or, of ours and where there is no table of the paper's, ".join(
    texts[kind] for kind in sorted(kinds, reverse=True)
  )


def conditions(measured: Sequence[results.Result]) -> str:
  """Says where, when and with what results were measured."""

  def listed(name, num_characters=None):
    found = {str(r.environment.get(name))[:num_characters] for r in measured}
    return ', '.join(sorted(found))

  dates = ', '.join(sorted({result.date for result in measured}))
  return (
    f'Measured on {listed("device")}, {dates}, with jax {listed("jax")}, at'
    f' commits {listed("git_commit", 10)}.'
  )


def remarks(measured: Sequence[tuple[results.Result, grid.Cell]]) -> str:
  """Says which results were made otherwise than their cells, or diverged."""
  otherwise: dict[str, list[str]] = {}
  for result, cell in measured:
    if found := '; '.join(numbers.differences(result, cell)):
      otherwise.setdefault(found, []).append(result.name)
  text = ''
  for found, names in otherwise.items():
    which = ', '.join(names) if len(names) < len(measured) else 'every cell'
    text += f' Not as the preset: {which}: {found}.'
  if diverged := [r.name for r, _ in measured if numbers.diverged(r)]:
    text += f' Some runs diverged and count as frozen: {", ".join(diverged)}.'
  return text


def _has_no_longer(entry: numbers.Entry) -> bool:
  """Whether an entry's number is none of lengths beyond training."""
  return (
    entry.ours is not None
    and entry.setting == paper.EXTRAPOLATION
    and not numbers.has_longer(entry.result, entry.test)
  )


def differences(entry: numbers.Entry) -> list[str]:
  """Returns how an entry's result was made otherwise than its cell says."""
  if entry.result is None:
    return []
  return numbers.differences(entry.result, entry.cell)


def accuracies(entries: Sequence[numbers.Entry]) -> Text:
  """Returns the table of accuracies: rows of tasks, columns of models."""
  models = list(dict.fromkeys(map(model_name, entries)))
  by_row: dict[tuple[str, ...], dict[str, numbers.Entry]] = {}
  for entry in entries:
    row = (entry.cell.task, entry.test, entry.setting if entry.test else '')
    by_row.setdefault(row, {})[model_name(entry)] = entry
  rows = []
  for row, by_model in by_row.items():
    kinds = {
      'measured': [_measured(by_model[model]) for model in models],
      'paper': [_published(by_model[model]) for model in models],
      'difference': [_difference(by_model[model]) for model in models],
    }
    label = ', '.join(filter(None, row))
    for kind, texts in kinds.items():
      if any(texts):
        rows.append([label, kind, *texts])
        label = ''
  return ['task', '', *models], rows


def _measured(entry: numbers.Entry) -> str:
  if entry.ours is None:
    return MISSING
  found = (entry.ours.max, entry.ours.avg, entry.ours.mean)
  text = ' / '.join(map(tables_lib.percent, found))
  if numbers.diverged(entry.result):
    text += f' {_DIVERGED}'
  if _has_no_longer(entry):
    text += f' {_NO_LONGER}'
  if differences(entry):
    text += f' {_DIFFERS}'
  return text


def _published(entry: numbers.Entry) -> str:
  if entry.paper is None:
    return ''
  return ' / '.join(map(tables_lib.percent, (entry.paper.max, entry.paper.avg)))


def _difference(entry: numbers.Entry) -> str:
  if entry.ours is None or entry.paper is None:
    return ''
  pairs = ((entry.ours.max, entry.paper.max), (entry.ours.avg, entry.paper.avg))
  # Of the numbers as they are shown.
  return ' / '.join(
    tables_lib.percent(None if theirs is None else round(ours, 1) - theirs, '+')
    for ours, theirs in pairs
  )


def provenance(entries: Sequence[numbers.Entry]) -> Text:
  """Returns how each measured cell of a table was made, a row a cell."""
  header = [
    'task',
    'model',
    'flags',
    'chance',
    'learning rate',
    'score of each run by learning rate',
    'perfect runs',
    'diverged',
    'steps',
    'not as the preset',
    'lengths',
    'device',
    'training + evaluation',
    'date',
    'versions',
    'commit',
  ]
  by_cell: dict[tuple[str, str], list[numbers.Entry]] = {}
  for entry in entries:
    if entry.ours is not None:
      by_cell.setdefault((entry.preset, entry.cell.name), []).append(entry)
  rows = []
  for same in by_cell.values():
    entry, result = same[0], same[0].result
    is_short = len(result.runs) < _MIN_SEEDS  # The CSV has all.
    rows.append(
      [
        entry.cell.task,
        model_name(entry),
        flags(entry),
        _chance(same),
        _rate(same),
        scores(entry) if len(same) == 1 and is_short else '',
        _perfect(result),
        '; '.join(
          f'learning rate {run["learning_rate"]:g}, seed {run["seed"]}, at step'
          f' {run["diverged_at"]}'
          for run in numbers.diverged(result)
        )
        or 'none',
        str(result.experiment.get('training_steps')),
        '; '.join(differences(entry)),
        _lengths(entry),
        _device(result),
        f'{_duration(result, "training")} + {_duration(result, "evaluation")}',
        result.date,
        _versions(result),
        str(result.environment.get('git_commit'))[:10],
      ]
    )
  return header, rows


def flags(entry: numbers.Entry) -> str:
  """Returns what a cell of a user's sweep is, as flags of launch.train."""
  if entry.preset in presets.PRESETS:
    return ''
  default = config_lib.Experiment()
  found = dataclasses.asdict(results.experiment_of(entry.result))
  if automaton := found['automaton']:
    found['automaton'] = (
      f'{automaton["states"]} states, {automaton["symbols"]} symbols'
    )
  if found['strings']:
    found['strings'] = found['strings']['file']
  found['test_strings'] = ','.join(found['test_strings'])
  return ' '.join(
    f'--{name}='
    + shlex.quote(value if isinstance(value, str) else json.dumps(value))
    for name, value in found.items()
    if value
    and value != getattr(default, name)
    and name not in experiment_lib.RUN_FIELDS
  )


def scores(entry: numbers.Entry) -> str:
  """Returns the score of each run, in the order of its seeds."""
  result = entry.result
  scores = numbers.scores_of_runs(result, entry.test, entry.setting)
  return ', '.join(
    f'{rate:g}: '
    + ' '.join(
      tables_lib.percent(scores[i]) for i in numbers.runs_at(result, [rate])
    )
    for rate in numbers.learning_rates(result)
  )


def _chance(entries: Sequence[numbers.Entry]) -> str:
  """Returns the accuracy of a guess, and that of the best constant answer."""
  result = entries[0].result
  text = tables_lib.percent(100 * result.chance)
  tests = dict.fromkeys(entry.test for entry in entries)
  constants = ', '.join(
    f'{test} {tables_lib.percent(100 * result.constant[test])}'.strip()
    for test in tests
    if test in result.constant
  )
  return f'{text} (best constant answer: {constants})' if constants else text


def _rate(entries: Sequence[numbers.Entry]) -> str:
  """Returns the learning rate, and what of the others was seen."""
  result = entries[0].result
  # Each test has its own in the paper's tables.
  text = ' or '.join(
    dict.fromkeys(numbers.spelled(e.ours.learning_rates) for e in entries)
  )
  rates = numbers.learning_rates(result)
  if numbers.is_chosen_on_test(result.preset) or len(rates) == 1:
    return text
  means = numbers.means_by_rate(result, numbers.on_training_lengths(result))
  said = (f'{rate:g} {tables_lib.percent(x)}' for rate, x in means.items())
  return f'{text} (accuracy on training lengths: {", ".join(said)})'


def _perfect(result: results.Result) -> str:
  """Says how many runs are perfect, and of how many more that would tell."""
  found, total = numbers.num_perfect(result), len(result.runs)
  text = f'{found} of {total}' + ' on all tests' * (len(result.accuracy) > 1)
  if total < _MIN_SEEDS:
    return text
  interval = stats.binomtest(found, total).proportion_ci(0.95, 'wilson')
  return f'{text} (95%: {100 * interval.low:.0f}..{100 * interval.high:.0f}%)'


def _lengths(entry: numbers.Entry) -> str:
  trained = entry.result.training_length
  longest = len(entry.result.accuracy[entry.test][0])
  if not numbers.has_longer(entry.result, entry.test):
    return f'trained up to {trained}, tested none beyond'
  return f'trained up to {trained}, tested {trained + 1}..{longest}'


def _device(result: results.Result) -> str:
  environment = result.environment
  return f'{environment.get("num_devices")} x {environment.get("device")}'


def _versions(result: results.Result) -> str:
  environment = result.environment
  return (
    f'jax {environment.get("jax")}, flax {environment.get("flax")},'
    f' Python {environment.get("python")}'
  )


def _duration(result: results.Result, part: str) -> str:
  seconds = round(result.wall_time_s.get(part, 0))
  return str(datetime.timedelta(seconds=seconds))
