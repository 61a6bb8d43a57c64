"""PD-SSM (Terzic et al., 2025, arXiv:2509.22284).

Letters: B batch, T length, D width, N state size, M matrices in the dictionary.
"""

from flax import linen as nn
import jax
import jax.numpy as jnp

from regulargpt_jax.recurrent import blocks


def one_hot_columns(scores_NxN: jax.Array) -> jax.Array:
  """Returns [..., N, N]: a 1 in each column, where its score is largest.

  Its gradient is that of the softmax of each column.
  """
  soft = nn.softmax(scores_NxN, axis=-2)
  hard = jax.nn.one_hot(
    jnp.argmax(scores_NxN, axis=-2), scores_NxN.shape[-2], axis=-2
  )
  return soft + jax.lax.stop_gradient(hard - soft)


def recur(
  p_BxTxNxN: jax.Array, d_BxTxNx2: jax.Array, b_BxTxNx2: jax.Array
) -> jax.Array:
  """Returns the states x_t = P_t diag(d_t) x_(t-1) + b_t, [B, T, N, 2].

  States, d and b are complex: the last axis is of real and imaginary part. The
  first state is (1, 0, ..., 0). Step by step, N^2 work a step.
  """

  def step(x, inputs):
    p, d, b = inputs
    (x_re, x_im), (d_re, d_im) = (jnp.moveaxis(y, -1, 0) for y in (x, d))
    product = [d_re * x_re - d_im * x_im, d_re * x_im + d_im * x_re]
    x = p @ jnp.stack(product, axis=-1) + b
    return x, x

  start = jnp.zeros_like(b_BxTxNx2[:, 0]).at[:, 0, 0].set(1)
  inputs = [y.swapaxes(0, 1) for y in (p_BxTxNxN, d_BxTxNx2, b_BxTxNx2)]
  _, x = jax.lax.scan(step, start, tuple(inputs))
  return x.swapaxes(0, 1)


class Mixer(nn.Module):
  """P of a mixture of the dictionary's matrices, d and b of the symbol."""

  state_size: int
  dictionary_size: int

  @nn.compact
  def __call__(self, x_BxTxD, is_symbol_BxTx1):
    """See `blocks.TokenModel`."""
    size = self.state_size

    def generated(name):
      hidden = nn.gelu(nn.Dense(2 * size, name=f'{name}_hidden')(x_BxTxD))
      return nn.sigmoid(nn.Dense(size, name=name)(hidden))

    chosen = nn.softmax(blocks.linear(self.dictionary_size)(x_BxTxD))
    dictionary = self.param(
      'dictionary',
      nn.initializers.normal(size**-0.5),
      (self.dictionary_size, size, size),
    )
    p = one_hot_columns(jnp.einsum('btm,mij->btij', chosen, dictionary))
    magnitude, phase = generated('magnitude'), 2 * jnp.pi * generated('phase')
    d = magnitude[..., None] * jnp.stack([jnp.cos(phase), jnp.sin(phase)], -1)
    b = blocks.linear(2 * size)(x_BxTxD).reshape(*d.shape)
    is_symbol = is_symbol_BxTx1[..., None]
    p = jnp.where(is_symbol, p, jnp.eye(size))
    d = jnp.where(is_symbol, d, jnp.array([1.0, 0.0]))
    states = recur(p, d, b)
    out = nn.Dense(x_BxTxD.shape[-1])(blocks.merged(states))
    skip = self.param('skip', nn.initializers.normal(0.1), out.shape[-1:])
    return out + skip * x_BxTxD


class PDSSM(blocks.TokenModel):
  """PD-SSM: a state moved by a map of places, and turned and scaled in each.

  Its transition matrices have one complex number in each column.
  """

  state_size: int = 32
  dictionary_size: int = 8

  def mixer(self):
    """See base class."""
    return Mixer(self.state_size, self.dictionary_size)
