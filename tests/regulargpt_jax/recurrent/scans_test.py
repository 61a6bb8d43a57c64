"""sLSTM, PD-SSM and the looped transformer against plain NumPy in float64.

Gradients are of finite differences of the NumPy functions.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.recurrent import looped, pd_ssm, xlstm

_B, _T = 2, 9
_RNG = np.random.default_rng(0)


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def _slstm(pre, r):
  """Without the running maximum: double precision bears it."""
  h, c, n = np.zeros((3, _B, *pre.shape[3:]))
  out = []
  for t in range(pre.shape[1]):
    z, i, f, o = (
      pre[:, t, g] + np.einsum('bhd,hde->bhe', h, r[g]) for g in range(4)
    )
    c = _sigmoid(f) * c + np.exp(i) * np.tanh(z)
    n = _sigmoid(f) * n + np.exp(i)
    h = _sigmoid(o) * c / n
    out.append(h)
  return np.stack(out, axis=1)


def _pd_ssm(p, d, b):
  d, b = (y[..., 0] + 1j * y[..., 1] for y in (d, b))
  x = np.zeros(b[:, 0].shape, complex)
  x[:, 0] = 1
  out = []
  for t in range(p.shape[1]):
    x = np.einsum('bij,bj->bi', p[:, t], d[:, t] * x) + b[:, t]
    out.append(np.stack([x.real, x.imag], axis=-1))
  return np.stack(out, axis=1)


def _fast_slstm(pre, r):
  return xlstm.recur_slstm(pre, r, jnp.ones((_B, _T, 1), bool))


def _slstm_inputs():
  # Input gates from e^-9 to e^9 or so.
  return [
    3 * _RNG.normal(size=(_B, _T, 4, 2, 3)),
    _RNG.normal(size=(4, 2, 3, 3)),
  ]


def _pd_ssm_inputs():
  p = np.eye(4)[_RNG.integers(4, size=(_B, _T, 4))].swapaxes(-1, -2)
  turned = np.exp(1j * _RNG.uniform(0, 2 * np.pi, size=(_B, _T, 4)))
  d = np.stack([turned.real, turned.imag], axis=-1)
  return [p, d, _RNG.normal(size=(_B, _T, 4, 2))]


_CASES = {
  'sLSTM': (_fast_slstm, _slstm, _slstm_inputs),
  'PD-SSM': (pd_ssm.recur, _pd_ssm, _pd_ssm_inputs),
}


@pytest.mark.parametrize('name', _CASES)
def test_values_and_gradients(name):
  """Gradients of a random weighting, along a random direction of each input."""
  fast, slow, make = _CASES[name]
  inputs = make()
  expected = slow(*inputs)
  weights = _RNG.normal(size=expected.shape)

  def loss(*inputs):
    out = fast(*inputs)
    return jnp.sum(out * weights), out

  which = tuple(range(len(inputs)))
  gradient = jax.jit(jax.grad(loss, which, has_aux=True))
  found, out = gradient(*(jnp.asarray(x, jnp.float32) for x in inputs))
  np.testing.assert_allclose(out, expected, atol=1e-4)
  for k, own in enumerate(found):
    direction = _RNG.normal(size=inputs[k].shape)
    step = [1e-5 * direction if j == k else 0 for j in which]
    above, below = (
      np.sum(
        weights * slow(*(x + s * y for x, y in zip(inputs, step, strict=True)))
      )
      for s in (1, -1)
    )
    slope = (above - below) / 2e-5
    assert np.sum(own * direction) == pytest.approx(slope, rel=1e-3, abs=1e-2)


def test_columns_are_one_hot_and_their_gradient_is_the_softmaxs():
  scores = jnp.asarray(_RNG.normal(size=(3, 4, 4)), jnp.float32)
  weights = jnp.asarray(_RNG.normal(size=(3, 4, 4)), jnp.float32)
  columns = pd_ssm.one_hot_columns(scores)
  np.testing.assert_allclose(np.sort(columns, axis=-2)[:, -1], 1, atol=1e-6)
  np.testing.assert_allclose(jnp.sum(columns, axis=-2), 1, atol=1e-6)
  own, soft = (
    jax.grad(lambda s, f=f: jnp.sum(f(s) * weights))(scores)
    for f in (pd_ssm.one_hot_columns, lambda s: jax.nn.softmax(s, axis=-2))
  )
  np.testing.assert_allclose(own, soft, atol=1e-6)


def _normed(x, scale):
  return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def _looped(params, tokens, num_heads, counts):
  """Symbol by symbol, in the order of loops; each stops at its own count."""
  p = jax.tree.map(lambda x: np.asarray(x, float), params['params'])
  # The scan's module is the only one with a feed-forward layer.
  (loop,) = (v for v in p.values() if 'FeedForward_0' in v)
  x = p['Embed_0']['embedding'][tokens]
  h = np.zeros_like(x)
  for step in range(max(counts)):
    y = h + x
    normed = _normed(y, loop['RMSNorm_0']['scale'])
    q, k, v = np.split(normed @ loop['Dense_0']['kernel'], 3, axis=-1)
    attended = np.zeros_like(y)
    size = y.shape[-1] // num_heads
    for t in range(len(tokens)):
      for head in range(num_heads):
        of = slice(head * size, (head + 1) * size)
        weights = np.exp(k[: t + 1, of] @ q[t, of] / size**0.5)
        attended[t, of] = weights @ v[: t + 1, of] / weights.sum()
    y = y + attended @ loop['Dense_1']['kernel']
    ffn = loop['FeedForward_0']
    hidden = _normed(y, loop['RMSNorm_1']['scale']) @ ffn['Dense_0']['kernel']
    gate, value = np.split(hidden, 2, axis=-1)
    y = y + (gate * _sigmoid(gate) * value) @ ffn['Dense_1']['kernel']
    for t, count in enumerate(counts):
      if step < count:
        h[t] = y[t]
  out = _normed(h, p['RMSNorm_0']['scale'])
  return out @ p['Dense_0']['kernel'] + p['Dense_0']['bias']


@pytest.mark.parametrize(
  ('loops', 'counts'),
  [('log', [1, 1, 2, 2, 3, 3, 3]), ('length', [1, 2, 3, 4, 5, 6, 7])],
)
def test_a_looped_transformer_is_the_block_again_and_again(loops, counts):
  model = looped.LoopedTransformer(3, 2, width=8, num_heads=2, loops=loops)
  tokens = np.array([0, 2, 1, 1, 0, 2, 2])
  batch = jnp.pad(jnp.array(tokens), (2, 0), constant_values=-1)[None]
  params = jax.jit(model.init)(jax.random.key(0), batch)
  # Of initial size, embeddings and logits would be small.
  params = jax.tree.map(lambda x: 2 * x, params)
  expected = _looped(params, tokens, 2, counts)
  out = jax.jit(model.apply)(params, batch)[0, 2:]
  np.testing.assert_allclose(out, expected, atol=1e-4)
