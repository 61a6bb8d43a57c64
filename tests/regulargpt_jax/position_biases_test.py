"""Position biases against the formulas of their papers, one pair at a time."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import attention, position_biases

_LENGTH = 200


def _bias(kind, num_heads):
  """The bias and its parameters, at a place that is not where they start."""
  module = position_biases.PositionBias(kind, num_heads)
  bias, variables = module.init_with_output(jax.random.key(0), _LENGTH)
  del bias
  params = jax.tree.map(lambda x: x + 0.3, variables.get('params', {}))
  return np.asarray(module.apply({'params': params}, _LENGTH)), params


@pytest.mark.parametrize('num_heads', [8, 12])
def test_alibi(num_heads):
  bias, params = _bias('alibi', num_heads)
  assert not params
  slopes = [2.0 ** -(h + 1) for h in range(8)]
  slopes += [2.0 ** -(h + 0.5) for h in range(num_heads - 8)]
  for h, distance in np.ndindex(num_heads, _LENGTH):
    assert bias[h, distance] == pytest.approx(-slopes[h] * distance)


def test_kerple_log():
  bias, params = _bias('kerple_log', 3)
  for h, distance in np.ndindex(3, _LENGTH):
    r1, r2 = (math.log1p(math.exp(params[name][h])) for name in ('r1', 'r2'))
    expected = -r1 * math.log(1 + r2 * distance)
    assert bias[h, distance] == pytest.approx(expected, rel=1e-5)


def test_kerple_log_starts_positive_and_stays_so():
  module = position_biases.PositionBias('kerple_log', 500)
  params = module.init(jax.random.key(0), 2)['params']
  for name, top in (('r1', 2.0), ('r2', 1.0)):
    start = jax.nn.softplus(params[name])
    assert 0.01 <= start.min() < 0.1 * top
    assert 0.9 * top < start.max() <= top
  params = jax.tree.map(lambda x: x - 50.0, params)
  assert (module.apply({'params': params}, 2)[:, 1] <= 0).all()


def _exact_bucket(distance):
  """In integers: 16 log_8(distance / 16) >= i if distance^16 >= 16^16 8^i."""
  if distance < 16:
    return distance
  steps = [i for i in range(1, 16) if distance**16 >= 16**16 * 8**i]
  return 16 + len(steps)


def test_t5():
  bias, params = _bias('t5', 2)
  for h, distance in np.ndindex(2, _LENGTH):
    assert bias[h, distance] == params['bias'][_exact_bucket(distance), h]
  distances = np.arange(5000)
  buckets = position_biases.t5_bucket(distances)
  assert buckets.tolist() == [_exact_bucket(int(d)) for d in distances]


def test_none():
  bias, params = _bias('none', 2)
  assert not params and not bias.any()


@pytest.mark.parametrize(
  'sizes', [(7, 3, 3, 0), (7, 3, 7, 4), (4, 4, 8, 4), (2, 5, 9, 1)], ids=str
)
def test_by_distance_is_indexing(sizes):
  num, num_queries, num_keys, offset = sizes
  bias = jnp.arange(1.0, 2 * num + 1).reshape(2, num)
  weights = jax.random.normal(jax.random.key(0), (2, num_queries, num_keys))

  def value_and_gradient(f):
    return jax.value_and_grad(lambda b: (f(b) * weights).sum())(bias), f(bias)

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
