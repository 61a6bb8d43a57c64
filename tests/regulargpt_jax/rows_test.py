"""Linear layers over rows are linear layers."""

from flax import linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import rows
from regulargpt_jax.baselines import layers

_RUNS = 2


def _values_and_gradients(apply, params, x):
  """Returns what runs side by side make of an input each, and gradients."""

  def loss(params, x):
    out = apply(params, x)
    return jnp.sum(jnp.sin(out.astype(jnp.float32))), out

  return jax.jit(jax.vmap(jax.grad(loss, (0, 1), has_aux=True)))(params, x)


def _assert_alike(found, expected, dtype):
  atol = 1e-5 if dtype == jnp.float32 else 0.1
  for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
    assert one.shape == other.shape
    assert one.dtype == other.dtype
    np.testing.assert_allclose(
      np.asarray(one, np.float32), np.asarray(other, np.float32), atol=atol
    )


@pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize('shape', [(3,), (4, 3), (2, 1, 5, 3)])
def test_flax_layers_are_those_over_one_axis(shape, dtype):
  x = jax.random.normal(jax.random.key(0), (_RUNS, *shape))
  layer, plain = rows.dense(6, dtype=dtype), nn.Dense(6, dtype=dtype)
  keys = jax.random.split(jax.random.key(1), _RUNS)
  params = jax.vmap(lambda key: plain.init(key, x[0]))(keys)
  assert layer.apply(jax.tree.map(lambda p: p[0], params), x[0]).dtype == dtype
  found, expected = (
    _values_and_gradients(module.apply, params, x) for module in (layer, plain)
  )
  _assert_alike(found, expected, dtype)


@pytest.mark.parametrize('shape', [(4, 3), (2, 1, 5, 3)])
def test_haiku_layers_are_those_over_one_axis(shape):
  x = jax.random.normal(jax.random.key(0), (_RUNS, *shape))
  plain = hk.without_apply_rng(
    hk.transform(lambda x: hk.Linear(6, name='layer')(x))
  )
  own = hk.without_apply_rng(
    hk.transform(lambda x: layers.linear(x, 6, 'layer'))
  )
  keys = jax.random.split(jax.random.key(1), _RUNS)
  params = jax.vmap(lambda key: plain.init(key, x[0]))(keys)
  found, expected = (
    _values_and_gradients(model.apply, params, x) for model in (own, plain)
  )
  _assert_alike(found, expected, jnp.float32)
