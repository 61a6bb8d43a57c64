"""How many levels a string goes through, on every path."""

import functools

import jax
import numpy as np
import pytest

from regulargpt_jax import depth
from regulargpt_jax import model as model_lib
from tests.regulargpt_jax import tiny


def test_depth_is_each_strings_own():
  """A bare string goes through L(T) levels, and so does a padded one."""
  model, params = tiny.model('benchmark', 2, 1, 2)
  apply = functools.partial(tiny.apply, model)
  lengths = [1, 3, 9]
  tokens = tiny.tokens(lengths, 9, 2)
  own = apply(params, tokens, 'reduce', 0)
  deepest = depth.depth(9, 2)
  for i, length in enumerate(lengths):
    missing = deepest - depth.depth(length, 2)
    by_hand = apply(params, tokens[i : i + 1, -length:], 'reduce', 0)
    tiny.assert_close(own[i], by_hand[0])
    if missing:
      deeper = apply(params, tokens[i : i + 1], 'reduce', missing)
      assert np.abs(deeper[0] - own[i]).max() > 1e-4


@pytest.mark.parametrize('path', model_lib.PATHS)
def test_extra_levels_may_be_traced(path):
  model, params = tiny.model('benchmark', 2, 1, 3)
  tokens = tiny.tokens([3, 6, 7], 7, 3)
  traced = jax.jit(
    lambda extra: model.apply(params, tokens, path, extra, max_extra_levels=2)
  )
  for extra in (0, 2):
    expected = tiny.apply(model, params, tokens, path, extra)
    present = 1 if path == 'reduce' else (tokens >= 0)[..., None]
    actual = np.asarray(traced(np.int32(extra)))
    tiny.assert_close(actual * present, expected * present)


@pytest.mark.parametrize('path', model_lib.PATHS)
def test_least_levels_are_extra_levels_of_short_strings(path):
  model, params = tiny.model('language', 2, 1, 3)
  deep, _ = tiny.model('language', 2, 1, 3, min_levels=3)
  tokens = tiny.tokens([1, 3, 6, 9], 9, 3)
  extra = np.array([2, 1, 0, 0])
  expected = jax.jit(
    lambda extra: model.apply(params, tokens, path, extra, max_extra_levels=2)
  )(extra)
  present = 1 if path == 'reduce' else (tokens >= 0)[..., None]
  actual = tiny.apply(deep, params, tokens, path)
  tiny.assert_close(actual * present, np.asarray(expected) * present)


@pytest.mark.parametrize(
  'thickness', [pytest.param(1, marks=pytest.mark.slow), 2]
)
def test_of_a_longer_string_than_its_levels_reach_the_end_is_read(thickness):
  """On every path, and by the method that drops the start itself."""
  capped, params = tiny.model('benchmark', 2, thickness, 3, max_levels=2)
  tokens = tiny.tokens([1, 3, 4, 5, 8, 9, 12], 12, 3)
  expected = tiny.apply(capped, params, tokens, 'reference')[:, -1]
  last = jax.jit(lambda p: capped.apply(p, tokens, method='last_logits'))
  for found in (
    tiny.apply(capped, params, tokens),
    tiny.apply(capped, params, tokens, 'scan')[:, -1],
    np.asarray(last(params)),
  ):
    tiny.assert_close(found, expected)
  reach = {1: 4, 2: 7}[thickness]
  tiny.assert_close(tiny.apply(capped, params, tokens[:, -reach:]), expected)
  shorter = tiny.apply(capped, params, tokens[:, 1 - reach :])
  assert np.abs(shorter - expected).max() > 1e-3
  if thickness == 1:
    free, _ = tiny.model('benchmark', 2, 1, 3)
    tiny.assert_close(tiny.apply(free, params, tokens[:, -reach:]), expected)
