"""Results made by hand."""

import dataclasses

import numpy as np

from experiments.sweeps import grid, presets, results

HOSTILE = '<script>alert("1")</script> | a\nb & \\'


def cell(preset, name):
  cells = grid.cells(presets.PRESETS[preset])
  return next(cell for cell in cells if cell.name == name)


def result(preset, name, accuracy, runs=None, training_steps=100_000, **fields):
  """Returns a result; accuracy is [R, T] by test."""
  found = cell(preset, name)
  runs = runs or found.runs
  experiment = dataclasses.replace(
    found.experiment, training_steps=training_steps
  )
  curve = [[1.0, 0.5]] * len(runs)
  made = results.Result(
    preset=preset,
    task=found.task,
    model=found.model,
    experiment=dataclasses.asdict(experiment),
    runs=[
      {'learning_rate': rate, 'seed': seed, 'diverged_at': None}
      for rate, seed in runs
    ],
    training_length=found.experiment.sequence_length,
    chance=0.5,
    accuracy={test: np.asarray(a).tolist() for test, a in accuracy.items()},
    curves={'step': [1000, 2000], 'loss': curve, 'accuracy': curve},
    wall_time_s={'training': 3723.4, 'evaluation': 61.0},
    date='2023-05-05',
    environment={
      'python': '3.11.7',
      'jax': '0.10.2',
      'flax': '0.12.8',
      'device': 'NVIDIA H100',
      'num_devices': 2,
      'git_commit': '0123456789abcdef',
    },
  )
  return dataclasses.replace(made, **fields)


def accuracies(beyond):
  """Returns [R, 500] of means `beyond` on 41..500, and of others elsewhere.

  Were 41 or 500 left out, or 40 counted, the mean would be another.
  """
  accuracy_RxT = np.repeat(np.array(beyond)[:, None], 500, axis=1)
  accuracy_RxT[:, :40] = 0.125
  accuracy_RxT[:, 40] -= 0.1
  accuracy_RxT[:, 499] -= 0.05
  accuracy_RxT[:, 250] += 0.15
  return accuracy_RxT


# Rates 1e-4, 3e-4, 5e-4, three seeds each: their means are 0.6, 0.7, 0.5; the
# best run is of the last.
BEYOND = [0.6, 0.5, 0.7, 0.75, 0.7, 0.65, 0.85, 0.3, 0.35]
FAITHFUL = result(
  'table1', 'parity_check/regular_gpt_c2', {'': accuracies(BEYOND)}
)
EXTRA = result(
  'table1_extra',
  'even_pairs/regular_gpt_c2_extra',
  {'': accuracies([0.85] * 9)},
)
TABLE_2 = result(
  'table2',
  'parity_check/transformer',
  {
    f'p={p}': np.concatenate(
      [np.full((9, 39), 0.2), np.full((9, 1), p), np.full((9, 460), 0.5)], 1
    )
    for p in (0.1, 0.3, 0.5, 0.7, 0.9)
  },
)
# 1,000 steps, one learning rate, two seeds, one of which diverged.
SHORT = result(
  'table1',
  'cycle_navigation/rnn',
  {'': accuracies([0.4, 0.8])},
  runs=[(3e-4, 0), (3e-4, 1)],
  training_steps=1000,
)
SHORT.runs[1]['diverged_at'] = 700
SHORT.environment['device'] = HOSTILE
ALL = [FAITHFUL, EXTRA, TABLE_2, SHORT]
