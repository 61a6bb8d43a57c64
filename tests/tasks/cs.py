"""The context-sensitive tasks, with solvers written another way."""

import math

from hypothesis import strategies as st

from tasks.cs import (
  binary_addition,
  binary_multiplication,
  bucket_sort,
  compute_sqrt,
  duplicate_string,
  missing_duplicate_string,
  odds_first,
)

ADDITION = binary_addition.BinaryAddition()
MULTIPLICATION = binary_multiplication.BinaryMultiplication()
SORT = bucket_sort.BucketSort()
SQRT = compute_sqrt.ComputeSqrt()
DUPLICATE = duplicate_string.DuplicateString()
MISSING = missing_duplicate_string.MissingDuplicateString()
ODDS = odds_first.OddsFirst()


def digits(number, length=0):
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
  return _terminated(digits(total)[::-1], len(string) + 1)


def _solve_multiplication(string):
  if len(string) <= 2:
    return {1: (2,), 2: (0, 2)}[len(string)]
  product = math.prod(_pair(string))
  return _terminated(digits(product)[::-1], len(string))


def _solve_sqrt(string):
  number = int(''.join(map(str, string)), 2)
  return digits(math.isqrt(number), -(-len(string) // 2))


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


SOLVERS = {
  ADDITION: _solve_addition,
  MULTIPLICATION: _solve_multiplication,
  SORT: lambda string: tuple(sorted(string)),
  SQRT: _solve_sqrt,
  DUPLICATE: lambda string: string * 2,
  MISSING: _solve_missing,
  ODDS: lambda string: string[1::2] + string[::2],
}


_BITS = st.lists(st.integers(0, 1), min_size=1, max_size=31).map(tuple)
_PAIRS = st.builds(lambda n, m: (*n, 2, *m), _BITS, _BITS)


@st.composite
def _copies(draw):
  word = draw(_BITS)
  copies = [*word, *word]
  copies[draw(st.integers(0, len(copies) - 1))] = 2
  return (*copies, *[3] * draw(st.integers(0, 1)))


STRINGS = {
  ADDITION: _PAIRS,
  MULTIPLICATION: _PAIRS,
  SORT: st.lists(st.integers(0, 4), min_size=1, max_size=64).map(tuple),
  SQRT: _BITS,
  DUPLICATE: _BITS,
  MISSING: _copies(),
  ODDS: _BITS,
}
