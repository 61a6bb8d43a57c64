"""RegularGPT (Chi et al., 2023): one function, three ways to compute it.

Tokens are right-aligned, -1 standing for "no symbol", so that strings of many
lengths share one compiled program: the answer never depends on how far a
string was padded, nor do the number of levels it goes through.

Letters: B batch, T length, n positions of a level, N rows, C chunk size, D
width, H heads, d head size, S rows of a table.
"""

import functools

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from regulargpt_jax import attention, chunk_table, lookup
from regulargpt_jax import config as config_lib
from regulargpt_jax import depth as depth_lib

PATHS = ('reference', 'scan', 'reduce')
# Up to this window width, `scan` gathers C shifted views; above, it attends in
# blocks, whose work per position is 2 C but in larger matrix products.
_MAX_GATHERED_WINDOW = 16


def _fan_in_init(key, shape, dtype=jnp.float32):
  """Truncated normal of deviation 1 / sqrt(fan in): Haiku's linear layer."""
  stddev = shape[0] ** -0.5
  return nn.initializers.truncated_normal(stddev)(key, shape, dtype)


def _dense(config, features, name, use_bias=True, residual=False):
  """A linear layer with the preset's initialisation."""
  if config.initialization == 'gpt2':
    scale = (2 * config.thickness) ** -0.5 if residual else 1.0
    kernel_init = nn.initializers.normal(0.02 * scale)
  else:
    kernel_init = _fan_in_init
  return nn.Dense(
    features,
    use_bias=use_bias,
    dtype=config.dtype,
    kernel_init=kernel_init,
    name=name,
  )


class Block(nn.Module):
  """Attention to a dilated window of C positions, then a feed-forward layer.

  Sows, in the collection 'intermediates': `attention_weights` (but not where it
  attends in blocks), `attention`, `ffn` (the two sublayers' outputs before the
  residual sum) and `output`.
  """

  config: config_lib.RegularGPTConfig

  def setup(self):  # noqa: D102
    c = self.config
    dense = functools.partial(_dense, c)
    self.query = dense(c.embedding_dim, 'query', c.attention_bias)
    self.key = dense(c.embedding_dim, 'key', c.attention_bias)
    self.value = dense(c.embedding_dim, 'value', c.attention_bias)
    self.projection = dense(
      c.embedding_dim, 'projection', c.attention_bias, residual=True
    )
    self.position_bias_HxC = self.param(
      'position_bias',
      nn.initializers.normal(0.02),
      (c.num_heads, c.chunk_size),
    )
    self.ffn_in = dense(c.widening_factor * c.embedding_dim, 'ffn_in')
    self.ffn_out = dense(c.embedding_dim, 'ffn_out', residual=True)
    if c.norm != 'none':
      norm = functools.partial(nn.LayerNorm, epsilon=1e-5, dtype=c.dtype)
      self.attention_norm = norm(name='attention_norm')
      self.ffn_norm = norm(name='ffn_norm')
    self.dropout = nn.Dropout(c.dropout_rate)

  def chunked(self, x_NxCxD, visible_NxC, deterministic=True):
    """Maps each chunk to the output at its last position, [N, D].

    N may be several axes.
    """
    y_NxCxD = self._before_attention(x_NxCxD)
    q_NxHxd = self._heads(self.query(y_NxCxD[..., -1, :]))
    # By distance from the last position, which is what `bias` is indexed by.
    k_NxCxHxd = jnp.flip(self._heads(self.key(y_NxCxD)), -3)
    v_NxCxHxd = jnp.flip(self._heads(self.value(y_NxCxD)), -3)
    visible = None if visible_NxC is None else jnp.flip(visible_NxC, -1)
    out, weights = attention.window_attention(
      q_NxHxd, k_NxCxHxd, v_NxCxHxd, self.position_bias_HxC, visible
    )
    self.sow('intermediates', 'attention_weights', weights)
    return self._after_attention(x_NxCxD[..., -1, :], out, deterministic)

  def windowed(self, x_BxTxD, pad_D, visible_BxT, dilation, deterministic=True):
    """Maps a sequence to the outputs at all its positions, [B, T, D]."""
    c = self.config
    q, k, v = self._project(x_BxTxD)
    if pad_D is None:
      k_before = v_before = None
    else:
      _, k_before, v_before = self._project(pad_D)
    if c.chunk_size <= _MAX_GATHERED_WINDOW:
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
    return self._after_attention(x_BxTxD, out, deterministic)

  def dense(self, x_BxTxD, visible_BxT, dilation, deterministic=True):
    """As `windowed`, by the T x T additive mask."""
    mask_HxTxT = attention.additive_mask(
      self.position_bias_HxC, x_BxTxD.shape[1], dilation
    )
    out, weights = attention.dense_attention(
      *self._project(x_BxTxD), mask_HxTxT, visible_BxT
    )
    self.sow('intermediates', 'attention_weights', weights)
    return self._after_attention(x_BxTxD, out, deterministic)

  def _project(self, x):
    y = self._before_attention(x)
    return [self._heads(f(y)) for f in (self.query, self.key, self.value)]

  def _heads(self, x):
    return x.reshape(*x.shape[:-1], self.config.num_heads, -1)

  def _before_attention(self, x):
    return self.attention_norm(x) if self.config.norm == 'pre' else x

  def _joined(self, x, out):
    return x + out if self.config.residual else out

  def _after_attention(self, x, out, deterministic):
    """Everything behind the attention, position by position."""
    norm = self.config.norm
    activation = {
      'relu': jax.nn.relu,
      'gelu': functools.partial(jax.nn.gelu, approximate=True),
    }[self.config.activation]
    out = self.projection(out.reshape(*out.shape[:-2], -1))
    self.sow('intermediates', 'attention', out)
    h = self._joined(x, self.dropout(out, deterministic))
    if norm == 'post':
      h = self.attention_norm(h)
    ffn = self.ffn_norm(h) if norm == 'pre' else h
    ffn = self.ffn_out(activation(self.ffn_in(ffn)))
    self.sow('intermediates', 'ffn', ffn)
    h = self._joined(h, self.dropout(ffn, deterministic))
    if norm == 'post':
      h = self.ffn_norm(h)
    self.sow('intermediates', 'output', h)
    return h


class RegularGPT(nn.Module):
  """RegularGPT over right-aligned tokens.

  Level l, for l in [0, L(T)), applies K blocks in which a position attends to
  C positions C^l apart; the K blocks are the same at every level. Before the
  sequence stands, as every block's input, the learned vector `pad`, or nothing
  (`config.pad`).

  `apply(..., mutable=['intermediates'])` also returns what the blocks sow, one
  entry a level: stacked along a new first axis by 'scan', in a tuple by the
  other paths.
  """

  config: config_lib.RegularGPTConfig

  def setup(self):  # noqa: D102
    c = self.config
    stddev = 0.02
    embedding_init = (
      nn.initializers.truncated_normal(stddev)
      if c.initialization == 'benchmark'
      else nn.initializers.normal(stddev)
    )
    self.embedding_VxD = self.param(
      'embedding', embedding_init, (c.vocab_size, c.embedding_dim)
    )
    if c.pad == 'learned':
      self.pad_D = self.param(
        'pad', nn.initializers.normal(stddev), (c.embedding_dim,)
      )
    self.blocks = [Block(c, name=f'block_{k}') for k in range(c.thickness)]
    if c.norm == 'pre':
      self.final_norm = nn.LayerNorm(epsilon=1e-5, dtype=c.dtype)
    if not c.tie_embedding:
      self.readout = _dense(c, c.output_size, 'readout')
    self.dropout = nn.Dropout(c.dropout_rate)

  def __call__(
    self,
    tokens_BxT: jax.Array,
    path: str = 'reduce',
    extra_levels: int | jax.Array = 0,
    max_extra_levels: int | None = None,
    tables: list[jax.Array] | None = None,
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

    Returns:
      [B, T, output_size], or [B, output_size] for 'reduce'; float32. Outputs at
      positions before the start of a string mean nothing.

    Raises:
      ValueError: If the path is unknown, or a traced `extra_levels` is without
        its bound.
    """
    if path not in PATHS:
      raise ValueError(
        f'Unknown path {path!r}; the known ones are {", ".join(PATHS)}.'
      )
    if isinstance(extra_levels, (int, np.integer)):
      max_extra_levels = int(extra_levels)
    elif max_extra_levels is None:
      raise ValueError('A traced extra_levels needs max_extra_levels.')
    c = self.config
    tokens_BxT = jnp.asarray(tokens_BxT, jnp.int32)
    if tokens_BxT.ndim != 2 or not tokens_BxT.size:
      raise ValueError(
        f'tokens must have shape [B, T], with T > 0, got {tokens_BxT.shape}.'
      )
    max_length = tokens_BxT.shape[1]
    max_levels = depth_lib.depth(max_length, c.chunk_size) + max_extra_levels
    length_B = (tokens_BxT >= 0).sum(-1)
    num_levels_B = extra_levels + depth_lib.traced_depth(
      length_B, c.chunk_size, max_length
    )
    if path == 'reduce':
      h = self._reduce(tokens_BxT, num_levels_B, max_levels, tables)
    else:
      all_levels = self._scan if path == 'scan' else self._reference
      h = all_levels(tokens_BxT, num_levels_B[:, None, None], max_levels)
    return self.logits(h)

  def tabulate(
    self, num_symbols: int, max_rows: int | None = None
  ) -> list[jax.Array]:
    """Returns the states of all short strings, level by level.

    Args:
      num_symbols: How many symbols the tables will serve to read: a level is
        tabulated where it has fewer distinct chunks than that many symbols
        have chunks.
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
      and self._deterministic
      and not self.is_mutable_collection('intermediates')
    )
    length = c.chunk_size
    while shareable:
      num_rows = chunk_table.num_strings(c.vocab_size, length)
      if num_rows > num_symbols // length:
        break
      if max_rows is not None and num_rows > max_rows:
        break
      parts = chunk_table.split(
        c.vocab_size, length // c.chunk_size, c.chunk_size
      )[1:]
      chunks = lookup.take_rows(tables[-1], parts)
      states = self.blocks[0].chunked(chunks, self._visible(parts > 0))
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
      x_BxnxD = block.windowed(
        x_BxnxD, self._pad(), present_Bxn, 1, self._deterministic
      )
    x_BxnxCxD = self._in_chunks(x_BxnxD, 0)
    present_BxnxC = self._in_chunks(present_Bxn, False)
    x_BxnxCxD = self._padded(x_BxnxCxD, present_BxnxC)
    x_BxnxD = last.chunked(
      x_BxnxCxD, self._visible(present_BxnxC), self._deterministic
    )
    return x_BxnxD, present_BxnxC[..., -1]

  def _reduce(self, tokens_BxT, num_levels_B, max_levels, tables):
    """A tree: level l keeps the positions T - 1 - i * C^(l + 1)."""
    c = self.config
    if tables is None:
      # Larger tables would have a gradient without a fixed order.
      tables = self.tabulate(tokens_BxT.size, lookup.MAX_ONE_HOT_ROWS)
    number_Bxn = tokens_BxT + 1  # As a string of one symbol, or of none.
    answer_BxD = None
    for level in range(min(max_levels, len(tables) - 1)):
      number_Bxn = chunk_table.join(
        self._in_chunks(number_Bxn, 0), c.vocab_size, c.chunk_size**level
      )
      last_BxD = lookup.take_rows(tables[level + 1], number_Bxn[:, -1])
      answer_BxD = self._answer(level, num_levels_B, last_BxD, answer_BxD)
    first_level = min(max_levels, len(tables) - 1)
    x_BxnxD = lookup.take_rows(tables[first_level], number_Bxn)
    present_Bxn = number_Bxn > 0
    if first_level == 0:
      x_BxnxD = self.dropout(x_BxnxD, self._deterministic)
    for level in range(first_level, max_levels):
      x_BxnxD, present_Bxn = self.level(x_BxnxD, present_Bxn)
      answer_BxD = self._answer(level, num_levels_B, x_BxnxD[:, -1], answer_BxD)
    return answer_BxD

  def _scan(self, tokens_BxT, num_levels_Bx1x1, max_levels):
    """All positions, one traced level whatever the depth."""
    present_BxT = tokens_BxT >= 0

    def level_fn(self, carry, level_and_dilation):
      h, answer = carry
      level, dilation = level_and_dilation
      for block in self.blocks:
        h = block.windowed(
          self._padded(h, present_BxT),
          self._pad(),
          present_BxT,
          dilation,
          self._deterministic,
        )
      return (h, jnp.where(level < num_levels_Bx1x1, h, answer)), None

    # The windows and what is computed position by position are cheaper to
    # compute again than to keep for the backward pass.
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    level_fn = nn.remat(
      level_fn, prevent_cse=False, policy=None if self.config.remat else policy
    )
    h = self._embed(tokens_BxT)
    levels = jnp.arange(max_levels)
    dilations = jnp.array([self._dilation(l, h) for l in range(max_levels)])
    scan = nn.scan(
      level_fn,
      variable_broadcast='params',
      variable_axes={'intermediates': 0},
      split_rngs={'params': False, 'dropout': True},
      length=max_levels,
    )
    (_, answer), _ = scan(self, (h, h), (levels, dilations))
    return answer

  def _reference(self, tokens_BxT, num_levels_Bx1x1, max_levels):
    """All positions, as eq. (1) says it: pads in front, then a mask."""
    c = self.config
    h = answer = self._embed(tokens_BxT)
    for level in range(max_levels):
      dilation = self._dilation(level, h)
      num_pads = (c.chunk_size - 1) * dilation
      h = jnp.pad(h, [(0, 0), (num_pads, 0), (0, 0)])
      present = jnp.pad(tokens_BxT >= 0, [(0, 0), (num_pads, 0)])
      visible = jnp.ones_like(present) if c.pad == 'learned' else present
      for block in self.blocks:
        h = block.dense(
          self._padded(h, present), visible, dilation, self._deterministic
        )
      h = h[:, num_pads:]
      answer = jnp.where(level < num_levels_Bx1x1, h, answer)
    return answer

  @property
  def _deterministic(self):
    return not (self.config.dropout_rate and self.has_rng('dropout'))

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

  def _visible(self, present):
    """Which keys may be seen; None for all of them."""
    return present if self.config.pad == 'masked' else None

  def _in_chunks(self, x_BxnxF, fill):
    """Splits positions into chunks of C from the right, [B, n / C, C, F]."""
    chunk_size = self.config.chunk_size
    padding = -x_BxnxF.shape[1] % chunk_size
    x = jnp.pad(
      x_BxnxF,
      [(0, 0), (padding, 0)] + [(0, 0)] * (x_BxnxF.ndim - 2),
      constant_values=fill,
    )
    return x.reshape(x.shape[0], -1, chunk_size, *x.shape[2:])

  def _answer(self, level, num_levels_B, last_BxD, before):
    """The last position's state at level L - 1 of each string's own depth L."""
    if before is None:
      return last_BxD
    return jnp.where((level < num_levels_B)[:, None], last_BxD, before)

  def _embedding_table(self):
    """Row 0 is `pad` (nothing, if masked), row v + 1 symbol v; [V + 1, D]."""
    c = self.config
    pad_D = self._pad()
    if pad_D is None:
      pad_D = jnp.zeros(c.embedding_dim)
    scale = c.embedding_dim**0.5 if c.scale_embedding else 1.0
    table = jnp.concatenate([pad_D[None], self.embedding_VxD * scale])
    return table.astype(c.dtype)

  def _embed(self, tokens_BxT):
    x = lookup.take_rows(self._embedding_table(), tokens_BxT + 1)
    return self.dropout(x, self._deterministic)

  def logits(self, h: jax.Array) -> jax.Array:
    """Reads off states [..., D]: logits [..., output_size], float32."""
    if self.config.norm == 'pre':
      h = self.final_norm(h)
    if self.config.tie_embedding:
      logits = h @ self.embedding_VxD.T.astype(h.dtype)
    else:
      logits = self.readout(h)
    return logits.astype(jnp.float32)
