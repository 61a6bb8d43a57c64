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
  index = jnp.asarray(rng.choice([*rows, num_rows - 1], size=(5, 7)))
  weights = jnp.asarray(rng.normal(size=(5, 7, 4)), jnp.float32)
  actual, expected = (
    jax.value_and_grad(lambda t, f=f: (f(t, index) * weights).sum())(table)
    for f in (lookup.take_rows, lambda t, i: t[i])
  )
  jax.tree.map(
    lambda a, e: np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5),
    actual,
    expected,
  )
