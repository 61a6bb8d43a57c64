"""A looped transformer: one block, more often for longer strings.

Fan et al., 2025 (arXiv:2409.15647): causal, without positional encodings, and
the input is added before every loop. ceil(log2 T) loops are of Merrill and
Sabharwal, 2025 (arXiv:2503.03961).

Letters: B batch, T length, Q queries, K keys, H heads, D width.
"""

from typing import Literal

from flax import linen as nn
import jax
import jax.numpy as jnp

from regulargpt_jax import rows
from regulargpt_jax.recurrent import blocks


class LoopedTransformer(blocks.Checked):
  """One transformer block, looped.

  The t-th symbol is looped ceil(log2 t) times, at least once, or t times: as
  often as if the string ended with it, so that it does not see how long the
  string is. Later loops leave it as it is. Memory is of one loop's attention,
  T^2, and of a vector a symbol and loop.
  """

  num_heads: int = 4
  loops: Literal['log', 'length'] = 'log'

  @nn.compact
  def __call__(self, tokens_BxT: jax.Array) -> jax.Array:
    """See class."""
    is_symbol_BxT = tokens_BxT >= 0
    length = tokens_BxT.shape[1]
    place_BxT = jnp.cumsum(is_symbol_BxT, axis=1)
    num_loops_BxT, most = place_BxT, length
    if self.loops == 'log':
      most = max(1, (length - 1).bit_length())
      powers = 2 ** jnp.arange(most)
      below_BxT = jnp.sum(powers < place_BxT[..., None], axis=-1)
      num_loops_BxT = jnp.maximum(1, below_BxT)
    visible = is_symbol_BxT[:, None] & jnp.tril(
      jnp.ones((length, length), bool)
    )
    x = nn.Embed(self.input_size, self.width)(jnp.maximum(tokens_BxT, 0))
    loop = nn.scan(
      nn.remat(_Loop),
      variable_broadcast='params',
      split_rngs={'params': False},
      in_axes=(0, nn.broadcast, nn.broadcast, nn.broadcast),
    )(self.num_heads)
    h, _ = loop(
      jnp.zeros_like(x),
      jnp.arange(most),
      x,
      num_loops_BxT[..., None],
      visible[:, None],
    )
    return rows.dense(self.output_size)(blocks.RMSNorm()(h))


class _Loop(nn.Module):
  num_heads: int

  @nn.compact
  def __call__(self, h, loop, x, num_loops_BxTx1, visible_Bx1xQxK):
    y = h + x
    y = y + self._attention(blocks.RMSNorm()(y), visible_Bx1xQxK)
    y = y + blocks.FeedForward(2 * x.shape[-1])(blocks.RMSNorm()(y))
    return jnp.where(loop < num_loops_BxTx1, y, h), None

  def _attention(self, y, visible_Bx1xQxK):
    width = y.shape[-1]
    q, k, v = (
      blocks.heads(z, self.num_heads)
      for z in jnp.split(blocks.linear(3 * width)(y), 3, axis=-1)
    )
    logits = jnp.einsum('bqhd,bkhd->bhqk', q, k) * q.shape[-1] ** -0.5
    weights = nn.softmax(logits, where=visible_Bx1xQxK)
    out = jnp.einsum('bhqk,bkhd->bqhd', weights, v)
    return blocks.linear(width)(blocks.merged(out))
