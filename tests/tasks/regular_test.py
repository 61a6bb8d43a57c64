"""The four regular tasks against solvers written another way."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import constants
from tasks import task as task_lib
from tasks.regular import modular_arithmetic, parity_check

_BATCH = 64
_WIDTH = 65


def _even_pairs(symbols):
  return int(symbols[0] != symbols[-1])


def _parity_check(symbols):
  return functools.reduce(lambda state, s: state ^ s, symbols)


def _cycle_navigation(symbols):
  position = 0
  for symbol in symbols:
    position = [(position - 1) % 5, position, (position + 1) % 5][symbol]
  return position


def _modular_arithmetic(symbols):
  return eval(''.join('01234+-*'[s] for s in symbols)) % 5


_SOLVERS = {
  'even_pairs': _even_pairs,
  'parity_check': _parity_check,
  'cycle_navigation': _cycle_navigation,
  'modular_arithmetic': _modular_arithmetic,
}
_TASKS = {name: constants.TASK_BUILDERS[name]() for name in _SOLVERS}
_TASKS['with_plus'] = modular_arithmetic.ModularArithmetic(leading_plus=True)
_SOLVERS['with_plus'] = _modular_arithmetic


@functools.cache
def _sampler(name, width):
  task = _TASKS[name]

  @jax.jit
  def sample(seed, length):
    tokens = task.sample_tokens(jax.random.key(seed), _BATCH, length, width)
    return tokens, task.solve(tokens)

  return sample


@pytest.mark.parametrize('name', _TASKS)
def test_labels_are_right_at_every_length(name):
  for lengths, width in ((range(1, 65), _WIDTH), ([499, 500], 501)):
    for length in lengths:
      tokens, answers = jax.device_get(_sampler(name, width)(length, length))
      num_symbols = _TASKS[name].input_length(length)
      assert ((tokens >= 0).sum(-1) == num_symbols).all()
      assert tokens.max() < _TASKS[name].input_size
      for string, answer in zip(tokens, answers, strict=True):
        assert _SOLVERS[name](string[-num_symbols:].tolist()) == answer
        assert (string[:-num_symbols] == task_lib.NO_SYMBOL).all()


@pytest.mark.parametrize('name', _TASKS)
def test_strings_and_answers_do_not_depend_on_the_width(name):
  for length in (1, 2, 9):
    bare = _TASKS[name].input_length(length)
    tokens, answers = _sampler(name, _WIDTH)(0, length)
    expected_tokens, expected_answers = _sampler(name, bare)(0, length)
    np.testing.assert_array_equal(tokens[:, -bare:], expected_tokens)
    np.testing.assert_array_equal(answers, expected_answers)


@pytest.mark.parametrize('name', _TASKS)
def test_sample_batch_is_one_hot_and_unpadded(name):
  task = _TASKS[name]
  batch = task.sample_batch(jax.random.key(3), 5, 4)
  num_symbols = task.input_length(4)
  assert batch['input'].shape == (5, num_symbols, task.input_size)
  assert batch['output'].shape == (5, task.output_size)
  assert (batch['input'].sum(-1) == 1).all()
  assert (batch['output'].sum(-1) == 1).all()
  answers = task.solve(batch['input'].argmax(-1))
  np.testing.assert_array_equal(answers, batch['output'].argmax(-1))
  assert task.output_length(4) == 1
  assert (task.accuracy_fn(batch['output'], batch['output']) == 1).all()


def _assert_frequencies(symbols, probabilities):
  """Chi-square at about five deviations, with a fixed seed."""
  counts = np.bincount(np.ravel(symbols), minlength=len(probabilities))
  expected = counts.sum() * np.array(probabilities)
  assert (counts[expected == 0] == 0).all()
  seen = expected > 0
  statistic = np.sum((counts[seen] - expected[seen]) ** 2 / expected[seen])
  freedom = seen.sum() - 1
  assert statistic < freedom + 5 * np.sqrt(2 * freedom) + 5


@pytest.mark.parametrize(
  ('name', 'probabilities'),
  [
    ('even_pairs', [1 / 2, 1 / 2]),
    ('parity_check', [1 / 2, 1 / 2]),
    ('cycle_navigation', [1 / 3, 1 / 3, 1 / 3]),
  ],
)
def test_symbols_are_uniform(name, probabilities):
  tokens, _ = _sampler(name, _WIDTH)(7, _WIDTH)
  _assert_frequencies(tokens, probabilities)
  _assert_frequencies(tokens[:, 0], probabilities)
  _assert_frequencies(tokens[:, -1], probabilities)


def test_digits_and_operators_alternate_uniformly():
  tokens, _ = _sampler('modular_arithmetic', _WIDTH)(7, _WIDTH)
  _assert_frequencies(tokens[:, 0::2], [1 / 5] * 5)
  _assert_frequencies(tokens[:, 1::2], [0] * 5 + [1 / 3] * 3)
  plain, _ = _sampler('modular_arithmetic', _WIDTH)(7, 9)
  tokens, _ = _sampler('with_plus', _WIDTH)(7, 9)
  assert (tokens[:, -10] == 5).all()
  np.testing.assert_array_equal(tokens[:, -9:], plain[:, -9:])


@pytest.mark.parametrize('probability', [0.0, 0.1, 0.7, 1.0])
def test_parity_probability(probability):
  task = parity_check.ParityCheck(probability)
  tokens = task.sample_tokens(jax.random.key(0), 200, 50, 50)
  assert abs(jnp.mean(tokens) - probability) < 0.02


def test_bad_probability_is_refused():
  with pytest.raises(ValueError, match=r'\[0, 1\]'):
    parity_check.ParityCheck(1.5)


def test_products_do_not_overflow():
  """A product of 250 factors is far beyond int32."""
  factors = [4, 3] * 125
  symbols = []
  for factor in factors:
    symbols += [factor, 7]
  task = modular_arithmetic.ModularArithmetic()
  answer = task.solve(jnp.array([symbols[:-1]]))
  assert answer[0] == (4 * 3) ** 125 % 5


def test_a_second_trace_samples_the_same_operators():
  task = modular_arithmetic.ModularArithmetic()
  for width in (21, 23):
    sample = jax.jit(lambda rng, w=width: task.sample_tokens(rng, _BATCH, w, w))
    tokens = sample(jax.random.key(0))
    assert set(np.unique(tokens[:, 1::2])) == {5, 6, 7}
