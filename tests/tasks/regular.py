"""Regular tasks, with solvers written another way."""

import functools
import itertools

from hypothesis import strategies as st

from tasks.regular import (
  cycle_navigation,
  even_pairs,
  modular_arithmetic,
  parity_check,
  word_problem,
)
from tests.tasks import checks

EVEN_PAIRS = even_pairs.EvenPairs()
PARITY = parity_check.ParityCheck()
CYCLE = cycle_navigation.CycleNavigation()
ARITHMETIC = modular_arithmetic.ModularArithmetic()
WORDS = word_problem.WordProblem()
WITH_PLUS = modular_arithmetic.ModularArithmetic(leading_plus=True)


def _solve_even_pairs(symbols):
  return int(symbols[0] != symbols[-1])


def _solve_parity(symbols):
  return functools.reduce(lambda state, s: state ^ s, symbols)


def _solve_cycle(symbols):
  position = 0
  for symbol in symbols:
    position = [(position - 1) % 5, position, (position + 1) % 5][symbol]
  return position


def solve_arithmetic(symbols):
  return eval(''.join('01234+-*'[s] for s in symbols)) % 5


_S3 = list(itertools.permutations(range(3)))


def _solve_words(symbols):
  """Follows each of three things, where the permutations take it."""
  things = list(range(3))
  for symbol in symbols:
    things = [_S3[symbol][place] for place in things]
  return _S3.index(tuple(things))


SOLVERS = {
  EVEN_PAIRS: _solve_even_pairs,
  PARITY: _solve_parity,
  CYCLE: _solve_cycle,
  WORDS: _solve_words,
  ARITHMETIC: solve_arithmetic,
  WITH_PLUS: solve_arithmetic,
}


def _strings(num_symbols):
  symbols = st.integers(0, num_symbols - 1)
  return st.lists(symbols, min_size=1, max_size=checks.WIDTH).map(tuple)


_DIGITS = st.integers(0, 4)
_TERMS = st.lists(st.tuples(st.integers(5, 7), _DIGITS), max_size=31)
STRINGS = {
  EVEN_PAIRS: _strings(2),
  PARITY: _strings(2),
  CYCLE: _strings(3),
  WORDS: _strings(6),
  ARITHMETIC: st.builds(
    lambda first, terms: (first, *itertools.chain(*terms)), _DIGITS, _TERMS
  ),
  WITH_PLUS: st.builds(
    lambda first, terms: (5, first, *itertools.chain(*terms)), _DIGITS, _TERMS
  ),
}
