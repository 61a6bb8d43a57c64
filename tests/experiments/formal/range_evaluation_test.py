"""Range evaluation: its mean is over strings, whatever they are split into."""

import dataclasses

import jax
import numpy as np
import pytest

from experiments.formal import (
  builders,
  config,
  evaluation,
  range_evaluation,
  report,
  training,
)

_TINY = config.Experiment(
  task='stack_manipulation',
  architecture='rnn',
  architecture_params={'hidden_size': 4},
  max_range_test_length=6,
  range_test_batch_size=12,
)


def test_parts_of_unequal_counts_are_not_averaged():
  """Outputs of this task count up to their terminator only.

  A fault of the public code: the mean of the parts' accuracies is not the
  accuracy of all.
  """
  task, model = builders.make_task_and_model(_TINY)
  params = training.init_state(_TINY, model).params
  whole, in_parts = (
    range_evaluation.evaluate(
      _TINY, task, dataclasses.replace(model, sub_batch_size=size), params
    )
    for size in (None, 5)
  )
  np.testing.assert_allclose(in_parts, whole, atol=1e-6)
  assert 0 < whole.mean() < 1


def test_runs_are_tested_on_the_same_strings():
  task, model = builders.make_task_and_model(_TINY)
  params = training.init_state(_TINY, model).params
  twice = jax.tree.map(lambda x: np.concatenate([x, x]), params)
  accuracies = range_evaluation.evaluate(_TINY, task, model, twice)
  np.testing.assert_array_equal(accuracies[0], accuracies[1])


def test_runs_keep_their_places():
  task, model = builders.make_task_and_model(_TINY)
  runs = [(1e-3, seed, seed) for seed in range(3)]
  params = training.init_state(_TINY, model, runs).params
  together = range_evaluation.evaluate(_TINY, task, model, params)
  for i in range(len(runs)):
    alone = jax.tree.map(lambda x, i=i: x[i : i + 1], params)
    accuracies = range_evaluation.evaluate(_TINY, task, model, alone)
    np.testing.assert_allclose(accuracies[0], together[i], atol=1e-6)
  assert len(np.unique(together, axis=0)) == len(runs)


@pytest.mark.parametrize(
  ('training_length', 'expected'), [(0, 2.5), (1, 3.0), (3, 4.0), (4, None)]
)
def test_score_begins_right_after_the_training_lengths(
  training_length, expected
):
  """A fault of the public example: it began one length late."""
  assert range_evaluation.score([1, 2, 3, 4], training_length) == expected


@pytest.mark.parametrize(
  ('worst', 'where'), [(0.25, 'length 3'), (1.0, 'every length')]
)
def test_the_table_says_where_a_model_is_worst(worst, where):
  accuracies = np.array([1, 1, worst, 1, worst])
  tests = {'': evaluation.Test(accuracies[None])}
  table = report.table(_TINY, tests, 0.5)
  line = next(x for x in table.splitlines() if x.startswith('worst'))
  assert line.split('  ')[0] == f'worst accuracy, at {where}'
  assert line.endswith(f'  {worst:.4f}')
