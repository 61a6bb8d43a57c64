"""Curricula are pure functions of the seed and the step."""

import collections

import numpy as np
import pytest

from experiments.formal import builders, config, registries


def _make(name, **params):
  return builders.make_curriculum(
    config.Experiment(
      curriculum=name,
      curriculum_params=params,
      sequence_length=10,
      training_steps=100,
    )
  )


@pytest.mark.parametrize('name', registries.CURRICULUM_BUILDERS)
def test_resumed_curriculum_goes_on_as_it_would_have(name):
  whole = [_make(name).sample_sequence_length(step) for step in range(100)]
  assert all(1 <= length <= 10 for length in whole)
  resumed = _make(name)
  assert [resumed.sample_sequence_length(s) for s in range(60, 100)] == whole[
    60:
  ]
  np.random.seed(0)
  assert _make(name).sample_sequence_length(5) == whole[5]


@pytest.mark.parametrize('name', ['uniform', 'reverse_exponential'])
def test_seeds_differ(name):
  first, second = (
    [_make(name, seed=seed).sample_sequence_length(step) for step in range(50)]
    for seed in (0, 1)
  )
  assert first != second


def _frequencies(curriculum, num_steps=4000):
  counts = collections.Counter(
    curriculum.sample_sequence_length(step) for step in range(num_steps)
  )
  return np.array([counts[length] for length in range(1, 11)]) / num_steps


def test_distributions():
  np.testing.assert_allclose(
    _frequencies(_make('uniform')), np.full(10, 0.1), atol=0.02
  )
  weights = 0.7 ** np.arange(1, 11)
  np.testing.assert_allclose(
    _frequencies(_make('reverse_exponential', tau=0.7)),
    weights / weights.sum(),
    atol=0.02,
  )
  apart = _make('reverse_exponential', values=[1, 4, 5], tau=0.7)
  weights[[1, 2, 5, 6, 7, 8, 9]] = 0
  np.testing.assert_allclose(
    _frequencies(apart), weights / weights.sum(), atol=0.02
  )
  fixed = _make('fixed', sequence_length=7)
  assert {fixed.sample_sequence_length(s) for s in range(9)} == {7}


def test_regular_increase():
  latest = _make(
    'regular_increase',
    initial_sequence_length=2,
    increase_frequency=10,
    increase_amount=3,
    sample_all_length=False,
  )
  lengths = [latest.sample_sequence_length(s) for s in (0, 9, 10, 20, 30, 99)]
  assert lengths == [2, 2, 5, 8, 8, 8]  # 11 would be beyond the longest.
  everything = _make(
    'regular_increase',
    initial_sequence_length=2,
    increase_frequency=10,
    increase_amount=3,
    sample_all_length=True,
  )
  assert {everything.sample_sequence_length(s) for s in range(10)} == {2}
  assert {everything.sample_sequence_length(s) for s in range(20, 99)} == {
    2,
    5,
    8,
  }


def test_lengths_that_grow_without_end_take_no_memory():
  experiment = config.Experiment(
    curriculum='regular_increase',
    curriculum_params={
      'increase_frequency': 1,
      'max_sequence_length': 10**15,
    },
    training_steps=2**31 - 1,
  )
  with pytest.raises(ValueError, match=r'lengths 1\.\.2147483647, wh'):
    builders.make_curriculum(experiment)


def test_unknown_curriculum_and_bad_params():
  with pytest.raises(ValueError, match='fixed, regular_increase'):
    _make('random')
  with pytest.raises(ValueError, match='curriculum_params'):
    _make('uniform', steps=3)
