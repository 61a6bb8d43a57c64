"""Tests of automata: running them, and sampling their languages."""

import fractions
import itertools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import stats

from tasks.automata import automaton as automaton_lib
from tasks.automata import regex
from tasks.regular import (
  automaton_task,
  cycle_navigation,
  random_walk,
)
from tests.tasks import automata, checks


def random_automaton(seed, num_states=5, num_symbols=2):
  rng = np.random.default_rng(seed)
  return automaton_lib.Automaton(
    'abcdefgh'[:num_symbols],
    rng.integers(num_states, size=(num_states, num_symbols)),
    rng.integers(num_states),
    np.arange(num_states) % 2 == 0,
  )


def sample(task, seed, length, width, batch_size):
  """Returns strings [B, length] and answers."""
  tokens = checks.sample(task, seed, length, width, batch_size)
  return checks.unpadded(tokens, length), checks.solve(task, tokens)


# Few states, and dead ends, cycles, and lengths that admit one class only.
AUTOMATA = {
  **{f'random{seed}': random_automaton(seed) for seed in range(3)},
  'random3': random_automaton(3, num_symbols=3),
  # An a at odd lengths: positives are one string or half of all.
  'unbalanced': regex.from_regex('((a|b)(a|b))*|a*', 'ab'),
  'one_b': regex.from_regex('a*ba*', 'ab'),
  'one_symbol': regex.from_regex('(aaa)*', 'a'),
  'finite': regex.from_regex('ab|ba|aba', 'ab'),
}


class TestArguments:
  def test_membership_needs_something_to_learn(self):
    for accepting in ([0, 0, 1], [1, 1, 0], [1, 0, 0]):
      # State 2 is never reached, and state 0 never again.
      automaton = automaton_lib.Automaton(
        'ab', [[1, 1], [1, 1], [0, 1]], 0, accepting
      )
      with pytest.raises(ValueError, match='nothing to learn'):
        automaton_task.AutomatonTask(automaton)
      automaton_task.AutomatonTask(automaton, target='state')

  def test_unknown_target(self):
    with pytest.raises(ValueError, match="'membership' or 'state', got 'x'"):
      automaton_task.AutomatonTask(random_automaton(0), target='x')

  @pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
      (('ab', [[0, 1]], 0, [True]), r'State 1 is not in \[0, 1\)'),
      (('ab', [[0, -1]], 0, [True]), 'State -1 is not in'),
      (('ab', [[0, 0]], 1, [True]), 'State 1 is not in'),
      (('ab', [[0], [0]], 0, [True]), 'transitions must have shape'),
      (('ab', [[0, 0]], 0, [True, False]), 'outputs must have shape'),
      (('ab', [[0, 0]], 0, [-1]), 'classes from 0, got -1'),
      (('aa', [[0, 0]], 0, [True]), "Duplicate symbol 'a'"),
      (('', [[]], 0, [True]), 'at least one symbol'),
    ],
  )
  def test_bad_arrays(self, arguments, problem):
    with pytest.raises(ValueError, match=problem):
      automaton_lib.Automaton(*arguments)


class TestRunning:
  @hypothesis.given(automata.automata(), st.data())
  def test_states_are_those_of_reading_symbol_by_symbol(self, automaton, data):
    string = st.lists(st.integers(0, 2), min_size=1, max_size=20)
    strings = data.draw(st.lists(string, min_size=4, max_size=4))
    tokens = checks.right_aligned(strings, 20)
    states = automaton_lib.final_states(automaton, tokens)
    assert states.dtype == np.int32
    assert states.tolist() == [automata.run(automaton, s) for s in strings]

  # 128 states are the most whose maps are stored in a byte, 256 the most that
  # have maps.
  @pytest.mark.parametrize('num_states', [1, 128, 129, 256, 257])
  def test_any_number_of_states(self, num_states):
    automaton = random_automaton(num_states, num_states, num_symbols=3)
    tokens = np.random.default_rng(0).integers(3, size=(20, 13))
    states = automaton_lib.final_states(automaton, tokens)
    assert states.tolist() == [automata.run(automaton, row) for row in tokens]

  def test_cycle_navigation_is_the_states_of_a_cycle(self):
    place = np.arange(5)
    cycle = automaton_lib.Automaton(
      '-0+',
      np.stack([(place + step) % 5 for step in (-1, 0, 1)], axis=-1),
      start=0,
      outputs=place == 0,
    )
    task = automaton_task.AutomatonTask(cycle, target='state')
    original = cycle_navigation.CycleNavigation()
    assert task.input_size == original.input_size
    assert task.output_size == original.output_size
    for length in (1, 6, 20):
      tokens, answers = sample(task, length, length, 20, 64)
      np.testing.assert_array_equal(answers, original.solve(tokens))

  def test_state_task_samples_uniform_strings(self):
    task = automaton_task.AutomatonTask(random_automaton(0), target='state')
    tokens, _ = sample(task, 0, 6, 10, 4096)
    checks.assert_fits(
      map(tuple, tokens.tolist()),
      checks.uniform_over(itertools.product(range(2), repeat=6)),
    )


class TestSampling:
  @pytest.mark.parametrize('name', AUTOMATA)
  def test_classes_are_balanced_and_uniform(self, name):
    automaton = AUTOMATA[name]
    task = automaton_task.AutomatonTask(automaton)
    num_symbols = len(automaton.alphabet)
    for length in range(1, 7 if num_symbols < 3 else 5):
      strings = {False: [], True: []}
      for string in itertools.product(range(num_symbols), repeat=length):
        strings[automata.accepts(automaton, string)].append(string)
      tokens, answers = sample(task, length, length, 10, 4096)
      share = 0.5 if all(strings.values()) else float(bool(strings[True]))
      assert np.mean(answers) == share
      for answer in (False, True):
        if strings[answer]:
          checks.assert_fits(
            map(tuple, tokens[answers == answer].tolist()),
            checks.uniform_over(strings[answer]),
          )

  def test_many_classes_take_turns(self):
    # Answers 0 to 3, of which 2 is at no even length and 3 is reached never.
    automaton = automaton_lib.Automaton(
      'ab', [[1, 1], [0, 2], [1, 1], [3, 3]], 0, [0, 2, 1, 3]
    )
    task = automaton_task.AutomatonTask(automaton)
    assert task.output_size == 4
    assert task.machine.outputs.tolist() == [0, 2, 1, 3]
    for length, classes in ((1, [2]), (2, [1, 0]), (4, [1, 0])):
      tokens, answers = sample(task, length, length, 10, 4096)
      assert answers[:4].tolist() == (classes * 4)[:4]
      strings = {c: [] for c in classes}
      for string in itertools.product(range(2), repeat=length):
        state = automata.run(automaton, string)
        strings[int(automaton.outputs[state])].append(string)
      for c in classes:
        checks.assert_fits(
          map(tuple, tokens[answers == c].tolist()),
          checks.uniform_over(strings[c]),
        )
    checks.assert_independent_of_width(task, 4, width=10)
    with pytest.raises(ValueError, match='has the answer 2'):
      automaton_task.AutomatonTask(
        automaton_lib.Automaton('a', [[0], [1], [1]], 0, [2, 1, 0])
      )

  @pytest.mark.parametrize('name', AUTOMATA)
  def test_probabilities_are_exact_at_any_length(self, name):
    automaton = AUTOMATA[name]
    width, num_states = 1500, len(automaton.accepting)
    thresholds, exists = random_walk.uniform_walk(automaton, width)
    for answer in (0, 1):
      ways = [int(a == answer) for a in automaton.accepting]
      for e in range(width):
        after = [[ways[q] for q in row] for row in automaton.transitions]
        ways = [sum(row) for row in after]
        assert exists[answer, e + 1] == (ways[automaton.start] > 0)
        if e % 61 and e > 10:
          continue
        for q in range(num_states):
          for v in range(len(automaton.alphabet) - 1):
            if ways[q]:
              exact = fractions.Fraction(sum(after[q][: v + 1]), ways[q])
              got = int(thresholds[e, answer * num_states + q, v])
              assert abs(exact * 2**31 - got) <= 1
              # What can't be never is, and what must be always is.
              assert exact != 0 or got == 0
              assert exact != 1 or got == 2**31

  @pytest.mark.parametrize('name', ['random1', 'unbalanced', 'one_b', 'finite'])
  def test_long_strings_have_the_labels_asked_for(self, name):
    task = automaton_task.AutomatonTask(AUTOMATA[name])
    width = 10_000
    for length in (500, 9_999, 10_000):
      tokens, answers = sample(task, 0, length, width, 64)
      assert tokens.max() <= 1
      wanted = task.wanted_classes(64, length, width)
      np.testing.assert_array_equal(answers, wanted)
      assert name != 'random1' or np.mean(answers) == 0.5
      if name == 'unbalanced' and length % 2:
        assert (tokens[answers == 1] == 0).all()
      if name == 'one_b':
        place = tokens[answers == 1].argmax(-1) / length
        assert stats.kstest(place, 'uniform').pvalue > 1e-4

  @pytest.mark.parametrize('target', ['membership', 'state'])
  def test_strings_do_not_depend_on_the_width(self, target):
    task = automaton_task.AutomatonTask(AUTOMATA['random3'], target)
    for length in (1, 7):
      checks.assert_independent_of_width(task, length, width=10)

  def test_a_table_that_does_not_fit_is_refused(self):
    with pytest.raises(ValueError, match='a table of 4,000,000,000 prob'):
      random_walk.uniform_walk(random_automaton(0, num_states=1000), 1_000_000)

  def test_keys_matter(self):
    task = automaton_task.AutomatonTask(AUTOMATA['random3'])
    checks.assert_changes_with_the_key(task)
