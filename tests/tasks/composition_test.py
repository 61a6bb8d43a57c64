"""Composition as a tree equals composition one by one."""

import functools

import hypothesis
from hypothesis.extra import numpy as st_numpy
import jax.numpy as jnp
import numpy as np
import pytest

from tasks import composition


# Maps that do not commute.
@pytest.mark.parametrize('width', [1, 2, 3, 7, 8, 21])
@hypothesis.given(
  longest=st_numpy.arrays(
    np.int32, (5, 21, 4), elements={'min_value': 0, 'max_value': 3}
  )
)
def test_tree_equals_loop(width, longest):
  maps = longest[:, :width]

  def compose(first, second):
    return jnp.take_along_axis(second, first, axis=-1)

  actual = composition.compose_all(compose, jnp.asarray(maps), jnp.arange(4))
  for row, composed in zip(maps, actual, strict=True):
    expected = functools.reduce(lambda f, g: g[f], row)
    np.testing.assert_array_equal(composed, expected)
