"""Linear recurrences of matrix states, in chunks.

With a state S of each head, K x V, that is 0 before the string,

  S_t = diag(g_t) S_(t-1) + r_t (b_t' S_(t-1)) + k_t v_t',    o_t = S_t' q_t.

Mamba-2, mLSTM, DeltaNet and RWKV-7 differ in where g, r, b, k, v and q come
from. Within a chunk all steps are matrix products, as in Yang et al., 2024
(arXiv:2406.06484); between chunks S <- A S + B, a matrix a chunk. So
time and memory are linear in T, and only T / 16 steps follow one another.

Letters: B batch, T length, H heads, K, V sizes of keys and values, N chunks, c
chunk size, G 1 or K.
"""

import jax
import jax.numpy as jnp

_CHUNK = 16


def run(
  q_BxTxHxK: jax.Array,
  k_BxTxHxK: jax.Array,
  v_BxTxHxV: jax.Array,
  gate_BxTxHxG: jax.Array,
  erase: tuple[jax.Array, jax.Array] | None = None,
) -> jax.Array:
  """Returns the outputs o, [B, T, H, V]; see above.

  Args:
    q_BxTxHxK: Queries.
    k_BxTxHxK: Keys. Queries, keys and values are 0 where there is no symbol.
    v_BxTxHxV: Values.
    gate_BxTxHxG: g, one for a head, of any sign, or 0; or one for each key
      feature, which must be positive and at least 0.3 or so: their product over
      a chunk is divided by.
    erase: r and b, [B, T, H, K]; None for no such term.
  """
  length = q_BxTxHxK.shape[1]

  def chunked(x, fill=0.0):
    # At the front: chunks are counted from the string's end, so that padding
    # does not change even how sums are rounded.
    front = -length % _CHUNK
    x = jnp.pad(x, ((0, 0), (front, 0), (0, 0), (0, 0)), constant_values=fill)
    x = x.reshape(x.shape[0], -1, _CHUNK, *x.shape[2:])
    return x.transpose(1, 0, 3, 2, 4)  # [N, B, H, c, .]

  q, k, v = map(chunked, (q_BxTxHxK, k_BxTxHxK, v_BxTxHxV))
  gate = chunked(gate_BxTxHxG, 1.0)
  if gate.shape[-1] == 1:
    segments = _segment_products(gate[..., 0])
    from_start = gate[..., :1, :] * segments[..., :1]
    shifted = jnp.pad(segments[..., :-1, :], ((0, 0),) * 3 + ((1, 0), (0, 0)))
    to_end = segments[..., -1, :, None]

    def scores(x, y):
      return x @ y.mT * segments

    def scores_before(x, y):
      return x @ y.mT * shifted

  else:
    ones = jnp.tril(jnp.ones((_CHUNK, _CHUNK)))
    from_start = jnp.exp(ones @ jnp.log(gate))
    to_end = from_start[..., -1:, :] / from_start

    def scores(x, y):
      return jnp.tril((x * from_start) @ (y / from_start).mT)

    def scores_before(x, y):
      return jnp.tril((x * before) @ (y / from_start).mT, -1)

  before = jnp.concatenate(
    [jnp.ones_like(from_start[..., :1, :]), from_start[..., :-1, :]], axis=-2
  )

  # Of the state at a chunk's start: what is read, and what is left of it.
  read, inside = q * from_start, scores(q, k) @ v
  kept = from_start[..., -1, :, None] * jnp.eye(q.shape[-1])
  added = (k * to_end).mT @ v
  if erase is not None:
    r, b = map(chunked, erase)
    # e_i = b_i' S_(i-1), of the chunk's start, its values, and e_j of j < i.
    known = jnp.concatenate([b * before, scores_before(b, k) @ v], axis=-1)
    erased = _inverse(scores_before(b, r)) @ known
    of_start, of_values = jnp.split(erased, [b.shape[-1]], axis=-1)
    read += scores(q, r) @ of_start
    inside += scores(q, r) @ of_values
    kept += (r * to_end).mT @ of_start
    added += (r * to_end).mT @ of_values

  def next_chunk(state, inputs):
    kept, added = inputs
    return kept @ state + added, state

  _, starts = jax.lax.scan(next_chunk, jnp.zeros_like(added[0]), (kept, added))
  out = inside + read @ starts
  out = out.transpose(1, 0, 3, 2, 4)  # [B, N, c, H, V]
  out = out.reshape(out.shape[0], -1, *out.shape[3:])
  return out[:, out.shape[1] - length :]


def _segment_products(gate: jax.Array) -> jax.Array:
  """Returns [..., c, c]: row i, column j <= i is the product of j+1 to i.

  By products alone, and not by logarithms: gates may be negative or 0.
  """

  def next_row(row, inputs):
    gate, diagonal = inputs
    row = row * gate[..., None] + diagonal
    return row, row

  inputs = (jnp.moveaxis(gate, -1, 0), jnp.eye(gate.shape[-1]))
  _, rows = jax.lax.scan(next_row, jnp.zeros_like(gate), inputs)
  return jnp.moveaxis(rows, 0, -2)


def _inverse(strictly_lower: jax.Array) -> jax.Array:
  """Returns (I - L)^-1 of [..., c, c], c a power of 2, in blocks.

  Of [[A, 0], [-C, B]] it is [[A^-1, 0], [B^-1 C A^-1, B^-1]]. LAPACK's solver
  would do, but many small ones at once can block each other for ever in XLA's
  programs for CPUs (jax 0.10.2).
  """
  size = strictly_lower.shape[-1]
  *batch, _, _ = strictly_lower.shape
  inverse = jnp.ones((*batch, size, 1, 1))  # Of the blocks on the diagonal.
  width = 1
  while width < size:
    num = size // (2 * width)
    blocks = strictly_lower.reshape(*batch, num, 2, width, num, 2, width)
    below = jnp.stack(
      [blocks[..., i, 1, :, i, 0, :] for i in range(num)], axis=-3
    )
    first, second = inverse[..., 0::2, :, :], inverse[..., 1::2, :, :]
    upper = jnp.concatenate([first, jnp.zeros_like(below)], axis=-1)
    lower = jnp.concatenate([second @ below @ first, second], axis=-1)
    inverse = jnp.concatenate([upper, lower], axis=-2)
    width *= 2
  return inverse[..., 0, :, :]
