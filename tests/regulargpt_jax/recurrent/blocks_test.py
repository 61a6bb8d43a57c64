"""Every architecture of tokens: what it reads, and what it refuses."""

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import recurrent
from regulargpt_jax.recurrent import blocks
from tests import slow

_SMALL = {'width': 8}
_LAYERS = {'num_layers': 1}


def _made(name, **fields):
  fields = _SMALL | (_LAYERS if name != 'looped_transformer' else {}) | fields
  return recurrent.MODELS[name](3, 2, **fields)


# Each recurrence is tested by itself; these are of one kind each.
_KINDS = ('slstm', 'looped_transformer')


@pytest.mark.parametrize(
  'name', slow.unless(lambda name: name in _KINDS, recurrent.MODELS)
)
def test_padding_never_matters_nor_what_comes_later(name):
  """Values and gradients, to more than a chunk; others beside it in a batch."""
  model = _made(name)
  rng = np.random.default_rng(0)
  strings = rng.integers(3, size=(2, 5))
  bare = jnp.array(strings)
  padded = np.full((2, 20), -1)
  padded[0, -5:] = strings[0]
  padded[1, -12:-7] = strings[1]  # Of the same, and then seven more.
  padded[1, -7:] = rng.integers(3, size=7)
  params = jax.jit(model.init)(jax.random.key(0), bare)
  # Some of the initial ones are 0.
  params = jax.tree.map(
    lambda x: np.float32(x + 0.1 * rng.normal(size=x.shape)),
    jax.device_get(params),
  )

  def loss(params, tokens, at):
    logits = model.apply(params, tokens)
    chosen = jnp.stack(
      [jax.lax.dynamic_slice_in_dim(logits[i], at[i], 5) for i in (0, 1)]
    )
    return jnp.sum(
      chosen * jnp.arange(5)[:, None] ** 0.5 * jnp.array([1, -2])
    ), chosen

  gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))
  (_, logits), of_bare = gradient(params, bare, jnp.array([0, 0]))
  (_, others), of_padded = gradient(
    params, jnp.array(padded), jnp.array([15, 8])
  )
  assert jnp.abs(logits[:, 0] - logits[:, 4]).max() > 1e-3
  np.testing.assert_allclose(others, logits, atol=2e-5)
  for a, b in zip(
    jax.tree.leaves(of_bare), jax.tree.leaves(of_padded), strict=True
  ):
    assert np.isfinite(a).all()
    np.testing.assert_allclose(b, a, atol=1e-4 * max(1, jnp.abs(a).max()))


@pytest.mark.parametrize(
  ('name', 'fields', 'message'),
  [
    ('mamba_2', {'num_heads': 3}, r'num_heads must divide width \(8\), got 3'),
    ('mamba_2', {'state_size': 0}, 'state_size must be at least 1, got 0'),
    ('slstm', {'num_layers': 10**6}, 'num_layers must be at most 256'),
    ('rwkv_7', {'eigenvalues': '[0,2]'}, r"\[0,1\] or \[-1,1\], got '\[0,2\]'"),
    (
      'gated_delta_product',
      {'num_factors': -1},
      'num_factors must be at least 1, got -1',
    ),
    ('looped_transformer', {'loops': 'sqrt'}, "log or length, got 'sqrt'"),
    ('looped_transformer', {'width': 0}, 'width must be at least 1'),
    ('pd_ssm', {'state_size': 10**9}, 'state_size must be at most 16,777,216'),
  ],
)
def test_what_cannot_be_is_refused(name, fields, message):
  with pytest.raises(ValueError, match=message):
    _made(name, **fields)


def test_layers_are_the_plain_ones():
  """Values and gradients of what is written for speed."""
  rng = np.random.default_rng(0)
  x, weights = rng.normal(size=(2, 2, 5, 3)).astype(np.float32)
  kernel = rng.normal(size=(3, 3)).astype(np.float32)

  def plain_convolution(kernel, x):
    # Of output t it is the sum over i of kernel 2 - i times x at t - i.
    before = jnp.array([np.eye(5, k=-i) for i in (2, 1, 0)])
    return jnp.einsum('if,its,bsf->btf', kernel, before, x)

  def of_layer(layer):
    return lambda kernel, x: layer.apply({'params': {'kernel': kernel}}, x)

  def of_norm(layer):
    return lambda kernel, x: layer.apply({'params': {'scale': kernel[0]}}, x)

  for own, plain in (
    (blocks._convolved, plain_convolution),
    (of_layer(blocks.linear(3)), of_layer(nn.Dense(3, use_bias=False))),
    (of_norm(blocks.RMSNorm()), of_norm(nn.RMSNorm())),
  ):
    (found, of_found), (expected, of_expected) = (
      jax.vjp(jax.jit(f), kernel, x) for f in (own, plain)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    gradients, others = of_found(weights), of_expected(weights)
    np.testing.assert_allclose(gradients[0], others[0], atol=1e-4)
    np.testing.assert_allclose(gradients[1], others[1], rtol=1e-4, atol=1e-4)
