"""Mamba-2 (Dao and Gu, 2024, arXiv:2405.21060).

Letters: see `linear_recurrence`; D width.
"""

from flax import linen as nn
import jax
import jax.numpy as jnp

from regulargpt_jax.recurrent import blocks, linear_recurrence


def recur(
  x_BxTxHxV: jax.Array,
  b_BxTxK: jax.Array,
  c_BxTxK: jax.Array,
  step_BxTxH: jax.Array,
  gate_BxTxH: jax.Array,
) -> jax.Array:
  """Returns y_t = S_t' c_t, with S_t = a_t S_(t-1) + b_t (dt_t x_t)'.

  b and c are common to all heads.
  """
  shape = (*x_BxTxHxV.shape[:3], b_BxTxK.shape[-1])
  b, c = (jnp.broadcast_to(y[:, :, None], shape) for y in (b_BxTxK, c_BxTxK))
  return linear_recurrence.run(
    c, b, x_BxTxHxV * step_BxTxH[..., None], gate_BxTxH[..., None]
  )


class Mixer(nn.Module):
  """Projections in parallel, the recurrence, then a gated norm."""

  num_heads: int
  state_size: int
  eigenvalues: blocks.Eigenvalues

  @nn.compact
  def __call__(self, x_BxTxD, is_symbol_BxTx1):
    """See `blocks.TokenModel`."""
    width = x_BxTxD.shape[-1]
    inner, size = 2 * width, self.state_size
    z = blocks.linear(inner)(x_BxTxD)
    mixed = blocks.ShortConvolution()(blocks.linear(inner + 2 * size)(x_BxTxD))
    x, b, c = jnp.split(mixed, [inner, inner + size], axis=-1)
    step, gate = blocks.DecayGate(self.num_heads)(x_BxTxD)
    if self.eigenvalues == '[-1,1]':
      gate = 2 * gate - 1
    gate = jnp.where(is_symbol_BxTx1, gate, 1)
    x = blocks.heads(x, self.num_heads)
    skip_H = self.param('skip', nn.initializers.ones, (self.num_heads,))
    y = recur(x, b, c, step, gate) + skip_H[:, None] * x
    y = blocks.RMSNorm()(blocks.merged(y) * nn.silu(z))
    return blocks.linear(width)(y)


class Mamba2(blocks.TokenModel):
  """Mamba-2: a state that decays by one number a head and step.

  Eigenvalues in [-1,1] are 2 a - 1 in place of a (Grazzi et al., 2025,
  arXiv:2411.12537).
  """

  num_heads: int = 4
  state_size: int = 16
  eigenvalues: blocks.Eigenvalues = '[0,1]'

  def mixer(self):
    """See base class."""
    return Mixer(self.num_heads, self.state_size, self.eigenvalues)
