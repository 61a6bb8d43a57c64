"""States and maps of states as vectors of zeros and ones.

Letters: Q states, E entries of a state's code, S = Q E entries of a map's.
"""

import numpy as np

ENCODINGS = ('one_hot', 'binary')


def num_entries(classes_Q: np.ndarray, encoding: str) -> int:
  """Returns E, the length of the codes that `state_codes` gives."""
  _check(encoding)
  if encoding == 'one_hot':
    return len(classes_Q)
  _, sizes = np.unique(classes_Q, return_counts=True)
  return len(sizes) + 2 * _num_bits(sizes)


def state_codes(
  classes_Q: np.ndarray, encoding: str
) -> tuple[np.ndarray, np.ndarray]:
  """Returns a code for each state, all different, and how to read its class.

  A code is a row of one-hot digits, so that all codes have equally many ones,
  and that many they share with themselves only. 'one_hot' is a single digit,
  as in the paper. 'binary' writes a state as its class and, in base 2, its
  number within the class: E grows as log Q, and the class can still be read
  by a linear map.

  Args:
    classes_Q: The answers of the states.
    encoding: Of `ENCODINGS`.

  Returns:
    Codes, 0.0 or 1.0, [Q, E]. The classes that the first digit's values stand
    for, integers [E] or fewer.

  Raises:
    ValueError: If the encoding is unknown.
  """
  _check(encoding)
  if encoding == 'one_hot':
    return np.eye(len(classes_Q), dtype=np.float32), classes_Q
  first_classes, class_Q, sizes = np.unique(
    classes_Q, return_inverse=True, return_counts=True
  )
  number_Q = np.array([np.sum(class_Q[:q] == c) for q, c in enumerate(class_Q)])
  digits = [np.eye(len(sizes))[class_Q]]
  digits += [np.eye(2)[number_Q >> bit & 1] for bit in range(_num_bits(sizes))]
  return np.concatenate(digits, axis=1).astype(np.float32), first_classes


def flat_maps(maps_NxQ: np.ndarray, codes_QxE: np.ndarray) -> np.ndarray:
  """Returns maps of states as vectors, [N, S] (eq. 2, flattened).

  Entries q E to (q + 1) E of a vector are the code of the state that the map
  sends q to.

  Args:
    maps_NxQ: Where each map sends each state.
    codes_QxE: From `state_codes`.
  """
  return codes_QxE[maps_NxQ].reshape(len(maps_NxQ), -1)


def _num_bits(sizes: np.ndarray) -> int:
  """Returns how many bits number the states of the largest class."""
  return int(sizes.max() - 1).bit_length()


def _check(encoding: str) -> None:
  """Raises a ValueError if the encoding is unknown."""
  if encoding not in ENCODINGS:
    raise ValueError(
      f'encoding must be one of {", ".join(ENCODINGS)}, got {encoding!r}.'
    )
