"""Joint gradients against those that JAX gives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config as config_lib
from regulargpt_jax import joint_gradients
from regulargpt_jax import model as model_lib


@pytest.mark.parametrize(
  ('preset', 'dtype', 'thickness'),
  [
    pytest.param('benchmark', 'float32', 2, marks=pytest.mark.slow),
    ('language', 'bfloat16', 1),
  ],
)
def test_gradients_are_those_of_jax(preset, dtype, thickness):
  config = config_lib.make_config(
    preset,
    vocab_size=3,
    output_size=3,
    embedding_dim=8,
    num_heads=2,
    thickness=thickness,
    dropout_rate=0.3,
    dtype=jnp.dtype(dtype),
  )
  module = model_lib.RegularGPT(config)
  tokens = jax.random.randint(jax.random.key(1), (2, 5, 3), 0, 3)
  init = jax.jit(jax.vmap(module.init))
  variables = init(jax.random.split(jax.random.key(0)), tokens)
  rngs = {'dropout': jax.random.split(jax.random.key(2))}

  def loss(apply):
    def run(variables, tokens, rngs):
      return jnp.sum(jnp.sin(apply(variables, tokens, rngs)))

    return lambda variables: jnp.sum(jax.vmap(run)(variables, tokens, rngs))

  def plain(variables, tokens, rngs):
    return module.apply(variables, tokens, extra_levels=1, rngs=rngs)

  def joint(variables, tokens, rngs):
    arrays = {'tokens_BxT': tokens, 'rngs': rngs}
    return joint_gradients.apply(module, variables, arrays, extra_levels=1)

  expected, expected_grad = jax.jit(jax.value_and_grad(loss(plain)))(variables)
  value, grad = jax.jit(jax.value_and_grad(loss(joint)))(variables)
  tolerance = 1e-5 if dtype == 'float32' else 3e-2
  np.testing.assert_allclose(value, expected, rtol=tolerance)
  leaves = jax.tree.leaves(expected_grad)
  # One for all: some, as that of a key's bias, are nothing but rounding.
  scale = max(np.abs(np.asarray(e, np.float32)).max() for e in leaves)
  for g, e in zip(jax.tree.leaves(grad), leaves, strict=True):
    assert g.dtype == e.dtype
    np.testing.assert_allclose(g, e, atol=tolerance * scale, rtol=0)
