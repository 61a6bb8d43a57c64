"""Measured regular languages by class, as MLRegTest reports them.

MLRegTest (van der Poel et al., 2023) names a language by its alphabet's size,
its tier's, its class, k, a threshold and a number, as 04.03.TSL.2.1.9, and
tests on four kinds of strings: short ones, of the training lengths, and long
ones; random ones, and adversarial ones, pairs at edit distance 1.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from experiments.engine import tables as tables_lib
from experiments.formal import adversarial, range_evaluation
from experiments.formal import config as config_lib
from experiments.sweeps import (
  grid,
  numbers,
  presets,
  results,
  tables,
)

PRESET = presets.OF_AUTOMATA
# Short and long, random and adversarial; called as MLRegTest's test sets.
_KINDS = {
  'SR': ('', False),
  'SA': (adversarial.NAME, False),
  'LR': ('', True),
  'LA': (adversarial.NAME, True),
}
# In the order of the paper; a T in front is for tiers.
_CLASSES = (
  *('SL', 'coSL', 'TSL', 'TcoSL', 'SP', 'coSP', 'LT', 'TLT', 'PT', 'LTT'),
  *('TLTT', 'PLT', 'TPLT', 'SF', 'Zp', 'Reg'),
)
_OTHER = 'other'


class Language(NamedTuple):
  """What one model did on one language.

  Attributes:
    result: Where it comes from.
    learning_rates: Those that are best on short random strings.
    percent: Accuracy on each of `_KINDS`, the mean over their runs.
  """

  result: results.Result
  learning_rates: Sequence[float]
  percent: Mapping[str, float]


def _class_of(task: str) -> str:
  """Returns the class in a language's name, 'other' if it is not written so."""
  parts = task.split('.')
  return parts[2] if len(parts) > 3 and parts[2].isalpha() else _OTHER


def of(found: Sequence[results.Result]) -> list[results.Result]:
  """Returns those of the preset whose tasks are a user's automata."""
  return [r for r in found if r.preset == PRESET]


def measure(result: results.Result) -> Language:
  """Returns the numbers of a result.

  The learning rate is chosen on SR, which no other column has a part in.
  """

  def percent(kind, run):
    test, is_long = _KINDS[kind]
    if test not in result.accuracy:
      return np.nan
    accuracy_T = results.accuracies(result, test)[run]
    trained = result.training_length
    part = accuracy_T[trained:] if is_long else accuracy_T[:trained]
    mean = range_evaluation.mean(part)
    return np.nan if mean is None else 100 * mean

  rates, runs = numbers.chosen(result, '')
  means = {k: float(np.mean([percent(k, run) for run in runs])) for k in _KINDS}
  return Language(result, rates, means)


def by_class(languages: Sequence[Language]) -> tables.Text:
  """Returns a header and rows: means over the languages of each class.

  They are over the languages that all models have, without which models would
  be compared on different ones.
  """
  shared = _of_all_models(languages)
  names = {_class_of(language.result.task) for language in shared}
  known = [name for name in _CLASSES if name in names]
  rows = []
  for name in [*known, *sorted(names.difference(known)), 'all']:
    members = [
      language
      for language in shared
      if name in ('all', _class_of(language.result.task))
    ]
    number = len({language.result.task for language in members})
    rows += _rows([name, str(number)], members)
  return ['class', 'languages', 'model', *_KINDS], rows


def _of_all_models(languages: Sequence[Language]) -> list[Language]:
  """Returns those of the languages on which every model is measured."""
  models_of = collections.defaultdict(set)
  for language in languages:
    models_of[language.result.task].add(language.result.model)
  models = set().union(*models_of.values())
  return [x for x in languages if models_of[x.result.task] == models]


def by_language(languages: Sequence[Language]) -> tables.Text:
  """Returns a header and rows, for each language one a model."""
  rows = []
  for task in sorted({language.result.task for language in languages}):
    members = [x for x in languages if x.result.task == task]
    automaton = members[0].result.experiment['automaton']
    sizes = [str(automaton[name]) for name in ('states', 'symbols')]
    rows += _rows([task, *sizes], members)
  return ['language', 'states', 'symbols', 'model', *_KINDS], rows


def _rows(
  labels: Sequence[str], members: Sequence[Language]
) -> list[list[str]]:
  """Returns a row for each model, the labels in the first only."""
  rows = []
  for model in sorted({language.result.model for language in members}):
    row = [*(labels if not rows else [''] * len(labels)), model]
    of_model = [x.percent for x in members if x.result.model == model]
    for kind in _KINDS:
      values = [percent[kind] for percent in of_model]
      values = [value for value in values if not np.isnan(value)]
      row.append(tables_lib.percent(np.mean(values) if values else None))
    rows.append(row)
  return rows


def _seeds(result: results.Result) -> str:
  return str(len({run['seed'] for run in result.runs}))


def _perfect(languages: Sequence[Language]) -> str:
  """Says how many runs of each model are perfect."""
  found = collections.defaultdict(list)
  for result in (language.result for language in languages):
    found[result.model].append((numbers.num_perfect(result), len(result.runs)))
  sums = {model: np.sum(pairs, axis=0) for model, pairs in found.items()}
  return ', '.join(
    f'{model} {perfect} of {runs}'
    for model, (perfect, runs) in sorted(sums.items())
  )


def legend(languages: Sequence[Language]) -> str:
  """Says what the numbers are."""

  def trained(result):
    is_tested = ~np.isnan(results.accuracies(result, '')[0])
    return f'{np.argmax(is_tested) + 1} to {result.training_length}'

  def beyond(result):
    return f'{result.training_length + 1} to {len(result.accuracy[""][0])}'

  def steps(result):
    return f'{result.experiment["training_steps"]:,}'

  text = (
    'Accuracy in percent, the mean over languages. Trained for'
    f' {_listed(languages, steps)} steps on random strings of'
    f' {_listed(languages, trained)} symbols. SR: other random strings of these'
    f' lengths. LR: of {_listed(languages, beyond)}. SA and LA: pairs of a'
    ' string in the language and one outside it at edit distance 1, of these'
    f' lengths. The learning rate is the one of {_rates(languages)} that is'
    ' best on SR, the mean over its seeds, or all that are equal; seeds:'
    f' {_listed(languages, _seeds)}. Runs at any rate that are right on all'
    f' strings of LR and LA: {_perfect(languages)}. Chance is'
    f' {_listed(languages, lambda r: f"{100 * r.chance:.0f}")}.'
    f' {tables.conditions([x.result for x in languages])}'
  )
  shared = {x.result.task for x in _of_all_models(languages)}
  if partial := {x.result.task for x in languages} - shared:
    text += (
      ' Not in the means, since some model is not measured on them:'
      f' {", ".join(sorted(partial))}.'
    )
  return text + tables.remarks([_with_cell(x.result) for x in languages])


def _with_cell(result: results.Result) -> tuple[results.Result, grid.Cell]:
  """Returns a result and its cell, both without their automaton.

  Of which a result has no more than a checksum.

  Raises:
    ValueError: If the preset has no such model.
  """
  preset = presets.PRESETS[PRESET]
  if result.model not in preset.models:
    raise results.of_no_preset(result)
  (cell,) = grid.cells(
    dataclasses.replace(
      preset,
      tasks={result.task: {'task': config_lib.Experiment.task}},
      models={result.model: preset.models[result.model]},
    )
  )
  fields = {**result.experiment, 'automaton': {}}
  return dataclasses.replace(result, experiment=fields), cell


def _listed(
  languages: Sequence[Language], get: Callable[[results.Result], Any]
) -> str:
  return ', '.join(sorted({str(get(x.result)) for x in languages}))


def _rates(languages: Sequence[Language]) -> str:
  rates = {
    rate
    for language in languages
    for rate in numbers.learning_rates(language.result)
  }
  return numbers.spelled(sorted(rates))


def sections(measured: Sequence[results.Result]) -> list[tables.Section]:
  """Returns the section of results of this preset, of any kind, if any is."""
  languages = [measure(result) for result in of(measured)]
  if not languages:
    return []
  return [
    tables.Section(
      f'{PRESET}: {len(languages)} cells measured',
      by_class(languages),
      legend(languages),
      by_language(languages),
    )
  ]


def comma_separated(measured: Sequence[results.Result]) -> str:
  """Returns every number as CSV, a line each language and model."""
  header = ['language', 'class', 'model', 'learning_rates', 'states', 'symbols']
  header += [f'{kind}_percent' for kind in _KINDS]
  header += ['training_steps', 'training_s', 'date', 'device', 'git_commit']
  rows = []
  for language in map(measure, measured):
    result = language.result
    automaton = result.experiment['automaton']
    rows.append(
      [
        result.task,
        _class_of(result.task),
        result.model,
        numbers.spelled(language.learning_rates),
        automaton['states'],
        automaton['symbols'],
        *(round(value, 4) for value in language.percent.values()),
        result.experiment['training_steps'],
        result.wall_time_s.get('training'),
        result.date,
        result.environment.get('device'),
        result.environment.get('git_commit'),
      ]
    )
  return tables_lib.comma_separated([header, *rows])
