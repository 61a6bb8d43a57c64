"""Strings of a few lengths, however long, against all of one length at once."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.formal import (
  builders,
  data,
  long_strings,
  range_evaluation,
  report,
)
from tests import refusals
from tests.experiments.formal import tiny

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
    long_strings.tested(_EXPERIMENT, lengths, overrides)


def test_a_model_has_the_room_that_it_has_in_range_evaluation():
  """A tape of as many cells as the longest test string has symbols."""
  trained = dataclasses.replace(
    _EXPERIMENT,
    task='reverse_string',
    architecture='tape_rnn',
    architecture_params={'hidden_size': 4, 'memory_cell_size': 2},
  )
  # As a command gives them, of which none is given.
  overrides = {'adversarial': None, 'min_range_test_length': None}
  experiment = long_strings.tested(trained, [20], overrides)
  task, model = builders.make_task_and_model(experiment)
  params = jax.vmap(model.init)(jax.random.split(jax.random.key(3), 1))
  (found,) = long_strings.evaluate(experiment, task, model, params, [20])
  in_range = trained.replaced(
    min_range_test_length=20, max_range_test_length=20
  )
  task, model = builders.make_task_and_model(in_range)
  by_length = range_evaluation.evaluate(in_range, task, model, params).accuracy
  assert found.accuracy == pytest.approx(by_length[0, 19], abs=1e-6)


def test_symbols_are_said_where_they_are_not_the_length():
  experiment = dataclasses.replace(_EXPERIMENT, task='modular_arithmetic')
  found = [long_strings.Found(n, n - 1 + n % 2, 0.5) for n in (4, 9)]
  table = report.of_lengths(experiment, found, 0.2)
  rows = [[x.strip() for x in row.split('|')] for row in table.splitlines()]
  assert rows[1][1:4] == ['length', 'symbols', 'strings']
  assert [row[1:3] for row in rows[3:5]] == [['4', '3'], ['9', '9']]
  assert 'symbols' not in report.of_lengths(experiment, found[1:], 0.2)
