"""GPT with a position bias: the language models to compare RegularGPT with.

GPT-2's blocks, without position embeddings; the logits of attention get a bias
by distance (Press et al., 2022; Chi et al., 2022; Raffel et al., 2020), so that
a model reads longer strings than it was trained on.

Letters: B batch, T length, D width, H heads, d head size.
"""

import jax
import jax.numpy as jnp

from regulargpt_jax import attention, position_biases, transformer
from regulargpt_jax import config as config_lib


class Block(transformer.Block):
  """Attention to all positions up to one's own, then a feed-forward layer."""

  config: config_lib.GPTConfig

  def causal(self, x_BxTxD, bias_HxT, visible_BxT, deterministic):
    """Maps a sequence to the outputs at all its positions.

    Returns:
      Outputs [B, T, D], and the keys and values, each [B, T, H, d].
    """
    q, k, v = self.project(x_BxTxD)
    out = attention.causal_attention(q, k, v, bias_HxT, visible_BxT)
    return self.after_attention(x_BxTxD, out, deterministic), (k, v)


class GPT(transformer.Transformer):
  """GPT over right-aligned tokens, -1 standing for "no symbol"."""

  config: config_lib.GPTConfig

  def setup(self):  # noqa: D102
    super().setup()
    c = self.config
    self.blocks = [Block(c, name=f'block_{l}') for l in range(c.num_layers)]
    is_shared = c.position_bias in position_biases.SHARED_BY_LAYERS
    self.position_biases = [
      position_biases.PositionBias(
        c.position_bias, c.num_heads, name=f'position_bias_{l}'
      )
      for l in range(1 if is_shared else c.num_layers)
    ]

  def __call__(self, tokens_BxT: jax.Array) -> jax.Array:
    """Returns the logits at all positions, float32 [B, T, V].

    Args:
      tokens_BxT: Symbols in [0, V), right-aligned; -1 before the start.
    """
    return self.all_logits(tokens_BxT)

  def states(self, tokens_BxT):  # noqa: D102
    return self._states(tokens_BxT)[0]

  def prefill(self, tokens_BxT, max_length: int):
    """Reads the start of strings that `decode` is to go on with.

    Args:
      tokens_BxT: As in `__call__`.
      max_length: Positions to make room for, at least T.

    Returns:
      Logits at the last position, float32 [B, V], and a cache: each block's
      keys and values at all positions.
    """
    length = tokens_BxT.shape[1]
    h, blocks = self._states(tokens_BxT)
    room = [(0, 0), (0, max_length - length), (0, 0), (0, 0)]
    return self.logits(h[:, -1]), {
      'blocks': jax.tree.map(lambda x: jnp.pad(x, room), blocks),
      'position': jnp.int32(length),
      'start_B': (tokens_BxT < 0).sum(-1),
    }

  def decode(self, tokens_B, cache, max_length: int):
    """Reads one more symbol of each string.

    Args:
      tokens_B: Symbols in [0, V).
      cache: What `prefill` or `decode` returned.
      max_length: As given to `prefill`, which no string may outgrow.

    Returns:
      Logits, float32 [B, V], and the new cache.
    """
    position, start_B = cache['position'], cache['start_B']
    key_T = jnp.arange(max_length)
    visible_BxT = (key_T <= position) & (key_T >= start_B[:, None])
    h = self.embed(tokens_B)
    updated = []
    layers = zip(
      self.blocks, cache['blocks'], self._biases(max_length), strict=True
    )
    for block, keys_values, bias_HxT in layers:
      by_key_HxT = bias_HxT[:, jnp.clip(position - key_T, 0)]
      h, keys_values = block.decode(
        h, keys_values, position, by_key_HxT, visible_BxT
      )
      updated.append(keys_values)
    return self.logits(h), {
      'blocks': updated,
      'position': position + 1,
      'start_B': start_B,
    }

  def _states(self, tokens_BxT):
    """Outputs [B, T, D]; and of each block the keys and values."""

    def layer_fn(block, h, bias_HxT):
      return block.causal(h, bias_HxT, tokens_BxT >= 0, self.deterministic)

    layer_fn = transformer.remat(layer_fn, self.config)
    h = self.embed(tokens_BxT)
    per_block = []
    biases = self._biases(tokens_BxT.shape[1])
    for block, bias_HxT in zip(self.blocks, biases, strict=True):
      h, keys_values = layer_fn(block, h, bias_HxT)
      per_block.append(keys_values)
    return h, per_block

  def _biases(self, length):
    """Each layer's bias, [H, T]."""
    biases = [module(length) for module in self.position_biases]
    return biases * (self.config.num_layers // len(biases))
