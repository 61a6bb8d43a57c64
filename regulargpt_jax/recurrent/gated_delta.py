"""Gated DeltaNet and Gated DeltaProduct.

Yang, Kautz and Hatamizadeh, 2025 (arXiv:2412.06464); Siems et al., 2025
(arXiv:2502.10297). Letters: see `linear_recurrence`; D width, M Householder
factors a symbol.
"""

from flax import linen as nn
import jax
import jax.numpy as jnp

from regulargpt_jax.recurrent import blocks, linear_recurrence


def recur(
  q_BxTxHxK: jax.Array,
  k_BxTxMxHxK: jax.Array,
  v_BxTxMxHxV: jax.Array,
  strength_BxTxMxH: jax.Array,
  gate_BxTxH: jax.Array,
) -> jax.Array:
  """Returns o_t = S_t' q_t, where a symbol takes M delta-rule steps.

  S <- a_t S, and then for each m, S <- (I - beta k k') S + beta k v', with k,
  v and beta of t and m. With M = 1 it is Gated DeltaNet.
  """
  batch_size, length, num_factors, num_heads, _ = k_BxTxMxHxK.shape

  def flat(x):
    return x.reshape(batch_size, length * num_factors, num_heads, -1)

  # Gated at the first factor, read at the last.
  gate = jnp.ones_like(strength_BxTxMxH).at[:, :, 0].set(gate_BxTxH)
  q = jnp.zeros_like(k_BxTxMxHxK).at[:, :, -1].set(q_BxTxHxK)
  q, k, v, strength, gate = map(
    flat, (q, k_BxTxMxHxK, v_BxTxMxHxV, strength_BxTxMxH, gate)
  )
  out = linear_recurrence.run(
    q, strength * k, v, gate, (-gate * strength * k, k)
  )
  return out[:, num_factors - 1 :: num_factors]


class Mixer(nn.Module):
  """As Yang et al.; Siems et al. have M keys and values a symbol."""

  num_heads: int
  num_factors: int
  eigenvalues: blocks.Eigenvalues

  @nn.compact
  def __call__(self, x_BxTxD, is_symbol_BxTx1):
    """See `blocks.TokenModel`."""
    width, num_factors = x_BxTxD.shape[-1], self.num_factors

    def projected(num):
      x = blocks.linear(num * width)(x_BxTxD)
      return blocks.heads(blocks.ShortConvolution()(x), num * self.num_heads)

    def by_factor(x):
      return x.reshape(*x.shape[:2], num_factors, self.num_heads, *x.shape[3:])

    q = blocks.unit(projected(1))
    k = by_factor(blocks.unit(projected(num_factors)))
    v = by_factor(projected(num_factors))
    strength = nn.sigmoid(blocks.linear(num_factors * self.num_heads)(x_BxTxD))
    if self.eigenvalues == '[-1,1]':
      strength = 2 * strength
    _, gate = blocks.DecayGate(self.num_heads)(x_BxTxD)
    gate = jnp.where(is_symbol_BxTx1, gate, 1)
    out = blocks.RMSNorm()(recur(q, k, v, by_factor(strength), gate))
    out = blocks.merged(out) * nn.silu(blocks.linear(width)(x_BxTxD))
    return blocks.linear(width)(out)


class GatedDeltaNet(blocks.TokenModel):
  """Gated DeltaNet: a state that is erased along one key a step.

  Eigenvalues in [-1,1] are a (1 - beta) with beta in [0, 2] in place of [0, 1]
  (Grazzi et al., 2025, arXiv:2411.12537).
  """

  num_heads: int = 4
  eigenvalues: blocks.Eigenvalues = '[-1,1]'

  def mixer(self):
    """See base class."""
    return Mixer(self.num_heads, 1, self.eigenvalues)


class GatedDeltaProduct(blocks.TokenModel):
  """Gated DeltaProduct: Gated DeltaNet with `num_factors` keys a step.

  `num_factors` is the paper's n_h. Eigenvalues: as Gated DeltaNet.
  """

  num_heads: int = 4
  num_factors: int = 2
  eigenvalues: blocks.Eigenvalues = '[-1,1]'

  def mixer(self):
    """See base class."""
    return Mixer(self.num_heads, self.num_factors, self.eigenvalues)
