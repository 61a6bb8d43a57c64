"""Look-ups have the value and the gradient of indexing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import lookup


@pytest.mark.parametrize('num_rows', [3, 2000])
def test_take_rows_has_the_gradient_of_indexing(num_rows):
  rng = np.random.default_rng(0)
  table = jnp.asarray(rng.normal(size=(num_rows, 4)), jnp.float32)
  # Some rows often, most never, the last one too.
  rows = rng.choice(num_rows, size=3, replace=False)
  # A constant: NumPy's, as those of `tabulate` are.
  index = rng.choice([*rows, num_rows - 1], size=(5, 7))
  weights = jnp.asarray(rng.normal(size=(5, 7, 4)), jnp.float32)
  actual, expected = (
    jax.jit(jax.value_and_grad(lambda t, f=f: (f(t, index) * weights).sum()))(
      table
    )
    for f in (lookup.take_rows, lambda t, i: t[i])
  )
  jax.tree.map(
    lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5),
    actual,
    expected,
  )


@pytest.mark.parametrize('num_rows', [3, 2000])
def test_a_gradient_in_bfloat16_is_rounded_once(num_rows):
  """Of integers whose sum is beyond the eight bits of bfloat16."""
  rng = np.random.default_rng(0)
  index = jnp.asarray(rng.choice([0, 1, num_rows - 1], size=300))
  grad = rng.integers(100, 256, size=(300, 4))
  table = jnp.zeros((num_rows, 4), jnp.bfloat16)
  _, backward = jax.vjp(lambda t: lookup.take_rows(t, index), table)
  (actual,) = jax.jit(backward)(jnp.asarray(grad, jnp.bfloat16))
  expected = np.zeros((num_rows, 4))
  np.add.at(expected, index, grad)
  assert actual.dtype == jnp.bfloat16
  np.testing.assert_array_equal(actual, expected.astype(jnp.bfloat16))
