"""A product of two matrices by two layers and a ReLU (lemma 1, section 7.2).

The paper's matrices are binary; ours are maps of states, whose rows may also
be written in the codes of `codes`. One-hot codes make the two the same.

Letters: Q states, E entries of a state's code, S = Q E entries of a map's, U
hidden units.
"""

import numpy as np


def first_layer(codes_QxE: np.ndarray) -> np.ndarray:
  """Returns W1, [2 S, U] with U = Q^2 E: a unit for each way to go on.

  Unit (i, e, k), in this order, is 1 if the first map sends i to k and entry e
  of the code of where the second sends k is 1. With m ones in a code it is
  ReLU(ones shared by A_i and the code of k, plus B_ke, less m), since at most
  m - 1 are shared with the code of another state: for m = 1, eq. (3).

  Args:
    codes_QxE: Codes of the states, of equally many ones each.
  """
  num_states, num_entries = codes_QxE.shape
  eye_Q, eye_E = (np.eye(n, dtype=codes_QxE.dtype) for n in codes_QxE.shape)
  shape = (-1, num_states * num_entries * num_states)
  # Input entry f of row p of the first map; of row q of the second.
  first = np.einsum('pi,e,kf->pfiek', eye_Q, eye_E.sum(0), codes_QxE)
  second = np.einsum('i,ef,qk->qfiek', eye_Q.sum(0), eye_E, eye_Q)
  return np.concatenate([first.reshape(shape), second.reshape(shape)])


def second_layer(codes_QxE: np.ndarray) -> np.ndarray:
  """Returns W2, [U, S]: it sums the units over the states in between, k."""
  ones_Qx1 = np.ones((len(codes_QxE), 1), codes_QxE.dtype)
  return np.kron(np.eye(codes_QxE.size, dtype=codes_QxE.dtype), ones_Qx1)


def get_w1(n: int) -> np.ndarray:
  """Returns W1 of appendix D for n x n matrices, int [2 n^2, n^3]."""
  return first_layer(np.eye(n, dtype=int))


def get_w2(n: int) -> np.ndarray:
  """Returns W2 of appendix D for n x n matrices, int [n^3, n^2]."""
  return second_layer(np.eye(n, dtype=int))


def compose(flat_a: np.ndarray, flat_b: np.ndarray) -> np.ndarray:
  """Returns Flat(AB) by the lemma's network.

  Args:
    flat_a: Flat(A), row by row, [..., n^2], of zeros and ones. As a map of
      states it comes first.
    flat_b: Flat(B), likewise.

  Returns:
    [..., n^2]; counts, where A's rows have several ones.

  Raises:
    ValueError: If the last axes differ or are not a square number long.
  """
  flat_a, flat_b = np.asarray(flat_a), np.asarray(flat_b)
  size = flat_a.shape[-1]
  n = round(size**0.5)
  if flat_b.shape[-1] != size or n**2 != size:
    raise ValueError(
      'The last axes must be n^2 long for the same n, got'
      f' {size} and {flat_b.shape[-1]}.'
    )
  pair = np.concatenate([flat_a, flat_b], axis=-1)
  return np.maximum(pair @ get_w1(n) - 1, 0) @ get_w2(n)
