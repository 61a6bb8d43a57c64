"""RegularGPT's block: attention to a dilated window, then a feed-forward layer.

Letters: B batch, T length, N rows, C chunk size, D width, H heads, d head size.
"""

import functools

from flax import linen as nn
import jax.numpy as jnp

from regulargpt_jax import attention, transformer
from regulargpt_jax import config as config_lib

# Up to this window width, `scan` gathers C shifted views; above, it attends in
# blocks, whose work per position is up to 2 C but in larger matrix products.
MAX_GATHERED_WINDOW = 16


class Block(transformer.Block):
  """Attention to a dilated window of C positions, then a feed-forward layer.

  Sows, in the collection 'intermediates': `attention_weights` (but not where it
  attends in blocks), `attention`, `ffn` (the two sublayers' outputs before the
  residual sum) and `output`.
  """

  config: config_lib.RegularGPTConfig

  def setup(self):  # noqa: D102
    super().setup()
    c = self.config
    self.position_bias_HxC = self.param(
      'position_bias',
      nn.initializers.normal(0.02),
      (c.num_heads, c.chunk_size),
    )

  def chunked(self, x_NxCxD, visible_NxC, deterministic=True):
    """Maps each chunk to the output at its last position, [N, D].

    N may be several axes.
    """
    y_NxCxD = self.before_attention(x_NxCxD)
    q_NxHxd = self.heads(self.query(y_NxCxD[..., -1, :]))
    # By position in the chunk; `bias` is by distance from the last.
    out, weights = attention.window_attention(
      q_NxHxd,
      self.heads(self.key(y_NxCxD)),
      self.heads(self.value(y_NxCxD)),
      jnp.flip(self.position_bias_HxC, -1),
      visible_NxC,
    )
    self.sow('intermediates', 'attention_weights', jnp.flip(weights, -1))
    return self.after_attention(x_NxCxD[..., -1, :], out, deterministic)

  def windowed(self, x_BxTxD, pad_D, visible_BxT, dilation, deterministic=True):
    """Maps a sequence to the outputs at all its positions.

    Returns:
      Outputs [B, T, D], and the keys and values that were attended to,
      [B, T, H, d].
    """
    c = self.config
    q, k, v = self.project(x_BxTxD)
    if pad_D is None:
      k_before = v_before = None
    else:
      _, k_before, v_before = self.project(pad_D)
    if c.chunk_size <= MAX_GATHERED_WINDOW:
      windows = functools.partial(
        attention.dilated_windows,
        dilation=dilation,
        chunk_size=c.chunk_size,
      )
      visible = None if pad_D is not None else windows(visible_BxT, False)
      zero = jnp.zeros((), k.dtype)
      out, weights = attention.window_attention(
        q,
        windows(k, zero if k_before is None else k_before),
        windows(v, zero if v_before is None else v_before),
        self.position_bias_HxC,
        visible,
      )
      self.sow('intermediates', 'attention_weights', weights)
    else:
      out = attention.block_local_attention(
        q,
        k,
        v,
        k_before,
        v_before,
        self.position_bias_HxC,
        dilation,
        visible_BxT if pad_D is None else None,
      )
    return self.after_attention(x_BxTxD, out, deterministic), (k, v)

  def dense(self, x_BxTxD, visible_BxT, dilation, deterministic=True):
    """As `windowed`, by the T x T additive mask."""
    mask_HxTxT = attention.additive_mask(
      self.position_bias_HxC, x_BxTxD.shape[1], dilation
    )
    out, weights = attention.dense_attention(
      *self.project(x_BxTxD), mask_HxTxT, visible_BxT
    )
    self.sow('intermediates', 'attention_weights', weights)
    return self.after_attention(x_BxTxD, out, deterministic)
