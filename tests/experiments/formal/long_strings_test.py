"""Strings of a few lengths, however long, against all of one length at once."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.formal import (
  builders,
  config,
  data,
  long_strings,
  range_evaluation,
  report,
  training,
)
from tests import refusals
from tests.experiments.formal import own_tasks, tiny

_EXPERIMENT = dataclasses.replace(tiny.TINY, range_test_batch_size=12)


@pytest.fixture(scope='module')
def made():
  task, model = builders.make_task_and_model(_EXPERIMENT)
  params = jax.jit(jax.vmap(model.init))(jax.random.split(jax.random.key(3)))
  return task, model, params


def test_what_fits_at_once_is_range_evaluation(made):
  task, model, params = made
  found = list(long_strings.evaluate(_EXPERIMENT, *made, [9, 4]))
  by_length = range_evaluation.evaluate(
    _EXPERIMENT, task, model, params
  ).accuracy
  assert [test.length for test in found] == [9, 4]
  np.testing.assert_allclose(
    [test.accuracy for test in found], by_length[0, [8, 3]], rtol=1e-6
  )


def test_what_does_not_is_the_mean_over_parts(made, monkeypatch):
  task, model, params = made
  monkeypatch.setattr(long_strings, '_MAX_SYMBOLS', 45)
  (found,) = long_strings.evaluate(_EXPERIMENT, *made, [9, 9])
  one_run = jax.tree.map(lambda x: x[0], params)
  right, strings = [], set()
  apply = jax.jit(model.apply)
  for part in range(3):  # Four strings of nine symbols each: 5 is no divisor.
    source = data.make_source(task, 4, [9])
    rng = jax.random.key(range_evaluation.TEST_SEED + part)
    tokens, target = source.batch(jax.random.fold_in(rng, 9), jnp.int32(9), 9)
    logits = apply(one_run, tokens, target)
    right += list(logits.argmax(-1) == target.argmax(-1))
    strings |= set(map(tuple, np.asarray(tokens).tolist()))
  np.testing.assert_allclose(found.accuracy, np.mean(right), rtol=1e-6)
  assert len(strings) > 9  # Each part has its own.


@pytest.mark.parametrize(
  ('lengths', 'overrides', 'message'),
  [
    ([0], {}, 'lengths must be at least 1'),
    ([5, 2**25], {}, 'lengths must be at most 16,777,216'),
    *(
      ([5], {name: value}, f'--{name} is not for --lengths')
      for name, value in (
        ('adversarial', True),
        ('max_range_test_length', 9),
        ('min_range_test_length', 1),
        ('smallest_bucket', 4),
        ('test_strings', {'a.txt': {}}),
      )
    ),
  ],
)
def test_what_cannot_be_tested(lengths, overrides, message):
  with refusals.one_line(message):
    long_strings.test_experiment(_EXPERIMENT, lengths, overrides)


def test_a_model_has_the_room_that_it_has_in_range_evaluation():
  """A tape of as many cells as the longest test string has symbols."""
  trained = dataclasses.replace(
    _EXPERIMENT,
    task='reverse_string',
    architecture='tape_rnn',
    architecture_params={'hidden_size': 4, 'memory_cell_size': 2},
    **tiny.NO_SIZES,
  )
  # As a command gives them, of which none is given.
  overrides = {'adversarial': None, 'min_range_test_length': None}
  tests = (
    long_strings.test_experiment(trained, [20], overrides),
    trained.replaced(max_range_test_length=20),
    trained,
  )
  tokens = jnp.zeros((1, 20), jnp.int32)
  logits = []
  for experiment in tests:
    task, model = builders.make_task_and_model(experiment)
    params = model.init(jax.random.key(3))
    target = jnp.zeros(data.target_shape(task, 1, 20))
    logits.append(model.apply(params, tokens, target, is_test=True))
  np.testing.assert_array_equal(logits[0], logits[1])
  assert np.abs(logits[0] - logits[2]).max() > 1e-6


def test_no_shorter_string_is_asked_for():
  experiment = config.Experiment(
    task_module=own_tasks.__name__,
    task='NoShortStrings',
    curriculum_params={'values': [20]},
    min_range_test_length=20,
  )
  task = builders.make_task(
    long_strings.test_experiment(experiment, [30, 25], {})
  )
  assert isinstance(task, own_tasks.NoShortStrings)


def test_parts_of_unequal_counts_are_not_averaged(monkeypatch):
  """Answers of this task count up to their terminator only."""
  experiment = dataclasses.replace(
    _EXPERIMENT,
    task='stack_manipulation',
    architecture='rnn',
    architecture_params={'hidden_size': 4},
    **tiny.NO_SIZES,
  )
  task, model = builders.make_task_and_model(experiment)
  params = jax.jit(jax.vmap(model.init))(jax.random.split(jax.random.key(3), 1))
  counts = []

  def answers(tokens, target):
    right, counted = training.count_right(
      task,
      model.apply(
        jax.tree.map(lambda x: x[0], params), tokens, target, is_test=True
      ),
      target,
    )
    counts.append((float(right), float(counted)))

  monkeypatch.setattr(long_strings, '_MAX_SYMBOLS', 12)
  (found,) = long_strings.evaluate(experiment, task, model, params, [6])
  for part in range(6):
    source = data.make_source(task, 2, [6])
    rng = jax.random.key(range_evaluation.TEST_SEED + part)
    answers(*source.batch(jax.random.fold_in(rng, 6), jnp.int32(6), 6))
  right, counted = map(sum, zip(*counts, strict=True))
  assert len({count for _, count in counts}) > 1
  assert found.accuracy == pytest.approx(right / counted, rel=1e-5)


def test_symbols_are_said_where_they_are_not_the_length():
  experiment = dataclasses.replace(_EXPERIMENT, task='modular_arithmetic')
  found = [long_strings.Tested(n, n - 1 + n % 2, 0.5) for n in (4, 9)]
  table = report.of_lengths(experiment, found, 0.2)
  rows = [[x.strip() for x in row.split('|')] for row in table.splitlines()]
  assert rows[1][1:4] == ['length', 'symbols', 'strings']
  assert [row[1:3] for row in rows[3:5]] == [['4', '3'], ['9', '9']]
  assert 'symbols' not in report.of_lengths(experiment, found[1:], 0.2)
