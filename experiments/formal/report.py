"""What a run leaves for people: a table, CSV, JSON, and a picture."""

from collections.abc import Iterable, Mapping
import os
import textwrap
from typing import Any, NamedTuple

import numpy as np

from experiments.engine import experiment as experiment_lib
from experiments.engine import files, pictures, results, tables
from experiments.formal import (
  accuracy_curves,
  builders,
  evaluation,
  long_strings,
  range_evaluation,
)
from experiments.formal import config as config_lib

NAME = 'range_evaluation'
_MAX_VALUE = 40  # Of an argument of a task in a title, in characters.


def summarize(accuracies: np.ndarray, training_length: int) -> dict[str, Any]:
  """Returns the numbers of one run's range evaluation.

  Args:
    accuracies: Of lengths 1, 2, ...; NaN where it is not tested.
    training_length: The longest training string.

  Returns:
    `training_lengths`: mean accuracy on them; `score`: mean beyond them, each
    None without any; `worst_length` and `worst_accuracy` over all lengths (the
    shortest of the worst).
  """
  worst = int(np.nanargmin(accuracies))
  return {
    'training_lengths': range_evaluation.mean(accuracies[:training_length]),
    'score': range_evaluation.score(accuracies, training_length),
    'worst_length': worst + 1,
    'worst_accuracy': float(accuracies[worst]),
  }


def table(
  experiment: config_lib.Experiment,
  tests: Mapping[str, evaluation.Test],
  chance: float,
) -> str:
  """Returns the table that ends a run.

  Args:
    experiment: What was evaluated.
    tests: What `evaluation.evaluate` returns; the first run's is shown.
    chance: Accuracy of a guess.
  """
  trained = builders.longest_trained(experiment)
  is_trained_on = experiment.has_strings_alone and not experiment.test_strings
  rows = []
  for name, test in tests.items():
    accuracies = test.accuracy[0]
    if test.files:
      found = test.files[0]
      strings = f'{found["file"]}, {found["strings"]:,} strings'
      if is_trained_on:
        strings += ', those of training'
      rows.append((f'accuracy, {strings}', found['accuracy']))
      rows.append(
        (f'balanced accuracy, {found["file"]}', found['balanced_accuracy'])
      )
    elif name:
      rows += _means(f'{name} accuracy', accuracies, trained)[-1:]
    else:
      summary = summarize(accuracies, trained)
      rows = _means('accuracy', accuracies, trained)
      if summary['score'] is not None:
        rows[-1] = (f'{rows[-1][0]} (score)', summary['score'])
      worst = summary['worst_accuracy']
      is_everywhere = worst == np.nanmax(accuracies)
      where = (
        'every length' if is_everywhere else f'length {summary["worst_length"]}'
      )
      rows.append((f'worst accuracy, at {where}', worst))
      rows.append(('strings of each length', experiment.range_test_batch_size))
  rows.append(('chance, a uniform guess', chance))
  constant = evaluation.best_constant(tests[''], trained)
  if constant is not None:
    rows.append(('the best constant answer', constant))
  return tables.named_values(_title(experiment), rows)


def of_lengths(
  experiment: config_lib.Experiment,
  tests: Iterable[long_strings.Tested],
  chance: float,
) -> str:
  """Returns a table of the accuracy on strings of a few lengths.

  It says how many symbols they have, where these are not all what was asked.
  """
  num_strings = f'{experiment.range_test_batch_size:,}'
  header = ['length', 'symbols', 'strings', 'accuracy']
  rows = [
    [
      f'{found.length:,}',
      f'{found.num_symbols:,}',
      num_strings,
      tables.fraction(found.accuracy),
    ]
    for found in tests
  ]
  if all(length == num_symbols for length, num_symbols, *_ in rows):
    header, *rows = [
      [length, *others] for length, _, *others in (header, *rows)
    ]
  table = tables.markdown(header, rows)
  return f'{_title(experiment)}\n{table}\nchance, a uniform guess: {chance:.4f}'


def _means(
  name: str, accuracies: np.ndarray, trained: int
) -> list[tuple[str, float]]:
  """Returns means over the tested lengths up to that trained, and beyond."""
  rows = []
  tested = np.flatnonzero(~np.isnan(accuracies)) + 1
  for lengths in (tested[tested <= trained], tested[tested > trained]):
    if lengths.size:
      span = f'{lengths[0]}..{lengths[-1]}'
      rows.append(
        (f'{name}, lengths {span}', float(accuracies[lengths - 1].mean()))
      )
  return rows


def save(
  experiment: config_lib.Experiment,
  tests: Mapping[str, evaluation.Test],
  chance: float,
  folder: str,
) -> None:
  """Writes `range_evaluation.csv`, `.json` and `.png` into a folder.

  Args:
    experiment: What was evaluated.
    tests: What `evaluation.evaluate` returns; the first run's is written.
    chance: Accuracy of a guess, drawn as a line.
    folder: Where to.
  """
  trained = builders.longest_trained(experiment)
  lines = {name: test.accuracy[0] for name, test in tests.items()}
  by_length = {name: _by_length(values) for name, values in lines.items()}
  contents = {
    'summary': summarize(lines[''], trained),
    'chance': chance,
    'constant': evaluation.best_constant(tests[''], trained),
    'accuracy': by_length[''],
    'others': {
      name: {
        'summary': summarize(values, trained),
        'accuracy': by_length[name],
      }
      for name, values in lines.items()
      if name and np.isfinite(values).any()
    },
    'files': [test.files[0] for test in tests.values() if test.files],
    **results.origin(experiment),
  }
  picture = _picture(experiment, lines, chance)
  path = os.path.join(folder, NAME)
  lengths = sorted({n for values in by_length.values() for n in values})
  rows = (
    [n, *(values.get(n, '') for values in by_length.values())] for n in lengths
  )
  header = ['length', *(name or 'accuracy' for name in lines)]
  text = tables.comma_separated([header, *rows])
  files.write_atomically(path + '.csv', text)
  results.save_json(path + '.json', contents)
  files.write_atomically(path + '.png', picture)


def _by_length(accuracies: np.ndarray) -> dict[int, float]:
  return {
    i + 1: value
    for i, value in enumerate(accuracies.tolist())
    if not np.isnan(value)
  }


class Evaluation(NamedTuple):
  """What `save` wrote of one run.

  Attributes:
    experiment: What was evaluated.
    accuracy: At lengths 1, 2, ..., [lengths]; NaN where it is not tested.
    training_length: The longest training string.
    chance: Accuracy of a guess.
  """

  experiment: config_lib.Experiment
  accuracy: np.ndarray
  training_length: int
  chance: float


def load(folder: str) -> Evaluation:
  """Reads what `save` wrote into a folder.

  Raises:
    ValueError: If it cannot be read, or is not what `save` writes.
  """

  def take(contents):
    experiment = experiment_lib.of_fields(
      config_lib.Experiment, contents['experiment']
    )
    by_length = {int(n): value for n, value in contents['accuracy'].items()}
    longest = experiment.longest_tested
    if not by_length or not 1 <= min(by_length) <= max(by_length) <= longest:
      raise ValueError(f'its lengths are not within 1..{longest}.')
    chance = contents['chance']
    values = np.array([*by_length.values(), chance])
    is_share = (values >= 0) & (values <= 1) if values.dtype.kind in 'if' else 0
    if not np.all(is_share):
      raise ValueError('its accuracies leave 0..1.')
    accuracy = np.full(max(by_length), np.nan)
    accuracy[np.array([*by_length]) - 1] = values[:-1]
    trained = builders.longest_trained(experiment)
    return Evaluation(experiment, accuracy, trained, chance)

  return results.load(os.path.join(folder, f'{NAME}.json'), take)


def _title(experiment: config_lib.Experiment) -> str:
  """Returns what was trained on what."""
  task = config_lib.task_title(experiment)
  params = ', '.join(
    f'{k} = {textwrap.shorten(str(v), _MAX_VALUE, placeholder=" ...")}'
    for k, v in experiment.task_params.items()
  )
  made = '' if experiment.training_steps else 'compiled '
  return f'{made}{config_lib.model_title(experiment)} on {task}' + (
    params and f' ({params})'
  )


def _picture(
  experiment: config_lib.Experiment,
  lines: Mapping[str, np.ndarray],
  chance: float,
) -> bytes:
  """Returns a PNG of accuracy against length."""
  trained = []
  if experiment.training_steps:
    trained = [builders.trained_bounds(experiment)]
  model = config_lib.model_title(experiment)
  curves = [
    accuracy_curves.Line(
      f'{model}, {name}' if name else model, values[None], pictures.style(i)
    )
    for i, (name, values) in enumerate(lines.items())
  ]
  return accuracy_curves.picture(_title(experiment), curves, trained, [chance])
