"""Every architecture since 2023, whole, against NumPy in double precision."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import recurrent
from regulargpt_jax.recurrent import rwkv_7
from tests.regulargpt_jax import numpy_oracle
from tests.regulargpt_jax.recurrent import numpy_models

_CASES = [
  *((name, {}) for name in recurrent.MODELS),
  ('looped_transformer', {'loops': 'length'}),
  ('mamba_2', {'eigenvalues': '[-1,1]'}),
  ('rwkv_7', {'eigenvalues': '[-1,1]'}),
  ('gated_delta_net', {'eigenvalues': '[0,1]'}),
]


def _made(name, fields):
  """A model, its parameters, all of which matter, and a string."""
  if name != 'looped_transformer':
    fields = {'num_layers': 1} | fields
  model = recurrent.MODELS[name](3, 2, width=8, **fields)
  string = np.random.default_rng(0).integers(3, size=7)
  shapes = jax.eval_shape(model.init, jax.random.key(0), string[None])
  rng = np.random.default_rng(1)
  params = jax.tree.map(
    lambda x: (0.5 * rng.normal(size=x.shape)).astype(np.float32), shapes
  )
  return model, params, string


@pytest.mark.parametrize(('name', 'fields'), _CASES)
def test_logits(name, fields):
  model, params, string = _made(name, fields)
  actual = jax.jit(model.apply)(params, string[None])[0]
  expected = numpy_models.logits(params, model, string)
  np.testing.assert_allclose(actual, expected, atol=2e-4)


@pytest.mark.parametrize('num_layers', [1, 2])
def test_the_last_position_alone(num_layers):
  """Whatever the mixer: what is left out comes after it."""
  model, params, string = _made('slstm', {'num_layers': num_layers})
  last, every = jax.jit(
    lambda params: (
      model.clone(last_only=True).apply(params, string[None]),
      model.apply(params, string[None]),
    )
  )(params)
  np.testing.assert_allclose(last, every[:, -1], atol=1e-5)


@pytest.mark.parametrize(
  # What PD-SSM's places have for a gradient is not that of what they are.
  'name',
  [name for name in recurrent.MODELS if name != 'pd_ssm'],
)
def test_gradients(name):
  model, params, string = _made(name, {})

  def loss(params):
    return jnp.sum(jnp.sin(model.apply(params, string[None])[0]))

  measured, by_gradient = numpy_oracle.slopes(
    lambda params: np.sin(numpy_models.logits(params, model, string)).sum(),
    params,
    jax.jit(jax.grad(loss))(params),
  )
  np.testing.assert_allclose(by_gradient, measured, rtol=1e-3)


@pytest.mark.parametrize('eigenvalues', ['[0,1]', '[-1,1]'])
def test_states_of_rwkv_7_do_not_grow(eigenvalues):
  """One symbol 300 times, rates at their most, decays at either end."""
  model, params, _ = _made('rwkv_7', {'eigenvalues': eigenvalues})
  recur = rwkv_7.recur

  @jax.jit
  def reads(params, tokens):
    found = []

    def recorded(*inputs):
      found.append(recur(*inputs))
      return found[-1]

    with mock.patch.object(rwkv_7, 'recur', recorded):
      model.apply(params, tokens)
    return found[0]

  for speed in (-20, 20):

    def saturated(path, x, speed=speed):
      value = {'decay_speed': speed, 'rate_bias': 20}.get(path[-1].key)
      return x if value is None else np.full_like(x, value)

    extreme = jax.tree_util.tree_map_with_path(saturated, params)
    largest_T = np.abs(reads(extreme, np.zeros((1, 300), int))).max((0, 2, 3))
    # What is kept whole is a sum of so many symbols.
    assert 0 < largest_T[200:].max() < 4 * largest_T[:100].max()
