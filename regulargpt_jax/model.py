"""RegularGPT (Chi et al., 2023): one function, three ways to compute it.

Tokens are right-aligned, -1 standing for "no symbol", so that strings of many
lengths share one compiled program: the answer never depends on how far a
string was padded, nor on how many levels it goes through.

Letters: B batch, T length, n positions of a level, N rows, C chunk size, D
width, H heads, d head size, S rows of a table.
"""

import functools

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from regulargpt_jax import block as block_lib
from regulargpt_jax import chunk_table, decoding, lookup, rows, transformer
from regulargpt_jax import config as config_lib
from regulargpt_jax import depth as depth_lib

PATHS = ('reference', 'scan', 'reduce')


class RegularGPT(transformer.Transformer):
  """RegularGPT over right-aligned tokens.

  Level l, for l in [0, L(T)), applies K blocks in which a position attends to
  C positions C^l apart; the K blocks are the same at every level. Before the
  sequence stands, as every block's input, the learned vector `pad`, or nothing
  (`config.pad`).

  `apply(..., mutable=['intermediates'])` also returns what the blocks sow, one
  entry a level: stacked along a new first axis by 'scan' (up to C = 16), in a
  tuple by the other paths.
  """

  config: config_lib.RegularGPTConfig

  def setup(self):  # noqa: D102
    super().setup()
    c = self.config
    if c.pad == 'learned':
      self.pad_D = self.param(
        'pad', nn.initializers.normal(0.02), (c.embedding_dim,)
      )
    self.blocks = [
      block_lib.Block(c, name=f'block_{k}') for k in range(c.thickness)
    ]
    if c.node_outputs:
      self.node_readout = rows.dense(c.node_outputs, dtype=c.dtype)

  def __call__(
    self,
    tokens_BxT: jax.Array,
    path: str = 'reduce',
    extra_levels: int | jax.Array = 0,
    max_extra_levels: int | None = None,
    tables: list[jax.Array] | None = None,
    min_length: int = 1,
  ) -> jax.Array:
    """Returns the logits.

    Args:
      tokens_BxT: Symbols in [0, V), right-aligned; -1 before the start. Each
        string must have at least one symbol: what others give is undefined.
      path: 'reference', 'scan' (both: all positions) or 'reduce' (the last
        position only, in O(T) work).
      extra_levels: Levels beyond L(T), where T is each string's own length; an
        integer, or a traced array broadcastable to [B].
      max_extra_levels: Static bound on `extra_levels`, where it is traced.
      tables: What `tabulate` returned for the same parameters, to share it
        among calls of 'reduce'; by default this call makes its own.
      min_length: Static, at most T; no string is shorter. 'reduce' then leaves
        out what only shorter ones would need.

    Returns:
      [B, T, output_size], or [B, output_size] for 'reduce'; float32. Outputs at
      positions before the start of a string mean nothing.

    Raises:
      ValueError: If the path is unknown, the tokens have another shape, or a
        traced `extra_levels` is without its bound.
    """
    if path not in PATHS:
      raise ValueError(
        f'Unknown path {path!r}; the known ones are {", ".join(PATHS)}.'
      )
    tokens_BxT = jnp.asarray(tokens_BxT, jnp.int32)
    num_levels_B, max_levels = self._levels(
      tokens_BxT, extra_levels, max_extra_levels
    )
    if path == 'reduce':
      levels = self._tree(tokens_BxT, max_levels, tables)
      h = self._root(levels, num_levels_B, self.depth(min_length))
    elif path == 'scan':
      h, _ = self.all_positions(tokens_BxT, num_levels_B, max_levels)
    else:
      h = self._reference(tokens_BxT, num_levels_B, max_levels)
    if self.is_initializing() and self.config.node_outputs:
      self.node_readout(h)
    return self.logits(h)

  def nodes(
    self,
    tokens_BxT: jax.Array,
    extra_levels: int | jax.Array = 0,
    max_extra_levels: int | None = None,
    min_length: int = 1,
  ) -> tuple[jax.Array, list[jax.Array], jax.Array]:
    """Returns the logits, and what is read off every node of the tree.

    A node of level l is what the string's C^(l + 1) symbols before some place
    became, or fewer at its start.

    Args:
      tokens_BxT: As in `__call__`.
      extra_levels: As in `__call__`.
      max_extra_levels: As in `__call__`.
      min_length: As in `__call__`.

    Returns:
      Logits [B, output_size], as 'reduce' gives them; of each level
      [B, n, node_outputs], float32, where level l has n = ceil(T / C^(l + 1))
      nodes, or, where `tabulate` makes a table, one for each of its rows,
      [S, node_outputs]; and the number of levels of each string, [B].

    Raises:
      ValueError: As `__call__`.
    """
    tokens_BxT = jnp.asarray(tokens_BxT, jnp.int32)
    num_levels_B, max_levels = self._levels(
      tokens_BxT, extra_levels, max_extra_levels
    )
    levels = list(self._tree(tokens_BxT, max_levels))
    h = self._root(levels, num_levels_B, self.depth(min_length))
    read = [
      self.node_readout(self.normalized(states)).astype(jnp.float32)
      for states, _ in levels
    ]
    return self.logits(h), read, num_levels_B

  def _levels(self, tokens_BxT, extra_levels, max_extra_levels):
    """Returns how many levels each string goes through, and a bound on it."""
    if isinstance(extra_levels, (int, np.integer)):
      max_extra_levels = int(extra_levels)
    elif max_extra_levels is None:
      raise ValueError('A traced extra_levels needs max_extra_levels.')
    if tokens_BxT.ndim != 2 or not tokens_BxT.size:
      raise ValueError(
        f'tokens must have shape [B, T], with T > 0, got {tokens_BxT.shape}.'
      )
    max_length = tokens_BxT.shape[1]
    num_levels_B = self.num_levels((tokens_BxT >= 0).sum(-1), max_length)
    max_levels = self.depth(max_length) + max_extra_levels
    return extra_levels + num_levels_B, max_levels

  def states(self, tokens_BxT, num_repeats: int = 0):
    """Returns the last block's output at all positions, [B, T, D].

    `num_repeats` more levels have the dilation of the longest string's last.
    """
    levels = self._levels(tokens_BxT, num_repeats, None)
    return self.all_positions(tokens_BxT, *levels, num_repeats=num_repeats)[0]

  def last_logits(self, tokens_BxT):
    """Returns the logits at the last position, float32 [B, output_size]."""
    read = min(tokens_BxT.shape[1], self.config.reach)
    return self(tokens_BxT[:, -read:], path='reduce')

  def prefill(self, tokens_BxT, max_length: int):
    """See `decoding.prefill`."""
    return decoding.prefill(self, tokens_BxT, max_length)

  def decode(self, tokens_B, cache, max_length: int):
    """See `decoding.decode`."""
    return decoding.decode(self, tokens_B, cache, max_length)

  def depth(self, length):
    """L(T), or more or fewer if the configuration says so."""
    c = self.config
    needed = max(depth_lib.depth(length, c.chunk_size), c.min_levels)
    return min(needed, c.max_levels)

  def num_levels(self, length_B, max_length):
    """As `depth`, of traced lengths up to a static one."""
    c = self.config
    needed_B = depth_lib.traced_depth(length_B, c.chunk_size, max_length)
    return jnp.clip(needed_B, c.min_levels, c.max_levels)

  def tabulate(
    self, num_symbols: int, max_rows: int | None = None
  ) -> list[jax.Array]:
    """Returns the states of all short strings, level by level.

    Args:
      num_symbols: How many symbols the tables will serve to read: a level is
        tabulated where it has at most half as many distinct chunks as that
        many symbols have chunks.
      max_rows: No table but the first has more rows than this.

    Returns:
      Tables [S, D], float. Row r of table t is the state after t levels of the
      string that `chunk_table` numbers r, of at most C^t symbols; row 0 is
      `pad`. Table 0 is the embedding. With K > 1, or when intermediate values
      are wanted, or under dropout, there is no other.
    """
    c = self.config
    tables = [self._embedding_table()]
    shareable = (
      c.thickness == 1
      and self.deterministic
      and not self.is_mutable_collection('intermediates')
    )
    length = c.chunk_size
    # A table has more rows than `length`; for large C, too many to count.
    while shareable and 2 * length < num_symbols // length:
      num_rows = chunk_table.num_strings(c.vocab_size, length)
      # Looking a row up, and its gradient, costs about as much as a block.
      if 2 * num_rows > num_symbols // length:
        break
      if max_rows is not None and num_rows > max_rows:
        break
      parts = chunk_table.split(
        c.vocab_size, length // c.chunk_size, c.chunk_size
      )[1:]
      chunks = lookup.take_rows(tables[-1], parts)
      states = self.blocks[0].chunked(chunks, self.visible(parts > 0))
      tables.append(jnp.concatenate([tables[0][:1], states]))
      length *= c.chunk_size
    return tables

  def level(
    self, x_BxnxD: jax.Array, present_Bxn: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """Goes up one level of the tree: the K blocks, and C times fewer positions.

    Args:
      x_BxnxD: The level's input.
      present_Bxn: False before the start of a string, where `x` is not read.

    Returns:
      States [B, ceil(n / C), D], and which of them are of any symbol.
    """
    *inner, last = self.blocks
    for block in inner:
      x_BxnxD = self._padded(x_BxnxD, present_Bxn)
      x_BxnxD, _ = block.windowed(
        x_BxnxD, self._pad(), present_Bxn, 1, self.deterministic
      )
    x_BxnxCxD = chunk_table.in_chunks(x_BxnxD, self.config.chunk_size)
    present_BxnxC = chunk_table.in_chunks(present_Bxn, self.config.chunk_size)
    x_BxnxCxD = self._padded(x_BxnxCxD, present_BxnxC)
    x_BxnxD = last.chunked(
      x_BxnxCxD, self.visible(present_BxnxC), self.deterministic
    )
    return x_BxnxD, present_BxnxC[..., -1]

  def _tree(self, tokens_BxT, max_levels, tables=None):
    """A tree: level l keeps the positions T - 1 - i * C^(l + 1).

    Yields:
      Of each level, the states at all of them, [B, n, D], or those of a table,
      [S, D]; and the last position's, [B, D].
    """
    c = self.config
    if tables is None:
      # The gradients of larger tables cost more than the tables save.
      tables = self.tabulate(tokens_BxT.size, lookup.MAX_ONE_HOT_ROWS)
    number_Bxn = tokens_BxT + 1  # As a string of one symbol, or of none.
    first_level = min(max_levels, len(tables) - 1)
    for level in range(first_level):
      number_Bxn = chunk_table.join(
        chunk_table.in_chunks(number_Bxn, c.chunk_size),
        c.vocab_size,
        c.chunk_size**level,
      )
      table = tables[level + 1]
      yield table, lookup.take_rows(table, number_Bxn[:, -1])
    x_BxnxD = lookup.take_rows(tables[first_level], number_Bxn)
    present_Bxn = number_Bxn > 0
    if first_level == 0:
      x_BxnxD = self.dropout(x_BxnxD, self.deterministic)
    for _ in range(first_level, max_levels):
      x_BxnxD, present_Bxn = self.level(x_BxnxD, present_Bxn)
      yield x_BxnxD, x_BxnxD[:, -1]

  def _root(self, levels, num_levels_B, min_levels):
    """The last position's state at level L - 1 of each string's own depth L."""
    answer_BxD = None
    for level, (_, last_BxD) in enumerate(levels):
      if answer_BxD is None or level < min_levels:
        answer_BxD = last_BxD
      else:
        is_deep = (level < num_levels_B)[:, None]
        answer_BxD = jnp.where(is_deep, last_BxD, answer_BxD)
    return answer_BxD

  def all_positions(
    self, tokens_BxT, num_levels_B, max_levels, keep=False, num_repeats=0
  ):
    """All positions: one traced level whatever the depth, or one for each.

    Args:
      tokens_BxT: As in `__call__`.
      num_levels_B: Levels that each string goes through.
      max_levels: Levels to compute.
      keep: Whether to return the keys and values.
      num_repeats: Of the levels, with the dilation of the last one before.

    Returns:
      Outputs [B, T, D]; and of each block the keys and values, each
      [max_levels, B, T, H, d].
    """
    c = self.config
    present_BxT = tokens_BxT >= 0
    num_levels_Bx1x1 = num_levels_B[:, None, None]

    def level_fn(self, carry, level, dilation):
      h, answer = carry
      keys_values = []
      for block in self.blocks:
        h, new = block.windowed(
          self._padded(h, present_BxT),
          self._pad(),
          present_BxT,
          dilation,
          self.deterministic,
        )
        keys_values.append(new if keep else ())
      return (h, jnp.where(level < num_levels_Bx1x1, h, answer)), keys_values

    h = self.embed(tokens_BxT)
    last = max_levels - 1 - num_repeats
    dilations = [self._dilation(min(l, last), h) for l in range(max_levels)]
    if c.chunk_size <= block_lib.MAX_GATHERED_WINDOW:
      scan = nn.scan(
        transformer.remat(level_fn, c, in_scan=True),
        variable_broadcast='params',
        variable_axes={'intermediates': 0},
        split_rngs={'params': False, 'dropout': True},
        in_axes=(0, 0),
        length=max_levels,
      )
      (_, answer), keys_values = scan(
        self, (h, h), jnp.arange(max_levels), jnp.array(dilations)
      )
      return answer, keys_values
    # Wide windows need few levels, and their blocks a dilation that is known.
    carry, levels = (h, h), []
    for level, dilation in enumerate(dilations):
      fn = functools.partial(level_fn, level=level, dilation=dilation)
      carry, keys_values = transformer.remat(fn, c)(self, carry)
      levels.append(keys_values)
    return carry[1], jax.tree.map(lambda *x: jnp.stack(x), *levels)

  def _reference(self, tokens_BxT, num_levels_B, max_levels):
    """All positions, as eq. (1) says it: pads in front, then a mask."""
    c = self.config
    h = answer = self.embed(tokens_BxT)
    for level in range(max_levels):
      dilation = self._dilation(level, h)
      num_pads = (c.chunk_size - 1) * dilation
      h = jnp.pad(h, [(0, 0), (num_pads, 0), (0, 0)])
      present = jnp.pad(tokens_BxT >= 0, [(0, 0), (num_pads, 0)])
      visible = jnp.ones_like(present) if c.pad == 'learned' else present
      for block in self.blocks:
        h = block.dense(
          self._padded(h, present), visible, dilation, self.deterministic
        )
      h = h[:, num_pads:]
      answer = jnp.where(level < num_levels_B[:, None, None], h, answer)
    return answer

  def _dilation(self, level, h_BxTxD):
    """C^level; beyond the length all dilations are alike (and may overflow)."""
    return min(self.config.chunk_size**level, h_BxTxD.shape[1])

  def _pad(self):
    return self.pad_D if self.config.pad == 'learned' else None

  def _padded(self, x, present):
    """Puts `pad` where there is no symbol."""
    if self.config.pad == 'masked':
      return x
    return jnp.where(present[..., None], x, self.pad_D.astype(x.dtype))

  def visible(self, present):
    """Which keys may be seen; None for all of them."""
    return present if self.config.pad == 'masked' else None

  def _embedding_table(self):
    """Row 0 is `pad` (nothing, if masked), row v + 1 symbol v; [V + 1, D]."""
    pad_D = self._pad()
    if pad_D is None:
      pad_D = jnp.zeros(self.config.embedding_dim)
    table = jnp.concatenate([pad_D[None], self.scaled_embedding])
    return table.astype(self.config.dtype)
