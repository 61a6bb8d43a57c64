"""Regular tasks against solvers written another way."""

import itertools

import numpy as np
import pytest

from tasks.regular import parity_check
from tests.tasks import checks, regular


def test_digits_and_operators_alternate_uniformly():
  parts = [range(5), range(5, 8)] * 2 + [range(5)]
  checks.assert_distributed(
    regular.ARITHMETIC, checks.uniform_over(itertools.product(*parts))
  )
  plain = checks.sample(regular.ARITHMETIC, 7, 9)
  tokens = checks.sample(regular.WITH_PLUS, 7, 9)
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
    regular.ARITHMETIC, regular.solve_arithmetic, [string], checks.LONG_WIDTH
  )


def test_a_second_trace_samples_the_same_operators():
  for width in (21, 23):
    tokens = checks.sample(regular.ARITHMETIC, 0, width, width)
    assert set(np.unique(tokens[:, 1::2])) == {5, 6, 7}
