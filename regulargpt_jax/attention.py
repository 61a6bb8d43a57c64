"""Attention: sliding-dilated (Chi et al., 2023, eq. 1), three ways, and causal.

Every function takes queries, keys and values that are already projected and
split into heads. A bias is learned or fixed per head and distance: bias_HxC is
the paper's r, where position m attends to m - j * dilation, j in [0, C). Logits
and softmax are float32, whatever the products are in.

Letters: B batch, T length, N rows, C chunk size, H heads, d head size; in
blocks, M blocks, Q queries and K keys of a block, R residues.
"""

import functools

import jax
from jax import ad_checkpoint
import jax.numpy as jnp
import numpy as np

# Finite, so that a row with nothing to see is garbage and not NaN.
_HIDDEN = -1e30
# `causal_attention` takes this many queries at a time.
_QUERY_BLOCK = 128
# `block_local_attention` puts several short residues into a block of this size,
# as the smallest matrix products are slow.
_MIN_BLOCK = 64
# What attention keeps for the backward pass, besides its inputs, where a
# checkpoint policy saves these names.
SAVED_NAMES = ('attention_weights', 'attention_output')


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def einsum_float32(equation: str, x: jax.Array, y: jax.Array) -> jax.Array:
  """Returns the product of two arrays in float32, whatever they are in.

  The gradient's products are in the arrays' own precision: left to itself, JAX
  would multiply the float32 gradient by them in float32, off the fast path.
  """
  return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)


def _einsum_forward(equation, x, y):
  return einsum_float32(equation, x, y), (x, y)


def _einsum_backward(equation, residuals, grad):
  x, y = residuals
  _, vjp = jax.vjp(functools.partial(jnp.einsum, equation), x, y)
  return vjp(grad.astype(jnp.result_type(x, y)))


einsum_float32.defvjp(_einsum_forward, _einsum_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _softmax(logits, dtype):
  """Softmax over the last axis in float32, rounded to `dtype`.

  The gradient is computed from the rounded weights, the only ones to be kept.
  """
  return jax.nn.softmax(logits, axis=-1).astype(dtype)


def _softmax_forward(logits, dtype):
  # The name is given here: it must be on what the backward pass reads.
  weights = ad_checkpoint.checkpoint_name(
    _softmax(logits, dtype), SAVED_NAMES[0]
  )
  return weights, weights


def _softmax_backward(dtype, weights, grad):
  del dtype
  weights, grad = weights.astype(jnp.float32), grad.astype(jnp.float32)
  inner = (weights * grad).sum(-1, keepdims=True)
  return (weights * (grad - inner),)


_softmax.defvjp(_softmax_forward, _softmax_backward)


def _weights(logits, visible, dtype):
  """Attention weights; hidden keys get weight 0."""
  if visible is not None:
    logits = jnp.where(visible, logits, _HIDDEN)
  return _softmax(logits, dtype)


def _scaled(q: jax.Array) -> jax.Array:
  return q * q.shape[-1] ** -0.5


def dense_attention(q_BxTxHxd, k_BxTxHxd, v_BxTxHxd, mask_HxTxT, visible_BxT):
  """Attention under an additive T x T mask: slow, obvious, the oracle.

  Args:
    q_BxTxHxd: Queries.
    k_BxTxHxd: Keys.
    v_BxTxHxd: Values.
    mask_HxTxT: M of eq. (1), see `additive_mask`.
    visible_BxT: False for keys that nobody may see.

  Returns:
    Output [B, T, H, d] and weights [B, H, T, T] (query, key).
  """
  logits = einsum_float32('bthd,bshd->bhts', _scaled(q_BxTxHxd), k_BxTxHxd)
  visible = visible_BxT[:, None, None, :]
  weights = _weights(logits + mask_HxTxT, visible, v_BxTxHxd.dtype)
  return jnp.einsum('bhts,bshd->bthd', weights, v_BxTxHxd), weights


def additive_mask(bias_HxC, length: int, dilation: int) -> jax.Array:
  """Returns M of eq. (1), [H, T, T]: r where the key is in the window."""
  chunk_size = bias_HxC.shape[-1]
  distance_TxT = jnp.arange(length)[:, None] - jnp.arange(length)[None, :]
  steps_TxT = distance_TxT // dilation
  in_window = (
    (distance_TxT >= 0)
    & (distance_TxT % dilation == 0)
    & (steps_TxT < chunk_size)
  )
  bias_HxTxT = bias_HxC[:, jnp.clip(steps_TxT, 0, chunk_size - 1)]
  return jnp.where(in_window, bias_HxTxT, _HIDDEN)


def window_attention(q_NxHxd, k_NxCxHxd, v_NxCxHxd, bias_HxC, visible_NxC=None):
  """Attention of one query to the C keys of its own window.

  Args:
    q_NxHxd: Queries; N may be several axes.
    k_NxCxHxd: Keys, in the order of the bias.
    v_NxCxHxd: Values, likewise.
    bias_HxC: r.
    visible_NxC: False for keys that the query may not see; None for all seen.

  Returns:
    Output [N, H, d] and weights [N, H, C].
  """
  logits = einsum_float32('...hd,...chd->...hc', _scaled(q_NxHxd), k_NxCxHxd)
  visible = None if visible_NxC is None else visible_NxC[..., None, :]
  weights_NxHxC = _weights(logits + bias_HxC, visible, v_NxCxHxd.dtype)
  out = jnp.einsum('...hc,...chd->...hd', weights_NxHxC, v_NxCxHxd)
  return out, weights_NxHxC


def dilated_windows(x_BxTxF, before, dilation, chunk_size: int) -> jax.Array:
  """Returns the C entries that each position's window holds.

  Args:
    x_BxTxF: A sequence; F may be any number of axes.
    before: What stands before the sequence, broadcastable to [B, 1, F].
    dilation: Distance between neighbours in the window, may be traced.
    chunk_size: C.

  Returns:
    Array [B, T, C, F]; entry j of position m is x[m - j * dilation].
  """
  length = x_BxTxF.shape[1]
  padded = jnp.concatenate(
    [jnp.broadcast_to(before, x_BxTxF.shape), x_BxTxF], 1
  )
  # A shift beyond the length sees only what stands before the sequence. The
  # product j * dilation cannot overflow: the dilation is clamped first.
  dilation = jnp.minimum(dilation, length)
  shifts = [jnp.minimum(j * dilation, length) for j in range(chunk_size)]
  views = [
    jax.lax.dynamic_slice_in_dim(padded, length - shift, length, axis=1)
    for shift in shifts
  ]
  return jnp.stack(views, axis=2)


def by_distance(
  bias_HxN: jax.Array,
  num_queries: int,
  num_keys: int,
  offset: int | jax.Array,
) -> jax.Array:
  """Returns the bias of each pair of a query and a key.

  Without a gather, so that the gradient is a plain sum.

  Args:
    bias_HxN: By distance.
    num_queries: Q.
    num_keys: K.
    offset: Position of the first query less that of the first key, in [0, N].

  Returns:
    Array [H, Q, K], bias_HxN[:, offset + query - key]; 0 out of its range.
  """
  # Distance d at entry d + num_keys - 1.
  bias = jnp.pad(bias_HxN, [(0, 0), (num_keys - 1, num_queries + 1)])
  num = num_queries + num_keys
  bias = jax.lax.dynamic_slice_in_dim(bias, offset, num, 1)
  # Entry (key - query) mod num of `row` is what they add. Rows of one entry
  # less, cut from the endless repetition of `row`, shift by one each.
  row_Hxn = jnp.roll(jnp.flip(bias, 1), -num_queries, 1)
  rows = jnp.broadcast_to(row_Hxn[:, None], (len(row_Hxn), num_queries, num))
  rows = rows.reshape(len(row_Hxn), -1)[:, : num_queries * (num - 1)]
  rows = rows.reshape(len(row_Hxn), num_queries, num - 1)
  return rows[:, :, :num_keys]


def _attend(q_BxMxQxRxHxd, k_BxMxKxRxHxd, v_BxMxKxRxHxd, bias_HxQxK, visible):
  """Attention within blocks; the output is as the queries."""
  logits = einsum_float32(
    'bmqrhd,bmkrhd->bmrhqk', _scaled(q_BxMxQxRxHxd), k_BxMxKxRxHxd
  )
  weights = _weights(logits + bias_HxQxK, visible, v_BxMxKxRxHxd.dtype)
  out = jnp.einsum('bmrhqk,bmkrhd->bmqrhd', weights, v_BxMxKxRxHxd)
  return ad_checkpoint.checkpoint_name(out, SAVED_NAMES[1])


def block_local_attention(
  q_BxTxHxd,
  k_BxTxHxd,
  v_BxTxHxd,
  k_before_Hxd,
  v_before_Hxd,
  bias_HxC,
  dilation: int,
  visible_BxT=None,
):
  """Dilated-window attention in blocks, for wide windows.

  Positions are grouped by residue modulo the dilation, so that the dilated
  window becomes an ordinary sliding window of width C, which lies within a
  block of C positions and the block before it. Time and memory O(T * C). A
  residue of up to C positions, as all are at the last level, is one block, and
  short ones share a block.

  Args:
    q_BxTxHxd: Queries.
    k_BxTxHxd: Keys.
    v_BxTxHxd: Values.
    k_before_Hxd: The key of all positions before the sequence, [H, d]; None if
      they are not seen.
    v_before_Hxd: Their value.
    bias_HxC: r.
    dilation: Distance between neighbours in the window.
    visible_BxT: False for keys that nobody may see; None for all seen.

  Returns:
    Output [B, T, H, d].
  """
  batch, length = q_BxTxHxd.shape[:2]
  chunk_size = bias_HxC.shape[-1]
  num_residues = min(dilation, length)
  per_residue = -(-length // num_residues)
  has_before = per_residue > chunk_size or k_before_Hxd is not None
  # In a block of `shared` residues, those of a residue are so many apart.
  shared = 1
  if not has_before:
    most = max(1, _MIN_BLOCK // per_residue)
    shared = max(s for s in range(1, most + 1) if num_residues % s == 0)
    num_residues //= shared
    per_residue = -(-length // num_residues)
  block = min(chunk_size, per_residue) if has_before else per_residue
  num_blocks = -(-per_residue // block)
  # Position m is the (m // R)-th of residue m % R. What fills the last block
  # comes after all positions, so none of them sees it.
  padding = num_blocks * block * num_residues - length

  def in_blocks(x):
    x = jnp.pad(x, [(0, 0), (0, padding)] + [(0, 0)] * (x.ndim - 2))
    return x.reshape(-1, num_blocks, block, num_residues, *x.shape[2:])

  def with_before(x, fill):
    """Puts the C positions before it in front of each block."""
    if not has_before:
      return x
    before = jnp.broadcast_to(
      jnp.asarray(fill, x.dtype), (len(x), 1, chunk_size, *x.shape[3:])
    )
    if num_blocks > 1:
      before = jnp.concatenate([before, x[:, :-1]], axis=1)
    return jnp.concatenate([before, x], axis=2)

  q, k, v = (in_blocks(x) for x in (q_BxTxHxd, k_BxTxHxd, v_BxTxHxd))
  visible = None
  if k_before_Hxd is not None:
    k, v = with_before(k, k_before_Hxd), with_before(v, v_before_Hxd)
  else:
    k, v = with_before(k, 0), with_before(v, 0)
    if visible_BxT is None:
      visible_BxT = jnp.ones((1, length), bool)
    visible_BxMxKxR = with_before(in_blocks(visible_BxT), False)
    visible = jnp.moveaxis(visible_BxMxKxR, -1, 2)[:, :, :, None, None]

  offset = chunk_size if has_before else 0
  distance_QxK = offset + np.arange(block)[:, None] - np.arange(offset + block)
  in_window_QxK = (
    (distance_QxK >= 0)
    & (distance_QxK % shared == 0)
    & (distance_QxK < chunk_size * shared)
  )
  spread_HxN = jax.lax.pad(
    bias_HxC, jnp.zeros((), bias_HxC.dtype), [(0, 0, 0), (0, 0, shared - 1)]
  )
  bias_HxQxK = jnp.where(
    in_window_QxK,
    by_distance(spread_HxN, *distance_QxK.shape, offset),
    _HIDDEN,
  )
  out = _attend(q, k, v, bias_HxQxK, visible)
  return out.reshape(batch, -1, *out.shape[4:])[:, :length]


def causal_attention(q_BxTxHxd, k_BxTxHxd, v_BxTxHxd, bias_HxT, visible_BxT):
  """Attention to all positions up to one's own, some queries at a time.

  Never more than `_QUERY_BLOCK` rows of the T x T logits are in memory. The
  queries of each quarter of the string meet only the keys up to its end, which
  spares three eighths of the work.

  Args:
    q_BxTxHxd: Queries.
    k_BxTxHxd: Keys.
    v_BxTxHxd: Values.
    bias_HxT: Added to the logits, by distance.
    visible_BxT: False for keys that nobody may see.

  Returns:
    Output [B, T, H, d].
  """
  length = q_BxTxHxd.shape[1]
  padding = -length % _QUERY_BLOCK
  q_BxTxHxd = jnp.pad(q_BxTxHxd, [(0, 0), (0, padding), (0, 0), (0, 0)])
  num_blocks = (length + padding) // _QUERY_BLOCK
  in_quarter = -(-num_blocks // 4)

  def attend(start, num_keys):
    """The block of queries from `start` on, [B, M, H, d]."""
    q = jax.lax.dynamic_slice_in_dim(q_BxTxHxd, start, _QUERY_BLOCK, 1)
    query_M = start + jnp.arange(_QUERY_BLOCK)
    bias_HxMxK = jnp.where(
      query_M[:, None] >= jnp.arange(num_keys),
      by_distance(bias_HxT, _QUERY_BLOCK, num_keys, start),
      _HIDDEN,
    )
    out = _attend(
      q[:, None, :, None],
      k_BxTxHxd[:, None, :num_keys, None],
      v_BxTxHxd[:, None, :num_keys, None],
      bias_HxMxK,
      visible_BxT[:, None, None, None, None, :num_keys],
    )
    return out[:, 0, :, 0]

  outs = []
  for first in range(0, num_blocks, in_quarter):
    last = min(first + in_quarter, num_blocks)
    starts = np.arange(first, last) * _QUERY_BLOCK
    num_keys = min(last * _QUERY_BLOCK, length)
    if len(starts) == 1:
      outs.append(attend(int(starts[0]), num_keys))
    else:
      out = jax.lax.map(functools.partial(attend, num_keys=num_keys), starts)
      outs.append(
        jnp.moveaxis(out, 0, 1).reshape(len(q_BxTxHxd), -1, *out.shape[3:])
      )
  return jnp.concatenate(outs, axis=1)[:, :length]
