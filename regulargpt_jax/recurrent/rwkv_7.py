"""RWKV-7 (Peng et al., 2025, arXiv:2503.14456).

Letters: see `linear_recurrence`; D width.
"""

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from regulargpt_jax.recurrent import blocks, linear_recurrence

# Below all decays.
_LEAST_DECAY = np.exp(-(np.e**-0.5))


def recur(
  r_BxTxHxK: jax.Array,
  decay_BxTxHxK: jax.Array,
  k_BxTxHxK: jax.Array,
  v_BxTxHxV: jax.Array,
  removal_BxTxHxK: jax.Array,
  rate_BxTxHxK: jax.Array,
) -> jax.Array:
  """Returns S_t r_t, [B, T, H, V].

  S_t = S_(t-1) (diag(w_t) - kappa_t (a_t * kappa_t)') + v_t k_t', with decays
  w, removal keys kappa, of length 1, and in-context learning rates a (eq. 17).
  """
  return linear_recurrence.run(
    r_BxTxHxK,
    k_BxTxHxK,
    v_BxTxHxV,
    decay_BxTxHxK,
    (-rate_BxTxHxK * removal_BxTxHxK, removal_BxTxHxK),
  )


class Mixer(nn.Module):
  """Time mixing (section 4.1), without values of the first layer in others."""

  num_heads: int
  eigenvalues: blocks.Eigenvalues

  @nn.compact
  def __call__(self, x_BxTxD, is_symbol_BxTx1):
    """See `blocks.TokenModel`."""
    width = x_BxTxD.shape[-1]

    def vector(name, value):
      return self.param(name, nn.initializers.constant(value), (width,))

    before = jnp.pad(x_BxTxD[:, :-1], ((0, 0), (1, 0), (0, 0)))
    x_r, x_w, x_k, x_v, x_a, x_g = (
      x_BxTxD + vector(f'mix_{name}', 0.5) * (before - x_BxTxD)
      for name in 'rwkvag'
    )

    def low_rank(x, inside):
      hidden = blocks.linear(max(1, width // 4))(x)
      return blocks.linear(width)(inside(hidden))

    r, k, v = (blocks.linear(width)(x) for x in (x_r, x_k, x_v))
    # From slow to fast as in the authors' code.
    speed = self.param('decay_speed', lambda _: jnp.linspace(-6.0, -1.0, width))
    decay = _LEAST_DECAY ** nn.sigmoid(speed + low_rank(x_w, jnp.tanh))
    decay = jnp.where(is_symbol_BxTx1, decay, 1)
    rate = nn.sigmoid(vector('rate_bias', 0.0) + low_rank(x_a, lambda x: x))
    removal = k * vector('removal_scale', 0.85)
    k = k * (1 + vector('rate_scale', 1.0) * (rate - 1))
    if self.eigenvalues == '[-1,1]':
      rate = (1 + _LEAST_DECAY) * rate
    bonus = vector('bonus', 0.0)
    r, decay, k, v, removal, rate, bonus = (
      blocks.heads(x, self.num_heads)
      for x in (r, decay, k, v, removal, rate, bonus)
    )
    out = recur(r, decay, k, v, blocks.unit(removal), rate)
    out = nn.LayerNorm()(out) + jnp.sum(r * bonus * k, -1, keepdims=True) * v
    out = blocks.merged(out) * low_rank(x_g, nn.sigmoid)
    return blocks.linear(width)(out)


class RWKV7(blocks.TokenModel):
  """RWKV-7: decays of each feature, and a state erased along one key a step.

  Its own eigenvalues are in [u - 1, 1] = [-0.455, 1], with u = exp(-1 /
  sqrt(e)) below all decays; they are called [0,1], as others' are. Those in
  [-1,1] are of learning rates in [0, 1 + u] in place of [0, 1]: with larger
  ones some would be below -1. These are eigenvalues of one symbol's transition:
  where learning rates differ by feature, products of several transitions may
  have eigenvalues beyond them.
  """

  num_heads: int = 4
  eigenvalues: blocks.Eigenvalues = '[0,1]'

  def mixer(self):
    """See base class."""
    return Mixer(self.num_heads, self.eigenvalues)
