"""Tests of the deterministic context-free tasks."""

import collections
import itertools
import operator
import re

import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np
import pytest

from tasks.dcf import (
  modular_arithmetic_brackets,
  reverse_string,
  solve_equation,
  stack_manipulation,
)
from tests.tasks import checks

BRACKETS = modular_arithmetic_brackets.ModularArithmeticBrackets()
REVERSE = reverse_string.ReverseString()
EQUATION = solve_equation.SolveEquation()
STACK = stack_manipulation.StackManipulation()

_BRACKET_SYMBOLS = '01234+-*()'
_EQUATION_SYMBOLS = '01234+-()x='


def _text(string, symbols):
  return ''.join(symbols[symbol] for symbol in string)


def _symbols(text, symbols):
  return tuple(symbols.index(character) for character in text)


def _value(text):
  return eval(text) % 5


def _solve_brackets(string):
  return _value(_text(string, _BRACKET_SYMBOLS))


def _solve_equation(string):
  if len(string) < 3:
    assert set(string) == {0}
    return 0
  left, right = _text(string, _EQUATION_SYMBOLS).split('=')
  assert left.count('x') == 1 and len(right) == 1
  fitting = [
    digit
    for digit in range(5)
    if _value(left.replace('x', str(digit))) == int(right)
  ]
  (answer,) = fitting
  return answer


def _solve_stack(string):
  stack = []
  for symbol in string:
    if symbol == 2:
      stack = stack[:-1]
    else:
      stack.append(symbol % 3)
  output = (*reversed(stack), 2)
  return output + (0,) * (len(string) + 1 - len(output))


_SOLVERS = {
  BRACKETS: _solve_brackets,
  REVERSE: lambda string: string[::-1],
  EQUATION: _solve_equation,
  STACK: _solve_stack,
}
_TASKS = pytest.mark.parametrize(
  'task', _SOLVERS, ids=lambda task: type(task).__name__
)


@_TASKS
def test_solves_every_length(task):
  for length in range(1, checks.WIDTH + 1):
    checks.assert_solves(task, _SOLVERS[task], length, checks.WIDTH)


def _bracketed(operators):
  """Returns a strategy of expressions of up to 60 symbols, as text."""
  return st.recursive(
    st.builds(
      str.format,
      st.sampled_from(['{}', '-{}', '({})', '(-{})']),
      st.sampled_from('01234'),
    ),
    lambda parts: st.builds(
      '({}{}{})'.format, parts, st.sampled_from(operators), parts
    ),
    max_leaves=9,
  )


@st.composite
def _equations(draw):
  text = draw(_bracketed('+-'))
  digits = [match.start() for match in re.finditer(r'\d', text)]
  place = draw(st.sampled_from(digits))
  return f'{text[:place]}x{text[place + 1 :]}={_value(text)}'


def _lists(symbols, min_size, max_size):
  return st.lists(
    st.sampled_from(symbols), min_size=min_size, max_size=max_size
  ).map(tuple)


_STRINGS = {
  BRACKETS: _bracketed('+-*').map(
    lambda text: _symbols(text, _BRACKET_SYMBOLS)
  ),
  REVERSE: _lists((0, 1), 1, 64),
  EQUATION: _equations().map(lambda text: _symbols(text, _EQUATION_SYMBOLS)),
  STACK: st.builds(
    operator.add, _lists((0, 1), 1, 20), _lists((2, 3, 4), 0, 44)
  ),
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
  sizes = {task: (task.input_size, task.output_size) for task in _SOLVERS}
  assert sizes == {
    BRACKETS: (11, 5),
    REVERSE: (2, 2),
    EQUATION: (11, 5),
    STACK: (5, 3),
  }
  assert REVERSE.output_length(7) == 7
  assert STACK.output_length(7) == 8


def test_benchmark_interface():
  for task, output_shape in (STACK, (3, 10, 3)), (EQUATION, (3, 5)):
    batch = jax.jit(task.sample_batch, static_argnums=(1, 2))(
      jax.random.key(0), 3, 9
    )
    assert batch['input'].shape == (3, 9, task.input_size)
    assert batch['output'].shape == output_shape
    assert all(np.all(one_hot.sum(-1) == 1.0) for one_hot in batch.values())


def _expressions(length, operators):
  """Returns the probability of every expression of a length, as text."""
  short = {1: '{}', 2: '-{}', 3: '({})', 4: '(-{})'}
  if length in short:
    return {short[length].format(digit): 1 / 5 for digit in range(5)}
  probabilities = collections.Counter()
  for left_length in range(1, length - 3):
    left = _expressions(left_length, operators)
    right = _expressions(length - 3 - left_length, operators)
    share = 1 / (length - 4) / len(operators)
    for (l, p), o, (r, q) in itertools.product(
      left.items(), operators, right.items()
    ):
      probabilities[f'({l}{o}{r})'] += share * p * q
  return probabilities


def _shapes(length):
  """As `_expressions`, all digits and all operators taken for the same."""
  if length < 5:
    return {{1: 'd', 2: '-d', 3: '(d)', 4: '(-d)'}[length]: 1.0}
  probabilities = collections.Counter()
  for left_length in range(1, length - 3):
    for (l, p), (r, q) in itertools.product(
      _shapes(left_length).items(), _shapes(length - 3 - left_length).items()
    ):
      probabilities[f'({l}o{r})'] += p * q / (length - 4)
  return probabilities


@pytest.mark.parametrize('length', [1, 2, 3, 4, 5, 6])
def test_distribution_of_short_expressions(length):
  probabilities = {
    _symbols(text, _BRACKET_SYMBOLS): probability
    for text, probability in _expressions(length, '+-*').items()
  }
  checks.assert_distributed(BRACKETS, probabilities)


@pytest.mark.parametrize('length', [11, 16])
def test_distribution_of_parts(length):
  shapes, operators, digits = [], [], []
  for string in checks.sampled_strings(BRACKETS, length):
    text = _text(string, _BRACKET_SYMBOLS)
    # An operator follows a digit or a bracket, a sign does not.
    shape = re.sub(r'(?<=[\d)])[-+*]', 'o', text)
    operators += re.findall(r'(?<=[\d)])[-+*]', text)
    digits += re.findall(r'\d', text)
    shapes.append(re.sub(r'\d', 'd', shape))
  checks.assert_fits(shapes, _shapes(length))
  checks.assert_fits(operators, checks.uniform_over('+-*'))
  checks.assert_fits(digits, checks.uniform_over('01234'))


def test_left_length_of_long_expressions_is_uniform():
  length, num_batches = 64, 20
  left_lengths = []
  for seed in range(num_batches):
    tokens = checks.sample(BRACKETS, seed, length)
    for text in (_text(row, _BRACKET_SYMBOLS) for row in tokens):
      depth = 0
      for place, character in enumerate(text):
        depth += (character == '(') - (character == ')')
        if depth == 1 and character in '+-*' and text[place - 1] not in '(+-*':
          left_lengths.append(place - 1)
          break
  assert len(left_lengths) == num_batches * checks.BATCH_SIZE
  checks.assert_fits(left_lengths, checks.uniform_over(range(1, length - 3)))


@pytest.mark.parametrize('length', [3, 4, 8])
def test_distribution_of_equations(length):
  probabilities = collections.Counter()
  for text, probability in _expressions(length - 2, '+-').items():
    digits = [match.start() for match in re.finditer(r'\d', text)]
    for place in digits:
      left = f'{text[:place]}x{text[place + 1 :]}'
      equation = _symbols(f'{left}={_value(text)}', _EQUATION_SYMBOLS)
      probabilities[equation] += probability / len(digits)
  checks.assert_distributed(EQUATION, probabilities)


def test_unknown_is_uniform_among_many_digits():
  places = collections.defaultdict(list)
  for string in checks.sampled_strings(EQUATION, 16):
    text = _text(string[:-2], _EQUATION_SYMBOLS)
    places[len(re.findall(r'[\dx]', text))].append(
      len(re.findall(r'\d', text.split('x')[0]))
    )
  assert len(places) > 1
  for num_digits, places_of_x in places.items():
    checks.assert_fits(places_of_x, checks.uniform_over(range(num_digits)))


@pytest.mark.parametrize('sign', '+-*')
@pytest.mark.parametrize('side', ['left', 'right', 'both'])
def test_deep_brackets_and_long_products(sign, side):
  """No depth or chain that a string can have overflows."""
  rng = np.random.default_rng(0)
  texts = []
  for _ in range(checks.BATCH_SIZE):
    text = f'(-{rng.integers(1, 5)})'  # The deepest that fits in 500.
    while len(text) <= checks.LONG_WIDTH - 4:
      digit = rng.integers(1, 5)
      goes_left = {'left': True, 'right': False, 'both': rng.integers(2)}[side]
      left, right = (text, digit) if goes_left else (digit, text)
      text = f'({left}{sign}{right})'
    texts.append(text)
  strings = [_symbols(text, _BRACKET_SYMBOLS) for text in texts]
  checks.assert_answers(BRACKETS, _solve_brackets, strings, checks.LONG_WIDTH)


def test_signs_are_not_operators():
  texts = [
    template.format(a, b)
    for template in ('({}--{})', '({}*-{})', '(-{}*-{})', '((-{})--{})')
    for a in range(5)
    for b in range(5)
  ]
  strings = [_symbols(text, _BRACKET_SYMBOLS) for text in texts]
  checks.assert_answers(BRACKETS, _solve_brackets, strings, checks.WIDTH)


def test_equations_of_mixed_lengths():
  """Whatever is around the unknown, every digit can be the answer."""
  texts = [
    f'{left}={_value(left.replace("x", str(digit)))}'
    for left in ('x', '-x', '(-x)', '(2-(1-x))', '((x-3)--4)', '(0-(-x))')
    for digit in range(5)
  ]
  strings = [_symbols(text, _EQUATION_SYMBOLS) for text in texts]
  answers = checks.solve(EQUATION, checks.right_aligned(strings, 13))
  assert list(answers) == [0, 1, 2, 3, 4] * 6


@pytest.mark.parametrize('length', [1, 2, 4])
def test_distribution_of_stacks(length):
  sizes = range(1, length) if length > 1 else [1]
  checks.assert_distributed(
    STACK,
    {
      stack + actions: 2.0**-size * 3.0 ** (size - length) / len(sizes)
      for size in sizes
      for stack in itertools.product((0, 1), repeat=size)
      for actions in itertools.product((2, 3, 4), repeat=length - size)
    },
  )


def test_stack_lengths_are_uniform():
  sizes = [
    sum(symbol < 2 for symbol in string)
    for string in checks.sampled_strings(STACK, 16)
  ]
  checks.assert_fits(sizes, checks.uniform_over(range(1, 16)))


def test_stack_underflow_in_the_middle():
  """POPs of the empty stack are lost, not owed."""
  strings = [
    (1, *(2,) * pops, 3, 4, *(2,) * more, *last)
    for pops in range(6)
    for more in range(5)
    for last in ((), (4,))
  ]
  checks.assert_answers(STACK, _solve_stack, strings, checks.WIDTH)


def test_stack_accuracy_mask():
  checks.assert_masks_after_terminator(STACK)


def test_reverse_strings_are_uniform():
  checks.assert_distributed(
    REVERSE, checks.uniform_over(itertools.product((0, 1), repeat=6))
  )


def test_reverse_accuracy_mask_counts_all():
  assert np.all(REVERSE.accuracy_mask(np.ones((3, 4, 2))) == 1.0)
