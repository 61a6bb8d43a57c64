"""Attention that copies, by its position bias alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.construction import heads, schedule


@pytest.mark.parametrize('chunk_size', [2, 3, 4, 5, 128])
def test_weights_are_exactly_zero_and_one(chunk_size):
  for step in schedule.steps(chunk_size):
    bias_HxC = heads.position_bias(step, chunk_size)
    weights_HxC = jax.nn.softmax(jnp.float32(bias_HxC), axis=-1)
    expected = np.zeros_like(bias_HxC)
    expected[0, step.distance] = 1
    expected[1:, 0] = 1
    np.testing.assert_array_equal(weights_HxC, expected)


def test_two_heads_do_for_powers_of_two_and_three_always():
  for chunk_size in range(2, 70):
    expected = 2 if chunk_size.bit_count() == 1 else 3
    assert heads.num_heads(chunk_size) == expected


def test_values_are_copied_from_the_slots():
  product, own, unused = np.arange(12.0).reshape(3, 4)
  stream = np.concatenate([product, own, unused])
  doubling, adding = schedule.steps(3)
  for step, earlier in ((doubling, product), (adding, own)):
    values = stream @ heads.value_kernel(step, 3, 4)
    np.testing.assert_array_equal(
      values, np.concatenate([earlier, product, own])
    )
