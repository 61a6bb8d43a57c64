"""Position biases against the formulas of their papers, one pair at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import attention, position_biases
from tests.regulargpt_jax import numpy_oracle, parameters

_LENGTH = 200


def _bias(kind, num_heads):
  """The bias and its parameters, at a place that is not where they start."""
  module = position_biases.PositionBias(kind, num_heads)
  params = parameters.random(module, _LENGTH)
  bias = jax.jit(module.apply, static_argnums=1)(params, _LENGTH)
  return np.asarray(bias), params.get('params', {})


@pytest.mark.parametrize('num_heads', [3, 8, 12])
@pytest.mark.parametrize('kind', ['alibi', 'kerple_log', 't5', 'none'])
def test_biases_are_those_of_the_papers(kind, num_heads):
  bias, params = _bias(kind, num_heads)
  assert set(params) == {'kerple_log': {'r1', 'r2'}, 't5': {'bias'}}.get(
    kind, set()
  )
  expected = numpy_oracle.position_bias(kind, params, num_heads, _LENGTH)
  np.testing.assert_allclose(bias, expected, rtol=1e-5)


def test_t5_buckets_far_away():
  distances = np.arange(5000)
  buckets = position_biases.t5_bucket(distances)
  expected = [numpy_oracle.t5_bucket(int(d)) for d in distances]
  assert buckets.tolist() == expected


def test_kerple_log_starts_positive_and_stays_so():
  module = position_biases.PositionBias('kerple_log', 500)
  params = module.init(jax.random.key(0), 2)['params']
  for name, top in (('r1', 2.0), ('r2', 1.0)):
    start = jax.nn.softplus(params[name])
    assert 0.01 <= start.min() < 0.1 * top
    assert 0.9 * top < start.max() <= top
  params = jax.tree.map(lambda x: x - 50.0, params)
  assert (module.apply({'params': params}, 2)[:, 1] <= 0).all()


@pytest.mark.parametrize(
  'sizes', [(7, 3, 3, 0), (7, 3, 7, 4), (4, 4, 8, 4), (2, 5, 9, 1)], ids=str
)
def test_by_distance_is_indexing(sizes):
  num, num_queries, num_keys, offset = sizes
  bias = jnp.arange(1.0, 2 * num + 1).reshape(2, num)
  weights = jax.random.normal(jax.random.key(0), (2, num_queries, num_keys))

  def value_and_gradient(f):
    gradient = jax.grad(lambda b: (f(b) * weights).sum())
    return jax.jit(lambda b: (f(b), gradient(b)))(bias)

  distance = offset + np.arange(num_queries)[:, None] - np.arange(num_keys)
  in_range = (distance >= 0) & (distance < num)
  jax.tree.map(
    lambda a, e: np.testing.assert_allclose(a, e, atol=1e-5),
    value_and_gradient(
      lambda b: attention.by_distance(b, num_queries, num_keys, offset)
    ),
    value_and_gradient(
      lambda b: jnp.where(in_range, b[:, np.clip(distance, 0, num - 1)], 0)
    ),
  )
