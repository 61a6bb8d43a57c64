"""States as vectors of zeros and ones."""

import numpy as np
import pytest

from regulargpt_jax.construction import codes

CLASSES = ([0], [0, 0, 0], [0, 1, 1, 1, 1, 1], [4, 0, 4, 2], list(range(7)))


@pytest.mark.parametrize('encoding', codes.ENCODINGS)
@pytest.mark.parametrize('classes', CLASSES, ids=str)
def test_codes_share_all_their_ones_with_themselves_only(classes, encoding):
  classes = np.array(classes)
  codes_QxE, first_classes = codes.state_codes(classes, encoding)
  assert codes_QxE.shape[1] == codes.num_entries(classes, encoding)
  assert set(codes_QxE.flat) <= {0, 1}
  shared_QxQ = codes_QxE @ codes_QxE.T
  num_ones = shared_QxQ[0, 0]
  np.testing.assert_array_equal(shared_QxQ == num_ones, np.eye(len(classes)))
  # The first digit says the class.
  first = codes_QxE[:, : len(first_classes)]
  np.testing.assert_array_equal(first @ first_classes, classes)


@pytest.mark.parametrize(
  ('size', 'num_bits'),
  [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (64, 6)],
)
def test_binary_codes_have_no_bit_too_many(size, num_bits):
  """Least bits that number the states of a class: 2^bits >= their number."""
  classes = np.zeros(size, int)
  codes_QxE, _ = codes.state_codes(classes, 'binary')
  assert codes_QxE.shape == (size, 1 + 2 * num_bits)
  assert codes.num_entries(classes, 'binary') == 1 + 2 * num_bits
  assert codes.num_entries(classes, 'one_hot') == size


def test_an_unknown_encoding_lists_the_known_ones():
  with pytest.raises(ValueError, match='one_hot, binary'):
    codes.state_codes(np.array([0, 1]), 'unary')


def test_flat_maps_are_the_papers():
  """Eq. (2), row by row."""
  codes_QxE, _ = codes.state_codes(np.array([0, 1, 0]), 'one_hot')
  flat = codes.flat_maps(np.array([[1, 1, 0]]), codes_QxE)
  assert flat.tolist() == [[0, 1, 0, 0, 1, 0, 1, 0, 0]]
