"""The four regular tasks against solvers written another way."""

import functools
import itertools

import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np
import pytest

from tasks.regular import (
  cycle_navigation,
  even_pairs,
  modular_arithmetic,
  parity_check,
)
from tests.tasks import checks

EVEN_PAIRS = even_pairs.EvenPairs()
PARITY = parity_check.ParityCheck()
CYCLE = cycle_navigation.CycleNavigation()
ARITHMETIC = modular_arithmetic.ModularArithmetic()
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


def _solve_arithmetic(symbols):
  return eval(''.join('01234+-*'[s] for s in symbols)) % 5


_SOLVERS = {
  EVEN_PAIRS: _solve_even_pairs,
  PARITY: _solve_parity,
  CYCLE: _solve_cycle,
  ARITHMETIC: _solve_arithmetic,
  WITH_PLUS: _solve_arithmetic,
}
_TASKS = pytest.mark.parametrize(
  'task',
  _SOLVERS,
  ids=['even_pairs', 'parity', 'cycle', 'arithmetic', 'with_plus'],
)


@_TASKS
def test_solves_every_length(task):
  for length in range(1, checks.WIDTH + 1):
    checks.assert_solves(task, _SOLVERS[task], length, checks.WIDTH)


def _strings(num_symbols):
  symbols = st.integers(0, num_symbols - 1)
  return st.lists(symbols, min_size=1, max_size=checks.WIDTH).map(tuple)


_DIGITS = st.integers(0, 4)
_TERMS = st.lists(st.tuples(st.integers(5, 7), _DIGITS), max_size=31)
_STRINGS = {
  EVEN_PAIRS: _strings(2),
  PARITY: _strings(2),
  CYCLE: _strings(3),
  ARITHMETIC: st.builds(
    lambda first, terms: (first, *itertools.chain(*terms)), _DIGITS, _TERMS
  ),
  WITH_PLUS: st.builds(
    lambda first, terms: (5, first, *itertools.chain(*terms)), _DIGITS, _TERMS
  ),
}


@_TASKS
@hypothesis.given(data=st.data())
def test_solves_any_strings(task, data):
  strings = data.draw(st.lists(_STRINGS[task], min_size=1, max_size=8))
  checks.assert_answers(task, _SOLVERS[task], strings, checks.WIDTH)


@_TASKS
@pytest.mark.parametrize('length', [499, 500])
def test_solves_long_strings(task, length):
  checks.assert_solves(task, _SOLVERS[task], length, checks.LONG_WIDTH)


@_TASKS
@pytest.mark.parametrize('length', [1, 2, 9])
def test_independent_of_width(task, length):
  checks.assert_independent_of_width(task, length)


@_TASKS
def test_strings_change_with_the_key(task):
  checks.assert_changes_with_the_key(task)


@_TASKS
def test_sample_batch_is_one_hot_and_unpadded(task):
  batch = jax.jit(task.sample_batch, static_argnums=(1, 2))(
    jax.random.key(3), 5, 4
  )
  num_symbols = task.input_length(4)
  assert batch['input'].shape == (5, num_symbols, task.input_size)
  assert batch['output'].shape == (5, task.output_size)
  assert (batch['input'].sum(-1) == 1).all()
  assert (batch['output'].sum(-1) == 1).all()
  for string, answer in zip(
    batch['input'].argmax(-1).tolist(), batch['output'].argmax(-1), strict=True
  ):
    assert answer == _SOLVERS[task](string)
  assert task.output_length(4) == 1
  assert (task.accuracy_fn(batch['output'], batch['output']) == 1).all()


@pytest.mark.parametrize(
  ('task', 'num_symbols'), [(EVEN_PAIRS, 2), (PARITY, 2), (CYCLE, 3)]
)
def test_strings_are_uniform(task, num_symbols):
  checks.assert_distributed(
    task,
    checks.uniform_over(itertools.product(range(num_symbols), repeat=6)),
  )


def test_digits_and_operators_alternate_uniformly():
  parts = [range(5), range(5, 8)] * 2 + [range(5)]
  checks.assert_distributed(
    ARITHMETIC, checks.uniform_over(itertools.product(*parts))
  )
  plain = checks.sample(ARITHMETIC, 7, 9)
  tokens = checks.sample(WITH_PLUS, 7, 9)
  assert (tokens[:, -10] == 5).all()
  np.testing.assert_array_equal(tokens[:, -9:], plain[:, -9:])


@pytest.mark.parametrize('probability', [0.0, 0.1, 0.7, 1.0])
def test_parity_probability(probability):
  task = parity_check.ParityCheck(probability)
  tokens = checks.sample(task, 0, 64)
  checks.assert_fits(
    tokens.ravel().tolist(), {0: 1 - probability, 1: probability}
  )


def test_bad_probability_is_refused():
  with pytest.raises(ValueError, match=r'\[0, 1\]'):
    parity_check.ParityCheck(1.5)


def test_products_do_not_overflow():
  """A product of 250 factors is far beyond int32."""
  string = (*(4, 7, 3, 7) * 124, 4, 7, 3)
  checks.assert_answers(
    ARITHMETIC, _solve_arithmetic, [string], checks.LONG_WIDTH
  )


def test_a_second_trace_samples_the_same_operators():
  for width in (21, 23):
    tokens = checks.sample(ARITHMETIC, 0, width, width)
    assert set(np.unique(tokens[:, 1::2])) == {5, 6, 7}
