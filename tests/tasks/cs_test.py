"""Tests of the context-sensitive tasks."""

import itertools
import math

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from tasks.cs import (
  binary_addition,
  binary_multiplication,
  bucket_sort,
  compute_sqrt,
  duplicate_string,
  missing_duplicate_string,
  odds_first,
)
from tests.tasks import checks

ADDITION = binary_addition.BinaryAddition()
MULTIPLICATION = binary_multiplication.BinaryMultiplication()
SORT = bucket_sort.BucketSort()
SQRT = compute_sqrt.ComputeSqrt()
DUPLICATE = duplicate_string.DuplicateString()
MISSING = missing_duplicate_string.MissingDuplicateString()
ODDS = odds_first.OddsFirst()


def _digits(number, length=0):
  """Returns big-endian digits."""
  return tuple(map(int, f'{number:0{length}b}'))


def _number(digits):
  """Returns the number that little-endian digits stand for."""
  return sum(digit << place for place, digit in enumerate(digits))


def _pair(string):
  place = string.index(2)
  assert 2 not in string[place + 1 :]
  return _number(string[:place]), _number(string[place + 1 :])


def _terminated(symbols, length):
  return (*symbols, 2) + (0,) * (length - 1 - len(symbols))


def _solve_addition(string):
  total = _number(string) if len(string) <= 2 else sum(_pair(string))
  return _terminated(_digits(total)[::-1], len(string) + 1)


def _solve_multiplication(string):
  if len(string) <= 2:
    return {1: (2,), 2: (0, 2)}[len(string)]
  product = math.prod(_pair(string))
  return _terminated(_digits(product)[::-1], len(string))


def _solve_sqrt(string):
  number = int(''.join(map(str, string)), 2)
  return _digits(math.isqrt(number), -(-len(string) // 2))


def _solve_missing(string):
  if len(string) == 1:
    assert string == (1,)
    return 1
  if len(string) % 2:
    assert string[-1] == 3
    string = string[:-1]
  half = len(string) // 2
  (answer,) = (
    symbol
    for symbol in range(2)
    if len({s.replace('2', str(symbol)) for s in _halves(string, half)}) == 1
  )
  return answer


def _halves(string, half):
  text = ''.join(map(str, string))
  assert text.count('2') == 1
  return text[:half], text[half:]


_SOLVERS = {
  ADDITION: _solve_addition,
  MULTIPLICATION: _solve_multiplication,
  SORT: lambda string: tuple(sorted(string)),
  SQRT: _solve_sqrt,
  DUPLICATE: lambda string: string * 2,
  MISSING: _solve_missing,
  ODDS: lambda string: string[1::2] + string[::2],
}
_TASKS = pytest.mark.parametrize(
  'task', _SOLVERS, ids=lambda task: type(task).__name__
)


@_TASKS
def test_solves_every_length(task):
  for length in range(1, checks.WIDTH + 1):
    checks.assert_solves(task, _SOLVERS[task], length, checks.WIDTH)


_BITS = st.lists(st.integers(0, 1), min_size=1, max_size=31).map(tuple)
_PAIRS = st.builds(lambda n, m: (*n, 2, *m), _BITS, _BITS)


@st.composite
def _copies(draw):
  word = draw(_BITS)
  copies = [*word, *word]
  copies[draw(st.integers(0, len(copies) - 1))] = 2
  return (*copies, *[3] * draw(st.integers(0, 1)))


_STRINGS = {
  ADDITION: _PAIRS,
  MULTIPLICATION: _PAIRS,
  SORT: st.lists(st.integers(0, 4), min_size=1, max_size=64).map(tuple),
  SQRT: _BITS,
  DUPLICATE: _BITS,
  MISSING: _copies(),
  ODDS: _BITS,
}


@_TASKS
@hypothesis.given(data=st.data())
def test_solves_any_strings(task, data):
  strings = data.draw(st.lists(_STRINGS[task], min_size=1, max_size=8))
  checks.assert_answers(task, _SOLVERS[task], strings, checks.WIDTH)


@_TASKS
@pytest.mark.parametrize('length', [65, 499, 500])
def test_solves_long_strings(task, length):
  checks.assert_solves(task, _SOLVERS[task], length, checks.LONG_WIDTH)


@_TASKS
@pytest.mark.parametrize('length', [1, 2, 3, 9])
def test_independent_of_width(task, length):
  checks.assert_independent_of_width(task, length)


@_TASKS
def test_strings_change_with_the_key(task):
  checks.assert_changes_with_the_key(task)


def test_sizes():
  sizes = {
    task: (task.input_size, task.output_size, task.output_length(7))
    for task in _SOLVERS
  }
  assert sizes == {
    ADDITION: (3, 3, 8),
    MULTIPLICATION: (3, 3, 7),
    SORT: (5, 5, 7),
    SQRT: (2, 2, 4),
    DUPLICATE: (2, 2, 14),
    MISSING: (4, 2, 1),
    ODDS: (2, 2, 7),
  }


@pytest.mark.parametrize('task', [DUPLICATE, ODDS])
def test_binary_strings_are_uniform(task):
  checks.assert_distributed(
    task, checks.uniform_over(itertools.product((0, 1), repeat=6))
  )


def test_symbols_are_pairwise_independent():
  tokens = np.concatenate(
    [checks.sample(DUPLICATE, seed, checks.WIDTH) for seed in range(30)]
  )
  signs = 2 * tokens - 1
  # Standard deviations from 0, of each pair of places.
  scores = signs.T @ signs / np.sqrt(len(signs))
  assert np.abs(scores[np.triu_indices(checks.WIDTH, 1)]).max() < 5


def test_strings_to_sort_are_uniform():
  checks.assert_distributed(
    SORT, checks.uniform_over(itertools.product(range(5), repeat=3))
  )


@pytest.mark.parametrize('length', [1, 2, 3, 6, 7])
def test_missing_symbol_is_uniform(length):
  half = length // 2
  strings = [(1,)] if length == 1 else []
  for word in itertools.product((0, 1), repeat=half):
    for place in range(2 * half):
      copies = [*word, *word]
      copies[place] = 2
      strings.append((*copies, *[3] * (length % 2)))
  checks.assert_distributed(MISSING, checks.uniform_over(strings))


def test_pairs_to_add_and_to_multiply_are_the_same():
  tokens = [checks.sample(task, 3, 40) for task in (ADDITION, MULTIPLICATION)]
  np.testing.assert_array_equal(*tokens)


@pytest.mark.parametrize('length', [1, 2, 3, 4, 7])
def test_distribution_of_pairs(length):
  if length <= 2:
    probabilities = checks.uniform_over(
      itertools.product((0, 1), repeat=length)
    )
  else:
    probabilities = {}
    for size in range(1, length - 1):
      other = length - 1 - size
      share = 1 / (length - 2) / (2**size - 1) / (2**other - 1)
      for n in range(1, 2**size):
        for m in range(1, 2**other):
          string = (*_digits(n, size)[::-1], 2, *_digits(m, other)[::-1])
          probabilities[string] = share
  checks.assert_distributed(ADDITION, probabilities)


@pytest.mark.parametrize('length', [1, 2, 3, 6])
def test_numbers_are_uniform(length):
  checks.assert_distributed(
    SQRT, checks.uniform_over(_digits(n, length) for n in range(1, 2**length))
  )


def test_long_numbers_and_splits_are_uniform():
  """The place of the highest 1, that of the separator, and the bits after."""
  tokens = np.concatenate(
    [checks.sample(SQRT, seed, checks.WIDTH) for seed in range(10)]
  )
  first = np.minimum(tokens.argmax(-1), 5)
  checks.assert_fits(
    first.tolist(),
    {5: 0.5**5, **{place: 0.5 ** (place + 1) for place in range(5)}},
  )
  checks.assert_fits(tokens[:, 1:].ravel().tolist(), {0: 0.5, 1: 0.5})

  places = []
  for seed in range(20):
    tokens = checks.sample(ADDITION, seed, 64)
    places += (tokens == 2).argmax(-1).tolist()
  checks.assert_fits(places, checks.uniform_over(range(1, 63)))


def _check_strings(task, strings):
  checks.assert_answers(task, _SOLVERS[task], strings, checks.LONG_WIDTH)


@pytest.mark.parametrize('task', [ADDITION, MULTIPLICATION])
def test_long_carries(task):
  """Numbers that make carries travel far, or stop one place before."""
  strings = []
  for size in (1, 2, 7, 8, 9, 16, 17, 64, 249, 250):
    ones, top = (1,) * size, (0,) * (size - 1) + (1,)
    low = (1,) + (0,) * (size - 1)
    gap = (*(int(place % 8 > 0) for place in range(size - 1)), 1)
    for n, m in itertools.product((ones, top, low, gap), repeat=2):
      if 2 * size + 1 <= checks.LONG_WIDTH:
        strings.append((*n, 2, *m))
    strings.append((1, 2, *ones))
    strings.append((*ones, 2, *(1,) * (498 - size)))
    strings.append((*low, 2, *(1,) * (499 - size)))
  _check_strings(task, strings)


def test_square_roots_next_to_squares():
  """Where an inexact remainder would show."""
  rng = np.random.default_rng(0)
  strings = []
  for size in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127, 249, 250):
    roots = {1, 2**size - 1, 2 ** (size - 1), 2 ** (size // 2) + 1}
    roots |= {int(''.join(map(str, rng.integers(0, 2, size))), 2) or 1}
    # Runs of ones and zeros, at and around the borders of limbs.
    roots |= {(2**size - 1) ^ (2 ** (size // 2) - 1), 2**size // 255 or 1}
    for root in roots:
      for number in (root**2 - 1, root**2, root**2 + 1, (root + 1) ** 2 - 1):
        digits = _digits(number)
        if len(digits) <= checks.LONG_WIDTH:
          strings.append(digits)
          strings.append((0,) * (checks.LONG_WIDTH - len(digits)) + digits)
          strings.append((0, *digits)[-checks.LONG_WIDTH :])
  strings += [(1,) * length for length in range(1, 501, 7)]
  _check_strings(SQRT, strings)


def test_square_root_of_zero():
  _check_strings(SQRT, [(0,) * length for length in (1, 9, 500)])


@pytest.mark.parametrize('task', [ADDITION, MULTIPLICATION])
def test_accuracy_mask(task):
  checks.assert_masks_after_terminator(task)


@pytest.mark.parametrize('task', [SORT, SQRT, DUPLICATE, ODDS])
def test_accuracy_mask_counts_all(task):
  assert np.all(task.accuracy_mask(np.ones((3, 4, 2))) == 1.0)
