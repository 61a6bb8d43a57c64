"""What a run leaves for people: a table, CSV, JSON, and a picture."""

import os
from typing import Any, NamedTuple

from matplotlib import figure as figure_lib
import numpy as np

from experiments.engine import files, pictures, results, tables
from experiments.formal import builders, range_evaluation
from experiments.formal import config as config_lib

NAME = 'range_evaluation'


def summarize(accuracies: np.ndarray, training_length: int) -> dict[str, Any]:
  """Returns the numbers of one run's range evaluation.

  Args:
    accuracies: Of lengths 1, 2, ...
    training_length: The longest training string.

  Returns:
    `training_lengths`: mean accuracy on them; `score`: mean beyond them, None
    without any; `worst_length` and `worst_accuracy` over all lengths (the
    shortest of the worst).
  """
  worst = int(np.argmin(accuracies))
  return {
    'training_lengths': float(np.mean(accuracies[:training_length])),
    'score': range_evaluation.score(accuracies, training_length),
    'worst_length': worst + 1,
    'worst_accuracy': float(accuracies[worst]),
  }


def table(
  experiment: config_lib.Experiment, summary: dict[str, Any], chance: float
) -> str:
  """Returns the table that ends a run."""
  trained = min(
    builders.longest_trained(experiment), experiment.max_range_test_length
  )
  rows = [(f'accuracy, lengths 1..{trained}', summary['training_lengths'])]
  if summary['score'] is not None:
    beyond = f'{trained + 1}..{experiment.max_range_test_length}'
    rows.append((f'accuracy, lengths {beyond} (score)', summary['score']))
  is_perfect = summary['worst_accuracy'] == 1
  where = 'every length' if is_perfect else f'length {summary["worst_length"]}'
  rows.append((f'worst accuracy, at {where}', summary['worst_accuracy']))
  rows.append(('chance, a uniform guess', chance))
  return tables.named_values(_title(experiment), rows)


def save(
  experiment: config_lib.Experiment,
  accuracies: np.ndarray,
  chance: float,
  folder: str,
) -> dict[str, Any]:
  """Writes `range_evaluation.csv`, `.json` and `.png` into a folder.

  Args:
    experiment: What was evaluated.
    accuracies: Of lengths 1, 2, ...
    chance: Accuracy of a guess, drawn as a line.
    folder: Where to.

  Returns:
    What `summarize` returns.
  """
  summary = summarize(accuracies, builders.longest_trained(experiment))
  lengths = range(1, len(accuracies) + 1)
  rows = zip(lengths, accuracies.tolist(), strict=True)
  contents = {
    'summary': summary,
    'chance': chance,
    'accuracy': dict(zip(lengths, accuracies.tolist(), strict=True)),
    **results.origin(experiment),
  }
  picture = _picture(experiment, accuracies, chance)
  path = os.path.join(folder, NAME)
  text = tables.comma_separated([('length', 'accuracy'), *rows])
  files.write_atomically(path + '.csv', text)
  results.save_json(path + '.json', contents)
  files.write_atomically(path + '.png', picture)
  return summary


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
    experiment = config_lib.Experiment(**contents['experiment'])
    by_length = {int(n): value for n, value in contents['accuracy'].items()}
    longest = experiment.max_range_test_length
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
  params = ', '.join(f'{k} = {v}' for k, v in experiment.task_params.items())
  made = '' if experiment.training_steps else 'compiled '
  return f'{made}{config_lib.model_title(experiment)} on {task}' + (
    params and f' ({params})'
  )


def _picture(
  experiment: config_lib.Experiment, accuracies: np.ndarray, chance: float
) -> bytes:
  """Returns a PNG of accuracy against length."""
  figure = figure_lib.Figure(figsize=(7, 3.5), layout='constrained')
  axes = figure.subplots()
  trained = min(builders.longest_trained(experiment), len(accuracies))
  if experiment.training_steps:
    axes.axvspan(
      0.5, trained + 0.5, color='0.85', label=f'trained on up to {trained}'
    )
  axes.axhline(chance, color='0.4', linestyle=':', label='chance')
  axes.plot(
    range(1, len(accuracies) + 1),
    accuracies,
    color=pictures.COLOURS['blue'],
    marker='.' if len(accuracies) == 1 else None,
    label=config_lib.model_title(experiment),
  )
  axes.set(
    title=_title(experiment),
    xlabel='length of the string',
    ylabel='accuracy',
    xlim=(0.5, len(accuracies) + 0.5),
    ylim=(0, 1.05),
  )
  axes.legend(loc='best')
  return pictures.png(figure)
