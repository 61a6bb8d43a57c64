"""Sliding-dilated attention (Chi et al., 2023, eq. 1), computed three ways.

Every function takes queries, keys and values that are already projected and
split into heads, and the learned bias r as `bias_HxC`, indexed by the distance
j: position m attends to the positions m - j * dilation, j in [0, C).

Letters: B batch, T length, N rows, C chunk size, H heads, d head size.
"""

import jax
import jax.numpy as jnp

from regulargpt_jax import lookup

# Finite, so that a row with nothing to see is garbage and not NaN.
_HIDDEN = -1e30


def _softmax(logits: jax.Array, visible: jax.Array | None) -> jax.Array:
  """Softmax over the last axis in float32; hidden keys get weight 0."""
  if visible is not None:
    logits = jnp.where(visible, logits, _HIDDEN)
  return jax.nn.softmax(logits.astype(jnp.float32), axis=-1)


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
  logits = jnp.einsum(
    'bthd,bshd->bhts',
    _scaled(q_BxTxHxd),
    k_BxTxHxd,
    preferred_element_type=jnp.float32,
  )
  weights = _softmax(logits + mask_HxTxT, visible_BxT[:, None, None, :])
  out = jnp.einsum(
    'bhts,bshd->bthd', weights.astype(v_BxTxHxd.dtype), v_BxTxHxd
  )
  return out, weights


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
  logits = jnp.einsum(
    '...hd,...chd->...hc',
    _scaled(q_NxHxd),
    k_NxCxHxd,
    preferred_element_type=jnp.float32,
  )
  visible = None if visible_NxC is None else visible_NxC[..., None, :]
  weights_NxHxC = _softmax(logits + bias_HxC, visible)
  out = jnp.einsum(
    '...hc,...chd->...hd', weights_NxHxC.astype(v_NxCxHxd.dtype), v_NxCxHxd
  )
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


@jax.custom_vjp
def _permute(x_BxTxF, order_T, inverse_T):
  """Returns x[:, order]; the gradient gathers by the inverse permutation."""
  del inverse_T
  return x_BxTxF[:, order_T]


def _permute_forward(x_BxTxF, order_T, inverse_T):
  return _permute(x_BxTxF, order_T, inverse_T), (order_T, inverse_T)


def _permute_backward(residuals, grad):
  order_T, inverse_T = residuals
  return _permute(grad, inverse_T, order_T), None, None


_permute.defvjp(_permute_forward, _permute_backward)


def block_local_attention(
  q_BxTxHxd,
  k_BxTxHxd,
  v_BxTxHxd,
  k_before_HxD,
  v_before_HxD,
  bias_HxC,
  dilation,
  visible_BxT=None,
):
  """Dilated-window attention in blocks, for wide windows.

  Positions are regrouped by residue modulo the dilation, so that the dilated
  window becomes an ordinary sliding window of width C, which lies within a
  block of C positions and the block before it. Time and memory O(T * C).

  Args:
    q_BxTxHxd: Queries.
    k_BxTxHxd: Keys.
    v_BxTxHxd: Values.
    k_before_HxD: The key of all positions before the sequence, [H, d]; None if
      they are not seen.
    v_before_HxD: Their value.
    bias_HxC: r.
    dilation: May be traced.
    visible_BxT: False for keys that nobody may see; None for all seen.

  Returns:
    Output [B, T, H, d].
  """
  batch, length = q_BxTxHxd.shape[:2]
  chunk_size = bias_HxC.shape[-1]
  dilation = jnp.minimum(dilation, length)

  # Position m has residue m % dilation, and is the (m // dilation)-th of it;
  # the first `longer` residues have one position more than the others.
  shortest, longer = length // dilation, length % dilation
  position_T = jnp.arange(length)
  residue_T = position_T % dilation
  place_T = (
    residue_T * shortest
    + jnp.minimum(residue_T, longer)
    + position_T // dilation
  )
  order_T = (
    jnp.zeros(length, jnp.int32)
    .at[place_T]
    .set(position_T, unique_indices=True)
  )

  padding = -length % chunk_size
  num_blocks = (length + padding) // chunk_size

  def in_blocks(x, fill=0):
    x = jnp.pad(
      x,
      [(0, 0), (0, padding)] + [(0, 0)] * (x.ndim - 2),
      constant_values=fill,
    )
    return x.reshape(x.shape[0], num_blocks, chunk_size, *x.shape[2:])

  def with_block_before(x_BxMxCxF, fill=0):
    before = jnp.pad(
      x_BxMxCxF[:, :-1],
      [(0, 0), (1, 0)] + [(0, 0)] * (x_BxMxCxF.ndim - 2),
      constant_values=fill,
    )
    return jnp.concatenate([before, x_BxMxCxF], axis=2)

  q, k, v = (
    in_blocks(_permute(x, order_T, place_T))
    for x in (q_BxTxHxd, k_BxTxHxd, v_BxTxHxd)
  )
  k, v = with_block_before(k), with_block_before(v)  # [B, M, 2C, H, d]
  residue = in_blocks(residue_T[order_T][None], fill=-1)
  # Same residue: the key is in the sequence, not before its start.
  same_1xMxCx2C = (
    residue[..., None] == with_block_before(residue, fill=-2)[..., None, :]
  )
  distance_Cx2C = (
    chunk_size + jnp.arange(chunk_size)[:, None] - jnp.arange(2 * chunk_size)
  )
  in_window_Cx2C = (distance_Cx2C >= 0) & (distance_Cx2C < chunk_size)
  bias_HxCx2C = jnp.moveaxis(
    lookup.take_rows(bias_HxC.T, jnp.clip(distance_Cx2C, 0, chunk_size - 1)),
    -1,
    0,
  )

  logits = jnp.einsum(
    'bmqhd,bmkhd->bhmqk', _scaled(q), k, preferred_element_type=jnp.float32
  )
  if k_before_HxD is not None:
    before = jnp.einsum(
      'bmqhd,hd->bhmq',
      _scaled(q),
      k_before_HxD,
      preferred_element_type=jnp.float32,
    )
    logits = jnp.where(same_1xMxCx2C[:, None], logits, before[..., None])
    visible = in_window_Cx2C
  else:
    visible = in_window_Cx2C & same_1xMxCx2C[:, None]
  if visible_BxT is not None:
    seen = in_blocks(visible_BxT[:, order_T], fill=False)
    seen = with_block_before(seen, fill=False)  # [B, M, 2C]
    visible = visible & seen[:, None, :, None, :]
  weights = _softmax(logits + bias_HxCx2C[:, None], visible)
  inside = weights
  if k_before_HxD is not None:
    inside = jnp.where(same_1xMxCx2C[:, None], weights, 0.0)
  out = jnp.einsum('bhmqk,bmkhd->bmqhd', inside.astype(v.dtype), v)
  if k_before_HxD is not None:
    outside = (weights - inside).sum(-1)
    out += jnp.einsum('bhmq,hd->bmqhd', outside.astype(v.dtype), v_before_HxD)
  out = out.reshape(batch, -1, *out.shape[3:])[:, :length]
  return _permute(out, place_T, order_T)
