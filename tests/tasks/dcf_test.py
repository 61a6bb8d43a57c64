"""Tests of the deterministic context-free tasks."""

import collections
import itertools
import re

import numpy as np
import pytest

from tests.tasks import checks, dcf


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
    dcf.symbols(text, dcf.BRACKET_SYMBOLS): probability
    for text, probability in _expressions(length, '+-*').items()
  }
  checks.assert_distributed(dcf.BRACKETS, probabilities)


@pytest.mark.parametrize('length', [11, 16])
def test_distribution_of_parts(length):
  shapes, operators, digits = [], [], []
  for string in checks.sampled_strings(dcf.BRACKETS, length):
    text = dcf.text(string, dcf.BRACKET_SYMBOLS)
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
    tokens = checks.sample(dcf.BRACKETS, seed, length)
    for text in (dcf.text(row, dcf.BRACKET_SYMBOLS) for row in tokens):
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
      equation = dcf.symbols(f'{left}={dcf.value(text)}', dcf.EQUATION_SYMBOLS)
      probabilities[equation] += probability / len(digits)
  checks.assert_distributed(dcf.EQUATION, probabilities)


def test_unknown_is_uniform_among_many_digits():
  places = collections.defaultdict(list)
  for string in checks.sampled_strings(dcf.EQUATION, 16):
    text = dcf.text(string[:-2], dcf.EQUATION_SYMBOLS)
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
  strings = [dcf.symbols(text, dcf.BRACKET_SYMBOLS) for text in texts]
  checks.assert_answers(
    dcf.BRACKETS, dcf.solve_brackets, strings, checks.LONG_WIDTH
  )


def test_signs_are_not_operators():
  texts = [
    template.format(a, b)
    for template in ('({}--{})', '({}*-{})', '(-{}*-{})', '((-{})--{})')
    for a in range(5)
    for b in range(5)
  ]
  strings = [dcf.symbols(text, dcf.BRACKET_SYMBOLS) for text in texts]
  checks.assert_answers(dcf.BRACKETS, dcf.solve_brackets, strings, checks.WIDTH)


def test_equations_of_mixed_lengths():
  """Whatever is around the unknown, every digit can be the answer."""
  texts = [
    f'{left}={dcf.value(left.replace("x", str(digit)))}'
    for left in ('x', '-x', '(-x)', '(2-(1-x))', '((x-3)--4)', '(0-(-x))')
    for digit in range(5)
  ]
  strings = [dcf.symbols(text, dcf.EQUATION_SYMBOLS) for text in texts]
  answers = checks.solve(dcf.EQUATION, checks.right_aligned(strings, 13))
  assert list(answers) == [0, 1, 2, 3, 4] * 6


@pytest.mark.parametrize('length', [1, 2, 4])
def test_distribution_of_stacks(length):
  sizes = range(1, length) if length > 1 else [1]
  checks.assert_distributed(
    dcf.STACK,
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
    for string in checks.sampled_strings(dcf.STACK, 16)
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
  checks.assert_answers(dcf.STACK, dcf.solve_stack, strings, checks.WIDTH)
