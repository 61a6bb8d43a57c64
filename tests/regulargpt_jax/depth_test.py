"""Depth is exact around every power of every chunk size."""

import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import depth

_LONGEST = 10**7


def _around_powers(chunk_size):
  power = chunk_size
  while power <= _LONGEST:
    yield from (power - 1, power, power + 1)
    power *= chunk_size


def test_depth_is_the_smallest_that_covers_the_length():
  # Above sqrt(10^7), each chunk size has one power only: a few of those do.
  for chunk_size in [*range(2, 3300), 5000, 10**6, _LONGEST]:
    for length in _around_powers(chunk_size):
      levels = depth.depth(length, chunk_size)
      assert levels >= 1
      assert chunk_size**levels >= length
      assert levels == 1 or chunk_size ** (levels - 1) < length


@pytest.mark.parametrize('chunk_size', [2, 3, 5, 7, 10, 128])
def test_traced_depth_equals_depth(chunk_size):
  lengths = [0, 1, 2, *_around_powers(chunk_size)]
  expected = [depth.depth(length, chunk_size) for length in lengths]
  actual = depth.traced_depth(jnp.array(lengths), chunk_size, max(lengths))
  np.testing.assert_array_equal(actual, expected)
