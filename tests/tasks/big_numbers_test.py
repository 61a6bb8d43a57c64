"""Arithmetic on the device equals Python's, on numbers of a fixed width."""

import functools
import math

import hypothesis
from hypothesis import strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tasks import big_numbers

# Whole limbs, and not; the first are shorter than the root's smallest estimate.
WIDTHS = pytest.mark.parametrize('width', [7, 16, 61, 131])
_BATCH_SIZE = 8


def _numbers(data, width):
  """Draws numbers; also those next to powers of two, and to squares."""
  largest = 2**width - 1
  number = st.integers(0, largest)
  powers = st.builds(
    lambda e, d: 2**e + d, st.integers(0, width), st.integers(-1, 1)
  )
  squares = st.builds(
    lambda root, d: root**2 + d,
    st.integers(0, math.isqrt(largest)),
    st.integers(-1, 1),
  )
  numbers = st.one_of(number, powers, squares).map(
    lambda n: min(max(n, 0), largest)
  )
  return data.draw(
    st.lists(numbers, min_size=_BATCH_SIZE, max_size=_BATCH_SIZE)
  )


def _digits(numbers, width, base=2):
  """Returns little-endian digits, int32 [B, W]."""
  return jnp.array(
    [[n // base**place % base for place in range(width)] for n in numbers],
    jnp.int32,
  )


def _values(digits, base=2):
  digits = np.asarray(digits)
  assert digits.min() >= 0
  assert digits.max() < base
  return [
    sum(digit * base**place for place, digit in enumerate(row))
    for row in digits.tolist()
  ]


@functools.cache
def _compiled(function, *static):
  return jax.jit(lambda *args: function(*args, *static))


@WIDTHS
@pytest.mark.parametrize(
  ('function', 'expected'),
  [
    (big_numbers.add, lambda n, m: n + m),
    (big_numbers.multiply, lambda n, m: n * m),
  ],
)
@hypothesis.given(data=st.data())
def test_sums_and_products(function, expected, width, data):
  n, m = _numbers(data, width), _numbers(data, width)
  results = _compiled(function)(_digits(n, width), _digits(m, width))
  assert results.shape == (_BATCH_SIZE, width)
  assert _values(results) == [
    expected(*pair) % 2**width for pair in zip(n, m, strict=True)
  ]


@WIDTHS
@hypothesis.given(data=st.data())
def test_square_roots(width, data):
  n = _numbers(data, width)
  roots = _compiled(big_numbers.floor_sqrt)(_digits(n, width))
  assert roots.shape == (_BATCH_SIZE, -(-width // 2))
  assert _values(roots) == [math.isqrt(number) for number in n]


@WIDTHS
@hypothesis.given(data=st.data())
def test_numbers_of_digits(width, data):
  n = _numbers(data, width)
  sizes = _compiled(big_numbers.num_digits)(_digits(n, width))
  assert sizes.tolist() == [max(number.bit_length(), 1) for number in n]


@pytest.mark.parametrize(
  ('base', 'bound'), [(2, 1), (2, 2), (2, 7), (10, 18), (256, 10**6)]
)
@hypothesis.given(data=st.data())
def test_carries(base, bound, data):
  width = 20
  digit = st.sampled_from([0, base - 1, base, bound]) | st.integers(0, bound)
  digits = data.draw(
    st.lists(digit.map(lambda d: min(d, bound)), min_size=width, max_size=width)
  )
  (result,) = _values(
    _compiled(big_numbers.normalize, base, bound)(jnp.array([digits])), base
  )
  value = sum(digit * base**place for place, digit in enumerate(digits))
  assert result == value % base**width
