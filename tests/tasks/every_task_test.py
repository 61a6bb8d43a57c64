"""What every task must satisfy that has a solver written another way."""

import itertools

import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np
import pytest

from tests.tasks import checks, cs, dcf, regular

SOLVERS = cs.SOLVERS | dcf.SOLVERS | regular.SOLVERS
STRINGS = cs.STRINGS | dcf.STRINGS | regular.STRINGS
# Symbols of strings and of answers, and symbols of the answer to seven.
SIZES = {
  cs.ADDITION: (3, 3, 8),
  cs.MULTIPLICATION: (3, 3, 7),
  cs.SORT: (5, 5, 7),
  cs.SQRT: (2, 2, 4),
  cs.DUPLICATE: (2, 2, 14),
  cs.MISSING: (4, 2, 1),
  cs.ODDS: (2, 2, 7),
  dcf.BRACKETS: (11, 5, 1),
  dcf.REVERSE: (2, 2, 7),
  dcf.EQUATION: (11, 5, 1),
  dcf.STACK: (5, 3, 8),
  regular.EVEN_PAIRS: (2, 2, 1),
  regular.PARITY: (2, 2, 1),
  regular.CYCLE: (3, 5, 1),
  regular.WORDS: (6, 6, 1),
  regular.ARITHMETIC: (9, 5, 1),
  regular.WITH_PLUS: (9, 5, 1),
}
# Those whose answers end before their last column.
TERMINATED = (cs.ADDITION, cs.MULTIPLICATION, dcf.STACK)
# Those whose strings are any symbols, and how many of them are tried.
UNIFORM = {
  cs.SORT: 3,
  cs.DUPLICATE: 6,
  cs.ODDS: 6,
  dcf.REVERSE: 6,
  regular.EVEN_PAIRS: 6,
  regular.PARITY: 6,
  regular.CYCLE: 6,
  regular.WORDS: 3,
}


def _name(task):
  name = type(task).__name__
  return f'{name}, a plus first' if task is regular.WITH_PLUS else name


def _tasks(tasks=SOLVERS):
  return pytest.mark.parametrize('task', tasks, ids=_name)


@_tasks()
def test_solves_every_length(task):
  for length in range(1, checks.WIDTH + 1):
    checks.assert_solves(task, SOLVERS[task], length, checks.WIDTH)


@_tasks()
@hypothesis.given(data=st.data())
def test_solves_any_strings(task, data):
  strings = data.draw(st.lists(STRINGS[task], min_size=1, max_size=8))
  checks.assert_answers(task, SOLVERS[task], strings, checks.WIDTH)


@_tasks()
def test_solves_long_strings(task):
  for length in (65, 499, 500):
    checks.assert_solves(task, SOLVERS[task], length, checks.LONG_WIDTH)


@_tasks()
@pytest.mark.parametrize('length', [pytest.param(1, marks=pytest.mark.slow), 9])
def test_independent_of_width(task, length):
  checks.assert_independent_of_width(task, length)


@_tasks()
def test_strings_change_with_the_key(task):
  checks.assert_changes_with_the_key(task)


@_tasks()
def test_sizes(task):
  sizes = task.input_size, task.output_size, task.output_length(7)
  assert sizes == SIZES[task]


@_tasks()
def test_sample_batch_is_one_hot_and_unpadded(task):
  """The benchmark's interface."""
  batch = jax.jit(task.sample_batch, static_argnums=(1, 2))(
    jax.random.key(3), 5, 4
  )
  num_symbols = task.input_length(4)
  assert batch['input'].shape == (5, num_symbols, task.input_size)
  for one_hot in batch.values():
    assert np.all(one_hot.sum(-1) == 1)
  strings, answers = (batch[name].argmax(-1) for name in ('input', 'output'))
  expected = [SOLVERS[task](tuple(string)) for string in strings.tolist()]
  np.testing.assert_array_equal(answers, expected)
  assert batch['output'].shape == (*np.shape(expected), task.output_size)
  assert np.all(task.accuracy_fn(batch['output'], batch['output']) == 1)


@_tasks(UNIFORM)
def test_strings_are_uniform(task):
  symbols = range(task.input_size)
  strings = itertools.product(symbols, repeat=UNIFORM[task])
  checks.assert_distributed(task, checks.uniform_over(strings))


@_tasks()
def test_accuracy_mask(task):
  if task in TERMINATED:
    checks.assert_masks_after_terminator(task)
  else:
    assert np.all(task.accuracy_mask(np.ones((3, 4, 2))) == 1.0)
