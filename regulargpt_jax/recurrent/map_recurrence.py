"""Recurrences of states that maps of places move, in chunks.

With a state x of N complex numbers,

  x_t = P_t diag(d_t) x_(t-1) + b_t,

where P_t has a 1 in each column: index_j is where place j goes. Products of
such matrices are such matrices (Terzic et al., 2025, arXiv:2509.22284). So all
states of a chunk come in log steps, and only T / 16 steps follow one another.

Letters: B batch, T length, N state size, M matrices in the dictionary, K
chunks, c chunk size. States, d and b are [..., 2, N], of real and imaginary
part.
"""

import jax
import jax.numpy as jnp

from regulargpt_jax.recurrent import chunks


def run(
  chosen_BxTxM: jax.Array,
  dictionary_MxNxN: jax.Array,
  d_BxTx2xN: jax.Array,
  b_BxTx2xN: jax.Array,
) -> jax.Array:
  """Returns the states, [B, T, 2, N]; see above.

  The one before the string is (1, 0, ..., 0). A column of P_t is 1 where that
  of the sum of `chosen` times the dictionary is largest, the first of equal
  ones; its gradient is that of the column's softmax.

  Args:
    chosen_BxTxM: Shares of the matrices of the dictionary, at least 0. Where
      all are 0, P_t is the identity.
    dictionary_MxNxN: The matrices.
    d_BxTx2xN: Factors.
    b_BxTx2xN: Inputs.
  """
  x = _run(
    chunks.split(chosen_BxTxM),
    dictionary_MxNxN,
    chunks.split(d_BxTx2xN, jnp.array([[1.0], [0.0]])),
    chunks.split(b_BxTx2xN),
  )
  return chunks.joined(x, b_BxTx2xN.shape[1])


def in_steps(chosen, dictionary, d, b):
  """As `run`, step by step: P_t is a matrix, its gradient the softmax's."""
  scores = jnp.einsum('btm,mij->btij', chosen, dictionary)
  soft = jax.nn.softmax(scores, axis=-2)
  size = b.shape[-1]
  hard = jax.nn.one_hot(jnp.argmax(scores, axis=-2), size, axis=-2)
  p = soft + jax.lax.stop_gradient(hard - soft)
  is_symbol = jnp.any(chosen > 0, axis=-1)[..., None, None]
  p = jnp.where(is_symbol, p, jnp.eye(size))
  d, b = (jax.lax.complex(x[:, :, 0], x[:, :, 1]) for x in (d, b))

  def step(x, inputs):
    p, d, b = inputs
    x = jnp.einsum('bij,bj->bi', p, d * x) + b
    return x, x

  start = jnp.zeros_like(b[:, 0]).at[:, 0].set(1)
  inputs = tuple(x.swapaxes(0, 1) for x in (p, d, b))
  x = jax.lax.scan(step, start, inputs)[1].swapaxes(0, 1)
  return jnp.stack([x.real, x.imag], axis=2)


def _run_and_keep(chosen, dictionary, d, b):
  """Returns states, and what their gradient needs: nothing of size N x N.

  Args:
    chosen: [K, B, c, M].
    dictionary: [M, N, N].
    d: [K, B, c, 2, N], as b and the states.
    b: See d.
  """

  def step(before, inputs):
    chosen, d, b = inputs
    scores = _scores(chosen, dictionary)
    largest = jnp.max(scores, axis=-2)
    place = jnp.arange(scores.shape[-1])
    # The first of them: XLA's argmax takes a CPU five times as long.
    index = jnp.where(
      scores == largest[..., None, :], place[:, None], place[-1]
    ).min(-2)
    index = jnp.where(jnp.any(chosen > 0, -1, keepdims=True), index, place)
    b = b.at[:, 0].add(_moved(index[:, 0], _times(d[:, 0], before)))

    def composed(first, then):
      (index, d, b), (then_index, then_d, then_b) = first, then
      return (
        _at(then_index, index),
        _times(d, _at(then_d, index)),
        _moved(then_index, _times(then_d, b)) + then_b,
      )

    x = jax.lax.associative_scan(composed, (index, d, b), axis=1)[-1]
    return x[:, -1], (x, before, index, largest)

  start = jnp.zeros_like(b[0, :, 0]).at[:, 0, 0].set(1)
  _, (x, *kept) = jax.lax.scan(step, start, (chosen, d, b))
  return x, (dictionary, (chosen, d, x, *kept))


def _gradients(kept, of_x):
  """Returns gradients of chosen, dictionary, d and b.

  With l_t = conj(d_(t+1)) P_(t+1)' l_(t+1) + of_x_t, whose P' only looks up,
  b's is l, d's conj(x_(t-1)) P' l, and P's l y', of y = d x_(t-1).
  """
  dictionary, inputs = kept

  def step(carry, inputs):
    after, of_dictionary = carry
    of_x, chosen, d, x, start, index, largest = inputs

    def composed(later, then):  # Backwards in time.
      (later_index, later_d, later_b), (index, d, b) = later, then
      return (
        _at(later_index, index),
        _times(d, _at(later_d, index)),
        _times(d, _at(later_b, index)) + b,
      )

    # To place t comes what map t + 1 takes back, to the last what `after` is.
    of_b = jax.lax.associative_scan(
      composed,
      (
        jnp.roll(index, -1, axis=1),
        jnp.roll(_conjugate(d), -1, axis=1),
        of_x.at[:, -1].add(after),
      ),
      reverse=True,
      axis=1,
    )[-1]
    before = jnp.concatenate([start[:, None], x[:, :-1]], axis=1)
    of_y = _at(of_b, index)
    of_d = _times(_conjugate(before), of_y)
    of_before = _times(_conjugate(d[:, 0]), of_y[:, 0])
    y = _times(d, before)
    # Of softmax s of column j and products a: s_ij (a_ij - sum of s_kj a_kj).
    powers = jnp.exp(_scores(chosen, dictionary) - largest[..., None, :])
    products = _row(of_b, 0).mT * _row(y, 0) + _row(of_b, 1).mT * _row(y, 1)
    z = jnp.sum(powers, axis=-2, keepdims=True)
    mean = jnp.sum(powers * products, axis=-2, keepdims=True) / z
    of_scores = powers * (products - mean) / z
    of_scores = of_scores.reshape(*index.shape[:-1], -1)
    of_chosen = of_scores @ dictionary.reshape(len(dictionary), -1).T
    sums = jnp.tensordot(chosen, of_scores, ((0, 1), (0, 1)))
    of_dictionary += sums.reshape(dictionary.shape)
    return (of_before, of_dictionary), (of_chosen, of_d, of_b)

  carry = (jnp.zeros_like(of_x[0, :, 0]), jnp.zeros_like(dictionary))
  (_, of_dictionary), (of_chosen, of_d, of_b) = jax.lax.scan(
    step, carry, (of_x, *inputs), reverse=True
  )
  return of_chosen, of_dictionary, of_d, of_b


@jax.custom_vjp
def _run(chosen, dictionary, d, b):
  """Returns states; see `_run_and_keep`."""
  return _run_and_keep(chosen, dictionary, d, b)[0]


_run.defvjp(_run_and_keep, _gradients)


def _scores(chosen, dictionary):
  """Returns [B, c, N, N]."""
  mixed = chosen @ dictionary.reshape(len(dictionary), -1)
  return mixed.reshape(*chosen.shape[:-1], *dictionary.shape[1:])


def _moved(index, x):
  """Returns P x, [..., 2, N]: a product, as scatters have no fixed order.

  An exact one: accelerators would round a state whenever it moves.
  """
  columns = index[..., None] == jnp.arange(index.shape[-1])
  return jnp.matmul(
    x, columns.astype(x.dtype), precision=jax.lax.Precision.HIGHEST
  )


def _at(x, index):
  """Returns x at the index of each place: P' x, of [..., N] or [..., 2, N]."""
  if x.ndim > index.ndim:
    index = jnp.broadcast_to(index[..., None, :], x.shape)
  return jnp.take_along_axis(x, index, axis=-1, mode='promise_in_bounds')


def _row(x, part):
  """Returns the real or the imaginary part, [..., 1, N]."""
  return x[..., part : part + 1, :]


def _conjugate(x):
  return x * jnp.array([[1.0], [-1.0]])


def _times(x, y):
  (a, b), (c, d) = ((_row(z, 0), _row(z, 1)) for z in (x, y))
  return jnp.concatenate([a * c - b * d, a * d + b * c], axis=-2)
