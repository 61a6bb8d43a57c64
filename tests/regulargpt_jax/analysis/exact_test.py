"""Compiled models are proved right, changed ones only where they are."""

import jax
import numpy as np
import pytest

from regulargpt_jax import construction, model
from regulargpt_jax.analysis import closure, equivalence, exact
from tests.regulargpt_jax.construction import tables


def _verdict(automaton, params, config):
  symbols = np.arange(config.vocab_size)
  found = exact.close(config, params, symbols, 300)
  if isinstance(found, closure.Leak):
    return found
  return equivalence.compare(
    found, automaton, config.chunk_size, config.min_levels
  )


@pytest.mark.parametrize('encoding', ['one_hot', 'binary'])
@pytest.mark.parametrize('seed', range(6))
def test_random_automata_are_proved(seed, encoding):
  rng = np.random.default_rng(seed)
  automaton = tables.random_automaton(rng, 3, num_symbols=2)
  config, params = construction.compile_automaton(*automaton, encoding=encoding)
  assert _verdict(automaton, params, config).difference is None


def test_a_changed_model_is_proved_only_if_it_is_right():
  assert 0 < sum(map(_is_decided_as_the_model_does, range(6))) < 6


def _is_decided_as_the_model_does(seed):
  """Returns whether anything is proved, which all short strings agree with."""
  rng = np.random.default_rng(seed)
  automaton = tables.random_automaton(rng, 2, num_symbols=2)
  config, params = construction.compile_automaton(*automaton)
  block = params['params']['block_0']
  kernel = block[rng.choice(['ffn_in', 'ffn_out', 'value'])]['kernel']
  kernel[rng.integers(kernel.shape[0]), rng.integers(kernel.shape[1])] += 1
  verdict = _verdict(automaton, params, config)
  tokens = tables.all_strings(4)
  transitions, start, classes = automaton
  right = classes[tables.states(transitions, start, tokens)[:, -1]]
  apply = jax.jit(model.RegularGPT(config).apply)
  answers = apply(params, tokens).argmax(-1)
  if isinstance(verdict, closure.Leak):
    return False  # States that grow without end, say.
  if verdict.difference is None:
    np.testing.assert_array_equal(answers, right)
    return True
  string = np.array([verdict.difference])
  expected = classes[tables.states(transitions, start, string)[0, -1]]
  answer = int(apply(params, string).argmax(-1)[0])
  assert answer != expected
  return True


@pytest.mark.parametrize(
  ('path', 'value', 'message'),
  [
    ('query', 1.0, 'attention'),
    ('ffn_in', 0.5, 'whole'),
    ('readout', 2.0**25, 'too large'),
  ],
)
def test_what_might_be_rounded_is_refused(path, value, message):
  automaton = np.array([[0, 1], [1, 0]]), 0, np.array([0, 1])
  config, params = construction.compile_automaton(*automaton)
  block = params['params']['block_0']
  block['key']['kernel'][0, 0] = 1.0
  {**block, **params['params']}[path]['kernel'][0, 0] = value
  with pytest.raises(ValueError, match=message):
    exact.close(config, params, np.arange(2), 100)
