"""The deterministic context-free tasks, with solvers written another way."""

import operator
import re

from hypothesis import strategies as st

from tasks.dcf import (
  modular_arithmetic_brackets,
  reverse_string,
  solve_equation,
  stack_manipulation,
)

BRACKETS = modular_arithmetic_brackets.ModularArithmeticBrackets()
REVERSE = reverse_string.ReverseString()
EQUATION = solve_equation.SolveEquation()
STACK = stack_manipulation.StackManipulation()

BRACKET_SYMBOLS = '01234+-*()'
EQUATION_SYMBOLS = '01234+-()x='


def text(string, symbols):
  return ''.join(symbols[symbol] for symbol in string)


def symbols(text, symbols):
  return tuple(symbols.index(character) for character in text)


def value(text):
  return eval(text) % 5


def solve_brackets(string):
  return value(text(string, BRACKET_SYMBOLS))


def _solve_equation(string):
  if len(string) < 3:
    assert set(string) == {0}
    return 0
  left, right = text(string, EQUATION_SYMBOLS).split('=')
  assert left.count('x') == 1 and len(right) == 1
  fitting = [
    digit
    for digit in range(5)
    if value(left.replace('x', str(digit))) == int(right)
  ]
  (answer,) = fitting
  return answer


def solve_stack(string):
  stack = []
  for symbol in string:
    if symbol == 2:
      stack = stack[:-1]
    else:
      stack.append(symbol % 3)
  output = (*reversed(stack), 2)
  return output + (0,) * (len(string) + 1 - len(output))


SOLVERS = {
  BRACKETS: solve_brackets,
  REVERSE: lambda string: string[::-1],
  EQUATION: _solve_equation,
  STACK: solve_stack,
}


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
  return f'{text[:place]}x{text[place + 1 :]}={value(text)}'


def _lists(symbols, min_size, max_size):
  return st.lists(
    st.sampled_from(symbols), min_size=min_size, max_size=max_size
  ).map(tuple)


STRINGS = {
  BRACKETS: _bracketed('+-*').map(lambda text: symbols(text, BRACKET_SYMBOLS)),
  REVERSE: _lists((0, 1), 1, 64),
  EQUATION: _equations().map(lambda text: symbols(text, EQUATION_SYMBOLS)),
  STACK: st.builds(
    operator.add, _lists((0, 1), 1, 20), _lists((2, 3, 4), 0, 44)
  ),
}
