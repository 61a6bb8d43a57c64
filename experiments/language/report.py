"""What an evaluation leaves: a table, CSV, JSON, and a picture."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import os
from typing import Any

from matplotlib import figure as figure_lib
from matplotlib import ticker
import numpy as np

from experiments.engine import experiment as experiment_lib
from experiments.engine import files, pictures, tables
from experiments.engine import results as results_lib
from experiments.language import config as config_lib
from experiments.language import evaluation

NAME = 'perplexity'
# Columns of a table as CSV, nats.
DIFFERENCE = ('difference', 'error_of_difference')
# Ratio of the largest to the smallest value drawn.
_LOGARITHMIC_FROM = 4
# Rows of a table of a training.
_MAX_VALIDATED = 10


def contents(
  experiment: config_lib.LanguageExperiment,
  evaluated: config_lib.LanguageExperiment,
  perplexities: Mapping[int, evaluation.Perplexity],
  differences: Mapping[int, evaluation.Difference],
  num_sequences: int,
  step: int,
  num_parameters: int,
  diverged: bool = False,
) -> dict[str, Any]:
  """Returns all there is to know about an evaluation, for JSON.

  Args:
    experiment: What was trained.
    evaluated: The same with the text on which it was evaluated.
    perplexities: By length.
    differences: From the shortest of these lengths, by longer length.
    num_sequences: How many tokens each is of.
    step: Steps trained.
    num_parameters: Of the model.
    diverged: Whether training was given up at that step.
  """
  return {
    'perplexity': {
      str(length): dataclasses.asdict(value)
      for length, value in perplexities.items()
    },
    'difference': {
      str(length): dataclasses.asdict(value)
      for length, value in differences.items()
    },
    'num_sequences': num_sequences,
    'step': step,
    'diverged': diverged,
    'num_parameters': num_parameters,
    **results_lib.origin(experiment),
    'evaluated_on': {
      'data_dir': evaluated.data_dir,
      'fingerprint': evaluated.fingerprint,
    },
  }


def load_json(path: str) -> dict[str, Any]:
  """Reads what `contents` returned, from a file.

  Raises:
    ValueError: If it is something else.
  """

  def take(results):
    results['perplexity'] = {
      int(length): evaluation.Perplexity(**value)
      for length, value in results['perplexity'].items()
    }
    # Older results have none.
    results['difference'] = {
      int(length): evaluation.Difference(**value)
      for length, value in results.get('difference', {}).items()
    }
    _check(results)
    return results

  return results_lib.load(path, take)


def _check(results: dict[str, Any]) -> None:
  """Refuses what no evaluation gives."""
  experiment = experiment_lib.of_fields(
    config_lib.LanguageExperiment, results['experiment']
  )
  if not (experiment.vocab_size and experiment.fingerprint):
    raise ValueError('its experiment has no text.')
  for name in ('num_sequences', 'step', 'num_parameters'):
    if not (isinstance(results[name], int) and results[name] >= 0):
      raise ValueError(f'its {name} is {results[name]!r}.')
  if not isinstance(results['diverged'], bool):
    raise ValueError(f'its diverged is {results["diverged"]!r}.')
  if not isinstance(results['environment']['device'], str):
    raise ValueError('its environment has no device.')
  if not isinstance(results['evaluated_on']['fingerprint'], str):
    raise ValueError('its evaluation is of no text.')
  for length, value in results['perplexity'].items():
    # Infinite, perhaps, but numbers.
    if not (
      length >= 1
      and all(isinstance(x, float) for x in dataclasses.astuple(value))
      and value.perplexity >= 1
      and value.standard_error >= 0
      and value.loss >= 0
    ):
      raise ValueError(f'its perplexity at {length} is {value}.')
  for length, value in results['difference'].items():
    if not (
      length in results['perplexity']
      and length > min(results['perplexity'])
      and all(isinstance(x, float) for x in dataclasses.astuple(value))
      and value.loss == value.loss
      and value.standard_error >= 0
    ):
      raise ValueError(f'its difference at {length} is {value}.')


def save(
  results: Mapping[str, Any],
  perplexities: Mapping[int, evaluation.Perplexity],
  differences: Mapping[int, evaluation.Difference],
  title: str,
  folder: str,
) -> None:
  """Writes `perplexity.json`, `.csv` and `.png` into a folder.

  Args:
    results: What `contents` returned.
    perplexities: By length.
    differences: From the shortest length, by longer length.
    title: Of the model.
    folder: Where to.
  """
  path = os.path.join(folder, NAME)
  results_lib.save_json(path + '.json', results)
  rows = [('length', 'perplexity', 'standard_error', 'loss', *DIFFERENCE)]
  for length, value in perplexities.items():
    rows.append(
      (length, *dataclasses.astuple(value), *columns(differences.get(length)))
    )
  files.write_atomically(path + '.csv', tables.comma_separated(rows))
  trained = results['experiment']['sequence_length']
  picture_bytes = picture({title: perplexities}, trained)
  files.write_atomically(path + '.png', picture_bytes)


def table(
  perplexities: Mapping[int, evaluation.Perplexity],
  differences: Mapping[int, evaluation.Difference],
  title: str,
) -> str:
  """Returns the table that ends an evaluation."""
  heads = ('length', 'perplexity', 'standard error', 'to the shortest')
  lines = [title, '{:>8}{:>14}{:>18}{:>22}'.format(*heads)]
  for length, value in perplexities.items():
    line = (
      f'{length:>8,}{value.perplexity:>14,.2f}{value.standard_error:>18,.2f}'
    )
    if length in differences:
      line += f'{percent(differences[length]):>22}'
    lines.append(line)
  return '\n'.join(lines)


def percent(difference: evaluation.Difference) -> str:
  """Returns by how much the perplexity is higher, with its standard error."""
  with np.errstate(over='ignore'):
    ratio = np.exp(difference.loss)
  error = ratio * difference.standard_error
  return f'{100 * (ratio - 1):+,.2f} ± {100 * error:,.2f}%'


def columns(difference: evaluation.Difference | None) -> tuple:
  """Returns what stands under `DIFFERENCE`."""
  return dataclasses.astuple(difference) if difference else (None, None)


def picture(
  curves: Mapping[str, Mapping[int, evaluation.Perplexity]],
  training_length: int,
) -> bytes:
  """Returns a PNG of perplexity against length.

  Args:
    curves: By title, then by length; infinite values are left out.
    training_length: Drawn as a line.
  """
  figure = figure_lib.Figure(figsize=(8, 4), layout='constrained')
  axes = figure.subplots()
  axes.axvline(
    training_length, color='0.6', linestyle=':', label='length in training'
  )
  for i, (title, curve) in enumerate(curves.items()):
    finite = {n: v for n, v in curve.items() if math.isfinite(v.perplexity)}
    axes.errorbar(
      list(finite),
      [value.perplexity for value in finite.values()],
      [value.standard_error for value in finite.values()],
      capsize=3,
      label=title,
      **pictures.style(i),
    )
  axes.set(
    xscale='log',
    xlabel='tokens of context',
    ylabel='perplexity of the last token',
  )
  lengths = sorted({length for curve in curves.values() for length in curve})
  axes.set_xticks(lengths, [f'{length:,}' for length in lengths])
  low, high = axes.dataLim.intervaly
  if high > _LOGARITHMIC_FROM * low > 0:
    axes.set_yscale('log')
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
  axes.minorticks_off()
  axes.yaxis.set_major_formatter('{x:,.5g}')
  figure.legend(loc='outside right upper')
  return pictures.png(figure)


def training_table(lines: Sequence[Mapping[str, float]], title: str) -> str:
  """Returns the table that ends a training: its last validation losses.

  Args:
    lines: Of `metrics.read`.
    title: Of the model.
  """
  rows = [title, f'{"step":>8}{"validation loss":>18}{"perplexity":>14}']
  validated = [line for line in lines if 'validation_loss' in line]
  for line in validated[-_MAX_VALIDATED:]:
    loss = line['validation_loss']
    with np.errstate(over='ignore'):
      perplexity = np.exp(loss)
    rows.append(f'{line["step"]:>8,}{loss:>18.4f}{perplexity:>14,.2f}')
  return '\n'.join(rows)
