"""Minimal automata have the same answers, and no state too many."""

import itertools

from automata.fa import dfa
import numpy as np
import pytest

from regulargpt_jax.construction import minimization
from tests.regulargpt_jax.construction import tables

STRINGS = tables.all_strings(7)


def num_states_by_a_library(transitions, start, is_accepting):
  """For acceptors."""
  numbers = range(len(transitions))
  acceptor = dfa.DFA(
    states=set(numbers),
    input_symbols={'a', 'b'},
    transitions={
      q: dict(zip('ab', transitions[q].tolist(), strict=True)) for q in numbers
    },
    initial_state=int(start),
    final_states={q for q in numbers if is_accepting[q]},
  )
  return len(acceptor.minify().states)


def answers(transitions, start, classes, tokens=STRINGS):
  return classes[tables.states(transitions, start, tokens)[:, -1]]


def test_every_small_automaton_keeps_its_answers():
  for num_states in (1, 2, 3):
    for table in tables.all_tables(num_states):
      classes = np.arange(num_states) % 2
      small = minimization.minimal(table, num_states - 1, classes)
      assert len(small[0]) <= num_states
      np.testing.assert_array_equal(
        answers(*small), answers(table, num_states - 1, classes)
      )


@pytest.mark.parametrize('num_states', [2, 4, 9])
def test_as_few_states_as_a_library_finds(num_states):
  rng = np.random.default_rng(num_states)
  for _ in range(100):
    automaton = tables.random_automaton(rng, num_states)
    expected = num_states_by_a_library(*automaton)
    assert len(minimization.minimal(*automaton)[0]) == expected


def test_equivalent_automata_give_the_same_arrays():
  rng = np.random.default_rng(0)
  for _ in range(50):
    table, start, classes = tables.random_automaton(rng, 6, num_classes=3)
    # Two copies of each state, mixed up.
    copies = np.concatenate([table, table]) + 6 * rng.integers(2, size=(12, 2))
    order = rng.permutation(12)
    number = np.argsort(order)
    double = (
      number[copies[order]],
      number[start],
      np.concatenate([classes, classes])[order],
    )
    small = minimization.minimal(table, start, classes)
    for a, b in zip(minimization.minimal(*double), small, strict=True):
      np.testing.assert_array_equal(a, b)


def test_states_are_numbered_breadth_first():
  table, start, classes = minimization.minimal(
    np.array([[0, 1], [2, 1], [0, 2]]), 2, np.array([5, 6, 7])
  )
  assert start == 0
  assert classes.tolist() == [7, 5, 6]
  reached = list(dict.fromkeys(itertools.chain([0], table.flat)))
  assert reached == [0, 1, 2]
