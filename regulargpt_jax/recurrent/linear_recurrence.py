"""Linear recurrences of matrix states, in chunks.

With a state S of each head, K x V, that is 0 before the string,

  S_t = diag(g_t) S_(t-1) + r_t (b_t' S_(t-1)) + k_t v_t',    o_t = S_t' q_t.

Mamba-2, mLSTM, DeltaNet and RWKV-7 differ in where g, r, b, k, v and q come
from. In chunks all of a chunk's steps are matrix products, as in Yang et al.,
2024 (arXiv:2406.06484), and only T / 16 chunks follow one another. In steps the
recurrence is computed as it is written. Time and memory are linear in T.

Letters: B batch, T length, H heads, K, V sizes of keys and values, N chunks, c
chunk size, G 1 or K.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from regulargpt_jax.recurrent import chunks

# Keys of at most this size are so little work that a CPU takes longer for the
# products of chunks in which something is erased than for single steps.
_SMALL_KEY = 16


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
  is_small = erase is not None and q_BxTxHxK.shape[-1] <= _SMALL_KEY
  form = in_steps if is_small and jax.default_backend() == 'cpu' else in_chunks
  return form(q_BxTxHxK, k_BxTxHxK, v_BxTxHxV, gate_BxTxHxG, erase)


def in_steps(q, k, v, gate, erase=None):
  """As `run`, step by step; gates may be of any size."""
  inputs = [q, k, v, gate, *(erase or ())]

  def step(state, inputs):
    q, k, v, gate, *erase = inputs
    # Outer products as products: a CPU takes longer to broadcast.
    after = gate[..., None] * state + jnp.einsum('bhk,bhv->bhkv', k, v)
    if erase:
      r, b = erase
      known = jnp.einsum('bhk,bhkv->bhv', b, state)
      after += jnp.einsum('bhk,bhv->bhkv', r, known)
    return after, jnp.einsum('bhk,bhkv->bhv', q, after)

  start = jnp.zeros((*q[:, 0].shape, v.shape[-1]))
  _, out = jax.lax.scan(step, start, [x.swapaxes(0, 1) for x in inputs])
  return out.swapaxes(0, 1)


def in_chunks(q, k, v, gate, erase=None):
  """As `run`, chunk by chunk."""

  def chunked(x, fill=0.0):
    return chunks.split(x, fill).swapaxes(2, 3)  # [N, B, H, c, .]

  reads, writes = [chunked(q)], [chunked(k)]
  if erase is not None:
    r, b = map(chunked, erase)
    reads.append(b)
    writes.append(r)
  inputs = (
    jnp.concatenate(reads, axis=-2),
    jnp.concatenate(writes, axis=-2),
    chunked(v),
    chunked(gate, 1.0),
  )
  start = jnp.zeros((*q[:, 0].shape, v.shape[-1]))
  # Of a chunk nothing is kept for the gradient but the state before it: all
  # else is computed again, in less time than a CPU takes to keep it.
  step = jax.checkpoint(_chunk, prevent_cse=False)
  _, out = jax.lax.scan(lambda state, x: step(state, *x), start, inputs)
  return chunks.joined(out.swapaxes(2, 3), q.shape[1])


def _chunk(state, reads, writes, v, gate):
  """Returns the state after a chunk, and its outputs, [B, H, c, V].

  Args:
    state: [B, H, K, V].
    reads: q, and then b where something is erased: [B, H, c or 2 c, K].
    writes: k, and then r: likewise.
    v: [B, H, c, V].
    gate: [B, H, c, G].
  """
  has_erase = reads.shape[-2] > chunks.SIZE
  # Of i and j <= i what is left at i of what was written at j, times what is
  # left at i of the state before the chunk: of the products of reads and writes
  # with one gate, and of their features with many.
  if gate.shape[-1] == 1:
    left = _segment_products(gate[..., 0])
    from_start = gate[..., :1, :] * left[..., :1]
    to_end = left[..., -1, :, None]
  else:
    left = jnp.tril(jnp.ones((chunks.SIZE, chunks.SIZE)))
    log = left @ jnp.log(gate)
    from_start = jnp.exp(log)
    to_end = jnp.exp(log[..., -1:, :] - log)
  until = from_start
  if has_erase:
    # b reads before the step's gate.
    def shifted(x, first):
      return jnp.concatenate([first, x[..., :-1, :]], axis=-2)

    until = jnp.concatenate(
      [until, shifted(until, jnp.ones_like(until[..., :1, :]))], axis=-2
    )
    left = jnp.concatenate(
      [left, shifted(left, jnp.zeros_like(left[..., :1, :]))], axis=-2
    )
    left = jnp.concatenate([left, left], axis=-1)
    to_end = jnp.concatenate([to_end, to_end], axis=-2)
  of_start = (reads * until) @ state
  if gate.shape[-1] == 1:
    scores = reads @ writes.mT * left
  else:
    to_start = jnp.exp(-log)
    if has_erase:
      to_start = jnp.concatenate([to_start, to_start], axis=-2)
    scores = (reads * until) @ (writes * to_start).mT * left
  added = v
  if has_erase:
    # e_i = b_i' S_(i-1), of the chunk's start, its values, and e_j of j < i.
    scores, of_b = jnp.split(scores, 2, axis=-2)
    of_start, known = jnp.split(of_start, 2, axis=-2)
    of_values, of_erased = jnp.split(of_b, 2, axis=-1)
    erased = _inverse(of_erased) @ (known + of_values @ v)
    added = jnp.concatenate([v, erased], axis=-2)
  out = of_start + scores @ added
  after = from_start[..., -1, :, None] * state + (writes * to_end).mT @ added
  return after, out


def _pairs(size: int) -> Iterator[tuple[int, np.ndarray]]:
  """Yields widths of blocks, w, and which [i, j] are of neighbours of a pair.

  That is, below the diagonal in one block of 2 w and not in one of w. Each
  [i, j] below the diagonal is of one width.
  """
  i, j = np.indices((size, size))
  width = 1
  while width < size:
    together = i // (2 * width) == j // (2 * width)
    yield width, (i // width > j // width) & together
    width *= 2


@jax.custom_vjp
def _segment_products(gate: jax.Array) -> jax.Array:
  """Returns [..., c, c]: row i, column j <= i is the product of j+1 to i.

  By products alone, and not by logarithms: gates may be negative or 0.
  """
  first, last = gate, jnp.ones_like(gate)  # From i's block's start; to j's end.
  products = jnp.eye(gate.shape[-1])
  for width, is_pair in _pairs(gate.shape[-1]):
    products += is_pair * first[..., None] * last[..., None, :]
    shape = (*gate.shape[:-1], -1, 2, width)
    first, last = first.reshape(shape), last.reshape(shape)
    whole = first[..., -1:]
    first, last = (
      jnp.stack([x[..., 0, :] * a, x[..., 1, :] * b], axis=-2).reshape(
        gate.shape
      )
      for x, a, b in (
        (first, 1, whole[..., 0, :]),
        (last, whole[..., 1, :], 1),
      )
    )
  return products


def _segment_gradient(products, gradient):
  # Gate l is a factor of i >= l > j: what is left is products i, l and l-1, j.
  before = (gradient @ products.mT)[..., :-1]
  before = jnp.pad(before, ((0, 0),) * (before.ndim - 1) + ((1, 0),))
  return (jnp.sum(products * before, axis=-2),)


_segment_products.defvjp(
  lambda gate: (_segment_products(gate),) * 2, _segment_gradient
)


@jax.custom_vjp
def _inverse(strictly_lower: jax.Array) -> jax.Array:
  """Returns (I - L)^-1 of [..., c, c], c a power of 2, in blocks.

  Of [[A, 0], [-C, B]] it is [[A^-1, 0], [B^-1 C A^-1, B^-1]]; powers of L over
  a chunk would lose all digits. LAPACK's solver would do, but many small ones
  at once can block each other for ever in XLA's programs for CPUs (jax 0.10.2).
  """
  inverse = jnp.eye(strictly_lower.shape[-1])
  for width, is_pair in _pairs(strictly_lower.shape[-1]):
    below = is_pair * strictly_lower
    if width == 1:
      inverse += below
    else:
      inverse += inverse @ below @ inverse
  return inverse


_inverse.defvjp(
  lambda strictly_lower: (_inverse(strictly_lower),) * 2,
  lambda inverse, gradient: (inverse.mT @ gradient @ inverse.mT,),
)
