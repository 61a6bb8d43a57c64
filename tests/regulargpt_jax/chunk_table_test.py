"""Numbers of short strings, and look-ups with their gradient."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import chunk_table


def _strings(vocab_size, max_length):
  """All strings in the order of their numbers: shorter first."""
  for length in range(max_length + 1):
    yield from itertools.product(range(vocab_size), repeat=length)


@pytest.mark.parametrize(
  ('vocab_size', 'length', 'chunk_size'),
  [(1, 1, 2), (2, 1, 2), (2, 4, 2), (3, 2, 2), (2, 3, 3), (5, 1, 3)],
)
def test_split_lists_all_strings_and_join_inverts_it(
  vocab_size, length, chunk_size
):
  parts = chunk_table.split(vocab_size, length, chunk_size)
  part_strings = list(_strings(vocab_size, length))
  wholes = list(_strings(vocab_size, length * chunk_size))
  assert len(parts) == len(wholes)
  assert len(wholes) == chunk_table.num_strings(vocab_size, length * chunk_size)
  for whole, row in zip(wholes, parts, strict=True):
    pieces = [part_strings[number] for number in row]
    assert sum(pieces, ()) == whole
    # Only what comes first may be short: the string is right-aligned.
    padding = length * chunk_size - len(whole)
    for piece in pieces:
      assert len(piece) == max(0, length - padding)
      padding = max(0, padding - length)
  np.testing.assert_array_equal(
    chunk_table.join(jnp.asarray(parts), vocab_size, length),
    np.arange(len(wholes)),
  )


@pytest.mark.parametrize('chunk_size', [2, 3])
def test_maps_are_composed_in_the_order_of_reading(chunk_size):
  rng = np.random.default_rng(chunk_size)
  maps = rng.integers(0, 5, (4, chunk_size, 5))
  expected = np.tile(np.arange(5), (4, 1))
  for row, parts in zip(expected, maps, strict=True):
    for part in parts:
      row[:] = part[row]
  np.testing.assert_array_equal(chunk_table.composed(maps), expected)
  np.testing.assert_array_equal(chunk_table.composed(jnp.array(maps)), expected)
