"""Composition as a tree equals composition one by one."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from tasks import composition


@pytest.mark.parametrize('width', [1, 2, 3, 7, 8, 21])
def test_tree_equals_loop_for_maps_that_do_not_commute(width):
  maps = np.random.default_rng(width).integers(4, size=(5, width, 4))

  def compose(first, second):
    return jnp.take_along_axis(second, first, axis=-1)

  actual = composition.compose_all(compose, jnp.asarray(maps), jnp.arange(4))
  for row, composed in zip(maps, actual, strict=True):
    expected = functools.reduce(lambda f, g: g[f], row)
    np.testing.assert_array_equal(composed, expected)
