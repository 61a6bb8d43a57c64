"""Tests of the context-sensitive tasks."""

import itertools

import numpy as np
import pytest

from tests.tasks import checks, cs


def test_symbols_are_pairwise_independent():
  tokens = np.concatenate(
    [checks.sample(cs.DUPLICATE, seed, checks.WIDTH) for seed in range(30)]
  )
  signs = 2 * tokens - 1
  # Standard deviations from 0, of each pair of places.
  scores = signs.T @ signs / np.sqrt(len(signs))
  assert np.abs(scores[np.triu_indices(checks.WIDTH, 1)]).max() < 5


@pytest.mark.parametrize('length', [1, 2, 3, 6, 7])
def test_missing_symbol_is_uniform(length):
  half = length // 2
  strings = [(1,)] if length == 1 else []
  for word in itertools.product((0, 1), repeat=half):
    for place in range(2 * half):
      copies = [*word, *word]
      copies[place] = 2
      strings.append((*copies, *[3] * (length % 2)))
  checks.assert_distributed(cs.MISSING, checks.uniform_over(strings))


def test_pairs_to_add_and_to_multiply_are_the_same():
  tokens = [
    checks.sample(task, 3, 40) for task in (cs.ADDITION, cs.MULTIPLICATION)
  ]
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
          string = (*cs.digits(n, size)[::-1], 2, *cs.digits(m, other)[::-1])
          probabilities[string] = share
  checks.assert_distributed(cs.ADDITION, probabilities)


@pytest.mark.parametrize('length', [1, 2, 3, 6])
def test_numbers_are_uniform(length):
  checks.assert_distributed(
    cs.SQRT,
    checks.uniform_over(cs.digits(n, length) for n in range(1, 2**length)),
  )


def test_long_numbers_and_splits_are_uniform():
  """The place of the highest 1, that of the separator, and the bits after."""
  tokens = np.concatenate(
    [checks.sample(cs.SQRT, seed, checks.WIDTH) for seed in range(10)]
  )
  first = np.minimum(tokens.argmax(-1), 5)
  checks.assert_fits(
    first.tolist(),
    {5: 0.5**5, **{place: 0.5 ** (place + 1) for place in range(5)}},
  )
  checks.assert_fits(tokens[:, 1:].ravel().tolist(), {0: 0.5, 1: 0.5})

  places = []
  for seed in range(20):
    tokens = checks.sample(cs.ADDITION, seed, 64)
    places += (tokens == 2).argmax(-1).tolist()
  checks.assert_fits(places, checks.uniform_over(range(1, 63)))


def _check_strings(task, strings):
  checks.assert_answers(task, cs.SOLVERS[task], strings, checks.LONG_WIDTH)


@pytest.mark.parametrize('task', [cs.ADDITION, cs.MULTIPLICATION])
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
        digits = cs.digits(number)
        if len(digits) <= checks.LONG_WIDTH:
          strings.append(digits)
          strings.append((0,) * (checks.LONG_WIDTH - len(digits)) + digits)
          strings.append((0, *digits)[-checks.LONG_WIDTH :])
  strings += [(1,) * length for length in range(1, 501, 7)]
  _check_strings(cs.SQRT, strings)


def test_square_root_of_zero():
  _check_strings(cs.SQRT, [(0,) * length for length in (1, 9, 500)])
