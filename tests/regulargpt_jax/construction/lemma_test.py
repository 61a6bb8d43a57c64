"""The lemma's network, as printed in the paper and as it multiplies."""

import numpy as np
import pytest

from regulargpt_jax import construction
from regulargpt_jax.construction import codes, lemma


def test_the_matrices_printed_in_the_paper():
  assert construction.get_w1(2).tolist() == [
    [1, 0, 1, 0, 0, 0, 0, 0],
    [0, 1, 0, 1, 0, 0, 0, 0],
    [0, 0, 0, 0, 1, 0, 1, 0],
    [0, 0, 0, 0, 0, 1, 0, 1],
    [1, 0, 0, 0, 1, 0, 0, 0],
    [0, 0, 1, 0, 0, 0, 1, 0],
    [0, 1, 0, 0, 0, 1, 0, 0],
    [0, 0, 0, 1, 0, 0, 0, 1],
  ]
  assert construction.get_w2(2).tolist() == [
    [1, 0, 0, 0],
    [1, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
    [0, 0, 1, 0],
    [0, 0, 0, 1],
    [0, 0, 0, 1],
  ]


def test_the_example_worked_in_the_paper():
  pair = np.array([1, 0, 1, 0, 0, 1, 1, 0])
  hidden = pair @ construction.get_w1(2)
  assert hidden.tolist() == [1, 1, 2, 0, 1, 1, 2, 0]
  assert construction.compose(pair[:4], pair[4:]).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize('n', range(1, 7))
def test_compose_multiplies_binary_matrices(n):
  pairs = np.random.default_rng(n).integers(2, size=(2, 50, n, n))
  flat_a, flat_b = pairs.reshape(2, 50, n * n)
  product = np.matmul(*pairs).reshape(50, n * n)
  np.testing.assert_array_equal(construction.compose(flat_a, flat_b), product)


@pytest.mark.parametrize('sizes', [(4, 9), (3, 3)])
def test_compose_refuses_what_is_not_square(sizes):
  with pytest.raises(ValueError, match=rf'n\^2 .* got {sizes[0]}'):
    construction.compose(*map(np.zeros, sizes))


@pytest.mark.parametrize('encoding', codes.ENCODINGS)
@pytest.mark.parametrize('num_states', [1, 2, 3, 5, 9])
def test_layers_compose_maps_in_any_code(num_states, encoding):
  rng = np.random.default_rng(num_states)
  codes_QxE, _ = codes.state_codes(rng.integers(2, size=num_states), encoding)
  first, second = rng.integers(num_states, size=(2, 30, num_states))
  composed = np.take_along_axis(second, first, axis=1)
  flat = [codes.flat_maps(m, codes_QxE) for m in (first, second, composed)]
  hidden = np.concatenate(flat[:2], axis=1) @ lemma.first_layer(codes_QxE)
  hidden = np.maximum(hidden - codes_QxE[0].sum(), 0)
  np.testing.assert_array_equal(hidden @ lemma.second_layer(codes_QxE), flat[2])
