"""Positional encodings of the baselines, against their formulas."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import position_biases
from regulargpt_jax.baselines import (
  positional_encodings,
  transformer,
)
from tests.regulargpt_jax import equations
from tests.regulargpt_jax import small_baselines as small


def test_sinusoids_match_the_formula():
  positions = np.array([[0, 1, 7], [-2, 5, 300]])
  actual = positional_encodings.sinusoids(jnp.array(positions), 6, 100)
  for b, t, i in np.ndindex(2, 3, 3):
    angle = positions[b, t] / 100 ** (2 * i / 6)
    np.testing.assert_allclose(actual[b, t, i], np.sin(angle), atol=1e-5)
    np.testing.assert_allclose(actual[b, t, 3 + i], np.cos(angle), atol=1e-5)


def test_rotation_matches_the_formula():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(2, 3, 1, 4)).astype(np.float32)
  positions = np.array([[0, 1, 2], [-1, 0, 9]])
  actual = positional_encodings.rotate(jnp.array(x), jnp.array(positions), 100)
  for b, t, i in np.ndindex(2, 3, 2):
    angle = positions[b, t] * 100 ** (-2 * i / 4)
    pair = complex(*x[b, t, 0, 2 * i : 2 * i + 2]) * np.exp(1j * angle)
    np.testing.assert_allclose(
      actual[b, t, 0, 2 * i : 2 * i + 2], [pair.real, pair.imag], atol=1e-5
    )


def test_rotated_products_depend_on_the_distance_only():
  rng = np.random.default_rng(0)
  q, k = jnp.array(rng.normal(size=(2, 1, 5, 1, 6)), jnp.float32)
  products = []
  for offset in (0, 3):
    position = jnp.arange(5)[None] + offset
    products.append(
      jnp.einsum(
        'bqhd,bkhd->bhqk',
        positional_encodings.rotate(q, position, 100),
        positional_encodings.rotate(k, position, 100),
      )
    )
  np.testing.assert_allclose(*products, atol=1e-5)
  assert np.abs(products[0] - jnp.einsum('bqhd,bkhd->bhqk', q, k)).max() > 0.1


def test_alibi_matches_the_formula():
  assert position_biases.alibi_slopes(8) == [2.0**-h for h in range(1, 9)]
  assert position_biases.alibi_slopes(3) == [2**-4, 2**-8, 2**-2]
  slopes = position_biases.alibi_slopes(2)
  q_position, k_position = np.array([[0, 3]]), np.array([[0, 1, 5]])
  bias = positional_encodings.alibi_bias(
    jnp.array(q_position[:, :, None] - k_position[:, None]), 2
  )
  for h, q, k in np.ndindex(2, 2, 3):
    distance = q_position[0, q] - k_position[0, k]
    penalty = distance - 0.5 if distance > 0 else -distance
    assert bias[0, h, q, k] == -slopes[h] * penalty


@pytest.mark.parametrize('num_queries, num_keys', [(4, 4), (1, 3), (3, 5)])
@pytest.mark.parametrize('first_distance', [[0], [2, -3]])
def test_relative_logits_match_the_formula(
  num_queries, num_keys, first_distance
):
  num_heads, size, max_time = 2, 3, 50
  rng = np.random.default_rng(0)
  q = rng.normal(size=(2, num_queries, num_heads, size)).astype(np.float32)
  k = rng.normal(size=(2, num_keys, num_heads, size)).astype(np.float32)
  f = hk.transform(positional_encodings.relative_logits)
  args = (jnp.array(q), jnp.array(k), jnp.array(first_distance), max_time)
  params = small.init(f, *args)
  actual = jax.jit(f.apply, static_argnums=5)(params, None, *args)
  (biases,) = [p for p in params.values() if 'content_bias' in p]
  u, v = biases['content_bias'], biases['position_bias']
  w = params['relative_key']['w']
  for b, h, i, j in np.ndindex(2, num_heads, num_queries, num_keys):
    distance = i - j + first_distance[b % len(first_distance)]
    r = positional_encodings.sinusoids(
      jnp.array(distance), num_heads * size, max_time
    )
    r = np.asarray(r @ w).reshape(num_heads, size)[h]
    expected = (q[b, i, h] + u[h]) @ k[b, j, h] + (q[b, i, h] + v[h]) @ r
    np.testing.assert_allclose(actual[b, h, i, j], expected, atol=1e-4)


def test_relative_encodings_need_no_array_beyond_the_shifted_logits():
  batch_size, length, num_heads = 2, 40, 8
  f = hk.transform(
    transformer.make_transformer_encoder(
      small.O, embedding_dim=16, num_layers=1, positional_encodings='RELATIVE'
    )
  )
  x = small.strings([length] * batch_size, length)
  params = small.init(f, x)
  gradient = jax.grad(lambda p: f.apply(p, None, x).sum())
  largest = equations.largest(gradient, params)
  assert largest <= batch_size * num_heads * length * 2 * length


def test_contextual_positions_count_up_to_the_last():
  f = hk.transform(positional_encodings.cope_bias)
  rng = np.random.default_rng(0)
  q = rng.normal(size=(1, 80, 2, 3)).astype(np.float32)
  place = np.arange(80)
  distance = place[:, None] - place
  every_key_counts = np.full((1, 2, 80, 80), 50.0, np.float32)
  args = (q, every_key_counts, distance[None], np.ones((1, 80, 80), bool))
  params = small.init(f, *args)
  actual = jax.jit(f.apply)(params, None, *args)
  (e,) = (p['cope'] for p in params.values())
  e_QxKxd = e[(distance < 0).astype(int), np.minimum(abs(distance) + 1, 63)]
  expected = np.einsum('bqhd,qkd->bhqk', q, e_QxKxd)
  np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_distances_are_shares_of_the_threshold_or_of_longer_strings():
  """FIRE: beyond the threshold, 8 here, of the symbols on the key's side."""
  f = hk.transform(lambda *x: positional_encodings.fire_bias(*x, num_heads=2))
  place = np.arange(20)
  distance = place[:, None] - place
  args = (distance[None], place[None])
  params = small.init(f, *args)
  (name,) = (name for name, p in params.items() if 'fire_l' in p)
  params[name] |= {'fire_l': np.float32(8 / 512)}
  (bias,) = jax.jit(f.apply)(params, None, *args)
  p = {k.rpartition('/')[2]: v for k, v in params.items()}
  slope = abs(params[name]['fire_c'])
  for i in (0, 7, 8, 19):
    for j in (0, 5, 19):
      far = np.log1p(slope * max(8, i + 1 if j <= i else 20 - i))
      share = np.array([np.log1p(slope * abs(i - j)) / far])
      assert share <= 1
      hidden = share @ p['fire_hidden']['w'] + p['fire_hidden']['b']
      out = np.maximum(hidden, 0) @ p['fire_out']['w'] + p['fire_out']['b']
      expected = out.reshape(2, 2)[int(j > i)]
      np.testing.assert_allclose(bias[:, i, j], expected, atol=1e-5)


def _random_positions(lengths, width, num_positions, rng=None):
  position = jnp.arange(width) - (width - jnp.array(lengths))[:, None]
  return np.asarray(
    positional_encodings.random_positions(position, num_positions, rng)
  )


def test_random_positions_are_some_of_a_range_in_order():
  drawn = []
  for seed in range(200):
    rng = jax.random.key(seed)
    short, long = _random_positions([2, 4], 5, 6, rng)
    short, long = short[-2:], long[-4:]
    assert (np.diff(short) > 0).all() and (np.diff(long) > 0).all()
    assert {*short} <= {*long} <= {*range(6)}
    drawn.append(tuple(short))
  # Each of the 15 pairs is as likely as any other: 13 of each, or so.
  counts = [drawn.count(pair) for pair in {*drawn}]
  assert len(counts) == 15
  assert max(counts) < 30


def test_random_positions_at_test_are_fixed_whatever_the_padding():
  (bare,) = _random_positions([4], 4, 9)
  padded, other = _random_positions([4, 7], 7, 9)
  np.testing.assert_array_equal(padded[-4:], bare)
  assert {*bare} <= {*other}
  assert (_random_positions([9], 9, 9) == np.arange(9)).all()
  with pytest.raises(ValueError, match=r'randomized_positions \(3\) must be'):
    _random_positions([4], 4, 3)


def test_encoder_and_decoder_share_a_draw_of_positions(monkeypatch):
  """In training, where cross-attention would see noise of two."""
  drawn = []
  draw = positional_encodings.random_positions

  def recorded(*args):
    drawn.append(np.asarray(draw(*args)))
    return jnp.asarray(drawn[-1])

  monkeypatch.setattr(positional_encodings, 'random_positions', recorded)
  f = hk.transform(
    small.make(
      'transformer',
      positional_encodings='SIN_COS',
      num_layers=1,
      randomized_positions=50,
    )
  )
  x = small.strings([4, 4], 4)
  y = jax.nn.one_hot(jnp.zeros((2, 4), int), small.O)
  f.init(jax.random.key(0), x, y)
  first, *others = drawn
  assert len(others) == 2
  for other in others:
    np.testing.assert_array_equal(other, first)


def test_transformers_read_random_positions():
  fields = {'positional_encodings': 'SIN_COS', 'num_layers': 1}
  x = small.strings([4, 4], 4)
  plain, random, full = (
    hk.transform(
      small.make('transformer_encoder', randomized_positions=n, **fields)
    )
    for n in (None, 50, 4)
  )
  params = small.init(plain, x)
  expected = small.apply(plain, params, x)
  at_test = small.apply(random, params, x)
  assert np.abs(at_test - expected).max() > 1e-3
  np.testing.assert_allclose(small.apply(full, params, x), expected, atol=1e-6)
  padded = small.apply(random, params, small.strings([4, 4], 7))[:, 3:]
  np.testing.assert_allclose(padded, at_test, atol=1e-5)
  drawn = jax.jit(random.apply)
  one, other = (drawn(params, jax.random.key(seed), x) for seed in (0, 1))
  assert np.abs(one - other).max() > 1e-3
