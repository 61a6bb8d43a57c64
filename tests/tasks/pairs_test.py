"""Pairs at edit distance 1: all, each equally often, rightly labelled."""

import itertools
import math

import hypothesis
import numpy as np
import pytest

from tasks.automata import regex
from tasks.regular import (
  cycle_navigation,
  d_n,
  pairs,
  parity_check,
  regular_task,
)
from tests.tasks import automata, checks


def _machine(automaton):
  return regular_task.make_machine(
    automaton.transitions, automaton.start, automaton.outputs
  )


def _answer(machine, string):
  state = machine.start
  for symbol in string:
    state = int(machine.transitions[state, symbol])
  return int(machine.outputs[state])


def _neighbours(string, num_symbols):
  """Returns the strings at edit distance 1, by the definition."""
  found = set()
  for i in range(len(string) + 1):
    for v in range(num_symbols):
      found.add((*string[:i], v, *string[i:]))
      found.add((*string[:i], v, *string[i + 1 :]))
    found.add((*string[:i], *string[i + 1 :]))
  return {s for s in found if s != string and len(s) <= len(string) + 1}


def _all_pairs(machine, length):
  """Returns all pairs whose longer string has a length."""
  num_symbols = machine.transitions.shape[1]
  found = []
  for n in (length - 1, length):
    for first in itertools.product(range(num_symbols), repeat=n):
      for second in _neighbours(first, num_symbols):
        if (
          max(n, len(second)) == length
          and min(n, len(second)) > 0
          and _answer(machine, first) > _answer(machine, second)
        ):
          found.append((first, second))
  return found


def _of_tokens(tokens):
  return tuple(checks.string_of(row) for row in tokens)


_MACHINES = {
  'ones': _machine(regex.from_regex('1*', '01')),
  'pairs': _machine(regex.from_regex('(01)*', '01')),
  'runs': _machine(regex.from_regex('(a|b)*aab(a|c)*', 'abc')),
  'one_symbol': _machine(regex.from_regex('(aaa)*', 'a')),
  'finite': _machine(regex.from_regex('ab|ba|aba', 'ab')),
  'parity': parity_check.ParityCheck().machine,
  'd_2': d_n.BUILDERS['d_2']().machine,
  # Five classes.
  'cycle': cycle_navigation.CycleNavigation().machine,
}


@pytest.mark.parametrize('name', _MACHINES)
def test_every_pair_comes_equally_often(name):
  machine = _MACHINES[name]
  sampler = pairs.PairSampler(machine, 5)
  for length in range(1, 6 if machine.transitions.shape[1] < 3 else 5):
    expected = _all_pairs(machine, length)
    count = math.exp(sampler.log_count(length))
    assert round(count, 6) == len(expected) == len(set(expected))
    drawn = sampler.sample(length, [length], 4096).get(length)
    assert (drawn is None) == (not expected)
    if expected:
      checks.assert_fits(
        map(_of_tokens, drawn.tokens), checks.uniform_over(expected)
      )


@hypothesis.given(automata.automata(num_states=4, num_symbols=2))
@hypothesis.settings(max_examples=40, deadline=None)
def test_counts_and_labels_of_any_automaton(automaton):
  machine = _machine(automaton)
  sampler = pairs.PairSampler(machine, 7)
  for length in (1, 2, 4):
    count = math.exp(sampler.log_count(length))
    assert round(count, 6) == len(_all_pairs(machine, length))
  for length, drawn in sampler.sample(0, range(1, 8), 8).items():
    for tokens, answers in zip(drawn.tokens, drawn.answers, strict=True):
      first, second = _of_tokens(tokens)
      assert answers.tolist() == [
        _answer(machine, first),
        _answer(machine, second),
      ]
      assert answers[0] > answers[1]
      assert second in _neighbours(first, 2)
      assert max(len(first), len(second)) == length
      assert min(len(first), len(second)) > 0


def _exact_count(machine, length):
  """Returns the number of pairs by whole numbers, strings read as pairs.

  From left to right, with the kind of what came before: nothing edited, edited,
  or a gap, behind which a symbol may not come.
  """
  after = machine.transitions.tolist()
  symbols = range(len(after[0]))
  ways = {(machine.start, machine.start, 'before', None): 1}
  for _ in range(length):
    new = {}

    def add(key, number, new=new):
      new[key] = new.get(key, 0) + number

    for (p, q, kind, closed), number in ways.items():
      for v in symbols:
        if v != closed:
          then = 'after' if kind == 'gap' else kind
          add((after[p][v], after[q][v], then, None), number)
        if kind == 'before':
          add((p, after[q][v], 'gap', v), number)
          add((after[p][v], q, 'gap', v), number)
          for u in symbols:
            if u != v:
              add((after[p][v], after[q][u], 'after', None), number)
    ways = new
  return sum(
    number
    for (p, q, kind, _), number in ways.items()
    if kind != 'before' and machine.outputs[p] > machine.outputs[q]
  )


@pytest.mark.parametrize('name', ['pairs', 'runs', 'parity', 'd_2'])
def test_counts_of_long_strings_are_exact(name):
  machine = _MACHINES[name]
  sampler = pairs.PairSampler(machine, 600)
  for length in (4, 37, 600):
    exact = _exact_count(machine, length)
    assert math.isclose(
      sampler.log_count(length), math.log(exact), rel_tol=1e-12
    )
  drawn = sampler.sample(0, [599, 600], 4)
  assert drawn[600].tokens.shape == (4, 2, 600)
  assert (drawn[599].answers == [1, 0]).all()


def test_pairs_depend_on_seed_and_length_alone():
  sampler = pairs.PairSampler(_MACHINES['runs'], 9)
  longer = pairs.PairSampler(_MACHINES['runs'], 20)
  many = sampler.sample(3, [2, 7, 9], 5)
  np.testing.assert_array_equal(
    many[7].tokens, longer.sample(3, [7], 5)[7].tokens
  )
  assert (sampler.sample(4, [7], 5)[7].tokens != many[7].tokens).any()


def test_what_takes_too_long_is_refused():
  rng = np.random.default_rng(0)
  machine = regular_task.make_machine(
    rng.integers(3000, size=(3000, 2)), 0, np.arange(3000) % 2
  )
  with pytest.raises(ValueError, match='up to 500 symbols that an automa'):
    pairs.PairSampler(machine, 500)
