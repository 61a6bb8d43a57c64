"""Strings of a few lengths, however long, against all of one length at once."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.formal import builders, data, long_strings, range_evaluation
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
  assert [length for length, _ in found] == [9, 4]
  np.testing.assert_allclose(
    [accuracy for _, accuracy in found], by_length[0, [8, 3]], rtol=1e-6
  )


def test_what_does_not_is_the_mean_over_parts(made, monkeypatch):
  task, model, params = made
  monkeypatch.setattr(long_strings, '_MAX_SYMBOLS', 45)
  ((_, accuracy),) = long_strings.evaluate(_EXPERIMENT, *made, [9])
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
  np.testing.assert_allclose(accuracy, np.mean(right), rtol=1e-6)
  assert len(strings) > 9  # Each part has its own.


@pytest.mark.parametrize(
  ('lengths', 'message'),
  [([0], 'lengths must be from 1'), ([5, 2**25], 'lengths must be from 1')],
)
def test_lengths_that_cannot_be(made, lengths, message):
  task, model, _ = made
  with pytest.raises(ValueError, match=message):
    long_strings.check(_EXPERIMENT, task, model, lengths)
