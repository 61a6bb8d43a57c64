"""RegularGPT symbol by symbol: a cache of what its windows can still reach.

Letters: B batch, T length, L levels, C chunk size, S slots of a cache, D width,
H heads, d head size.
"""

from flax import linen as nn
import jax.numpy as jnp
import numpy as np


def prefill(model, tokens_BxT, max_length: int):
  """Reads the start of strings that `decode` is to go on with.

  All levels that `max_length` needs are computed from the first symbol on,
  also those that a string is still too short to use: a level's windows reach
  back over what the level below gave at earlier positions, so that when the
  string grows into a level, what that level reads is there.

  Args:
    model: A bound `RegularGPT`.
    tokens_BxT: As in its call.
    max_length: Positions to make room for, at least T.

  Returns:
    Logits at the last position, float32 [B, output_size], and a cache: each
    block's keys and values [B, S, H, d], with room for the C^(l + 1) last
    positions of level l (all that its windows can reach) and, at the end, for
    what stands before the sequence.
  """
  c = model.config
  length = tokens_BxT.shape[1]
  present_BxT = tokens_BxT >= 0
  *_, sizes = _cache_layout(model, max_length)
  num_levels_B = model.num_levels(present_BxT.sum(-1), max_length)
  h, per_block = model.all_positions(
    tokens_BxT, num_levels_B, len(sizes), keep=True
  )

  def pack(x_LxBxTxHxd, before_Hxd):
    parts = []
    for x_BxTxHxd, size in zip(x_LxBxTxHxd, sizes, strict=True):
      kept = np.arange(max(0, length - size), length)
      shape = (len(x_BxTxHxd), size, *x_BxTxHxd.shape[2:])
      empty = jnp.zeros(shape, x_BxTxHxd.dtype)
      parts.append(
        empty.at[:, kept % size].set(x_BxTxHxd[:, kept], unique_indices=True)
      )
    before = jnp.broadcast_to(before_Hxd, parts[0][:, :1].shape)
    return jnp.concatenate([*parts, before.astype(parts[0].dtype)], axis=1)

  cache = []
  for block, keys_values in zip(model.blocks, per_block, strict=True):
    before = (0.0, 0.0)
    if c.pad == 'learned':
      _, *before = block.project(model.pad_D)
    cache.append(tuple(map(pack, keys_values, before)))
  return model.logits(h[:, -1]), {
    'blocks': cache,
    'position': jnp.int32(length),
    'start_B': length - present_BxT.sum(-1),
  }


def decode(model, tokens_B, cache, max_length: int):
  """Reads one more symbol of each string, in O(C) work a block.

  Equal to the last position of a call on the whole string: the answer is
  taken from level L(T) - 1, where T is its length by now.

  Args:
    model: A bound `RegularGPT`.
    tokens_B: Symbols in [0, V).
    cache: What `prefill` or `decode` returned.
    max_length: As given to `prefill`, which no string may outgrow.

  Returns:
    Logits, float32 [B, output_size], and the new cache.
  """
  c = model.config
  position, start_B = cache['position'], cache['start_B']
  dilations, offsets, sizes = _cache_layout(model, max_length)
  num_levels_B = model.num_levels(position + 1 - start_B, max_length)

  def level_fn(model, carry, level, dilation, offset, size):
    h, answer, blocks = carry
    reached_C = position - jnp.arange(c.chunk_size) * dilation
    slots_C = jnp.where(reached_C >= 0, offset + reached_C % size, sum(sizes))
    visible_BxC = model.visible(reached_C >= start_B[:, None])
    updated = []
    for block, keys_values in zip(model.blocks, blocks, strict=True):
      h, keys_values = block.decode(
        h,
        keys_values,
        slots_C[0],
        block.position_bias_HxC,
        visible_BxC,
        slots_C,
      )
      updated.append(keys_values)
    answer = jnp.where((level < num_levels_B)[:, None], h, answer)
    return (h, answer, updated), None

  scan = nn.scan(
    level_fn,
    variable_broadcast='params',
    split_rngs={'params': False},
    in_axes=(0, 0, 0, 0),
    length=len(sizes),
  )
  h = model.embed(tokens_B)
  (_, answer, blocks), _ = scan(
    model,
    (h, h, cache['blocks']),
    jnp.arange(len(sizes)),
    *map(jnp.array, (dilations, offsets, sizes)),
  )
  return model.logits(answer), {
    'blocks': blocks,
    'position': position + 1,
    'start_B': start_B,
  }


def _cache_layout(model, max_length):
  """Dilations of the levels, where their slots start, and how many."""
  chunk_size = model.config.chunk_size
  levels = range(model.depth(max_length))
  dilations = [min(chunk_size**l, max_length) for l in levels]
  sizes = [min(chunk_size ** (l + 1), max_length) for l in levels]
  return dilations, [sum(sizes[:l]) for l in levels], sizes
