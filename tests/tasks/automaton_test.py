"""Tests of automata: reading, running, and sampling their languages."""

import fractions
import functools
import itertools
import json
import re

import jax
import numpy as np
import pytest
from scipy import stats

from tasks import task as task_lib
from tasks.regular import automaton as automaton_lib
from tasks.regular import cycle_navigation


def random_automaton(seed, num_states=5, num_symbols=2):
  rng = np.random.default_rng(seed)
  return automaton_lib.Automaton(
    'abcdefgh'[:num_symbols],
    rng.integers(num_states, size=(num_states, num_symbols)),
    rng.integers(num_states),
    np.arange(num_states) % 2 == 0,
  )


def run(automaton, symbols):
  state = automaton.start
  for symbol in symbols:
    state = int(automaton.transitions[state, symbol])
  return state


def accepts(automaton, symbols):
  return bool(automaton.accepting[run(automaton, symbols)])


def pad(tokens, width):
  padding = ((0, 0), (width - tokens.shape[1], 0))
  return np.pad(tokens, padding, constant_values=task_lib.NO_SYMBOL)


@functools.cache
def compiled(task, batch_size, width):
  """Tokens and answers by key and traced length."""

  def sample(key, length):
    tokens = task.sample_tokens(key, batch_size, length, width)
    return tokens, task.solve(tokens)

  return jax.jit(sample)


def sample(task, seed, batch_size, length, width):
  tokens, answers = compiled(task, batch_size, width)(
    jax.random.key(seed), length
  )
  tokens = np.asarray(tokens)
  assert (tokens[:, : width - length] == task_lib.NO_SYMBOL).all()
  return tokens[:, width - length :], np.asarray(answers)


def assert_uniform(tokens, strings):
  """Chi-square: are the rows of tokens uniform over the strings?"""
  number = {string: i for i, string in enumerate(strings)}
  counts = np.bincount(
    [number[tuple(row)] for row in tokens.tolist()], minlength=len(strings)
  )
  assert len(tokens) >= 10 * len(strings), 'the test needs a larger sample'
  if len(strings) > 1:
    assert stats.chisquare(counts).pvalue > 1e-4


# Few states, and dead ends, cycles, and lengths that admit one class only.
AUTOMATA = {
  **{f'random{seed}': random_automaton(seed) for seed in range(3)},
  'random3': random_automaton(3, num_symbols=3),
  # An a at odd lengths: positives are one string or half of all.
  'unbalanced': automaton_lib.from_regex('((a|b)(a|b))*|a*', 'ab'),
  'one_b': automaton_lib.from_regex('a*ba*', 'ab'),
  'one_symbol': automaton_lib.from_regex('(aaa)*', 'a'),
  'finite': automaton_lib.from_regex('ab|ba|aba', 'ab'),
}


class TestReading:
  def test_json_round_trip(self, tmp_path):
    for seed in range(5):
      automaton = random_automaton(seed, num_states=4, num_symbols=3)
      name = 'state {}'.format
      fields = {
        'alphabet': list(automaton.alphabet),
        'states': [name(q) for q in range(4)],
        'start': name(automaton.start),
        'accepting': [name(q) for q in np.flatnonzero(automaton.accepting)],
        'transitions': {
          name(q): {
            symbol: name(automaton.transitions[q, v])
            for v, symbol in reversed(list(enumerate(automaton.alphabet)))
          }
          for q in reversed(range(4))
        },
      }
      path = tmp_path / 'automaton.json'
      path.write_text(json.dumps(fields))
      for source in (path, str(path), fields):
        read = automaton_lib.from_json(source)
        assert read.alphabet == automaton.alphabet
        assert read.start == automaton.start
        np.testing.assert_array_equal(read.transitions, automaton.transitions)
        np.testing.assert_array_equal(read.accepting, automaton.accepting)

  @pytest.mark.parametrize(
    'regex',
    [
      '(ab)*',
      'a(ba)*|bb',
      '.*aa.*',
      '[^b]{2,3}b+',
      '(a|b)*a(a|b){2}',
      'a?b?c?|[bc]*',
      '()|a',
      'a|()',
      '(()|b)a',
      '(a(a(ab)*b)*b)*',
      'ab*c+',
    ],
  )
  def test_regex_has_the_language(self, regex):
    alphabet = 'abc' if 'c' in regex else 'ab'
    automaton = automaton_lib.from_regex(regex, alphabet)
    strings = [
      string
      for length in range(8)
      for string in itertools.product(range(len(alphabet)), repeat=length)
    ]
    expected = re.compile(regex)
    for string in strings:
      text = ''.join(alphabet[v] for v in string)
      assert accepts(automaton, string) == bool(expected.fullmatch(text)), text
    # Minimal: no two states have the same strings after them.
    futures = {
      tuple(
        bool(automaton.accepting[_run_from(automaton, q, string)])
        for string in strings[:200]
      )
      for q in range(len(automaton.accepting))
    }
    assert len(futures) == len(automaton.accepting)
    # Numbered breadth first.
    assert automaton.start == 0
    first_met = list(dict.fromkeys([0, *automaton.transitions.flat]))
    assert first_met == list(range(len(automaton.accepting)))

  @pytest.mark.parametrize(
    ('regex', 'position', 'problem'),
    [
      ('(ab', 0, 'never closed'),
      ('(a)((b)', 3, 'never closed'),
      ('ab)', 2, 'closes nothing'),
      ('a]', 1, 'closes nothing'),
      ('a}', 1, 'closes nothing'),
      ('a|', 1, 'nothing to its right'),
      ('(a&)b', 2, 'nothing to its right'),
      ('|a', 0, 'nothing to its left'),
      ('a|^b', 2, 'nothing to its left'),
      ('(|a)', 1, 'nothing to its left'),
      ('*a', 0, 'nothing to repeat'),
      ('a|+', 2, 'nothing to repeat'),
      ('a(?)', 2, 'nothing to repeat'),
      ('{2}', 0, 'nothing to repeat'),
      ('a{2', 1, 'repetition'),
      ('a{x}', 1, 'repetition'),
      ('a{}', 1, 'repetition'),
      ('a{3,2}', 1, 'wrong order'),
      ('a[b', 1, 'list of symbols'),
      ('a[]', 1, 'list of symbols'),
      ('aac', 2, "'c' is not in the alphabet a, b"),
      ('a b', 1, "' ' is not in the alphabet"),
      ('a[bc]', 3, "'c' is not in the alphabet"),
      ('a[^a-b]', 4, "'-' is not in the alphabet"),
      (r'a\w', 1, 'not in the alphabet'),
    ],
  )
  def test_regex_errors_say_where(self, regex, position, problem):
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
      automaton_lib.from_regex(regex, 'ab')
    assert f'position {position}:' in str(error.value)
    assert repr(regex) in str(error.value)

  def test_regexes_parse_or_say_where_they_do_not(self):
    rng = np.random.default_rng(0)
    num_parsed = 0
    for _ in range(400):
      characters = rng.choice(list('aaabbb()()|*+?.&[]^{}2,c'), rng.integers(9))
      regex = ''.join(characters)
      try:
        automaton = automaton_lib.from_regex(regex, 'ab')
      except ValueError as error:
        assert re.search('position|nothing to learn', str(error)), regex
      else:
        num_parsed += 1
        assert automaton.transitions.shape[1] == 2
    assert num_parsed > 20

  @pytest.mark.parametrize(
    'regex', ['', '()', '(a|b)*', 'a&b', '.+', '.*a.*|b*']
  )
  def test_nothing_to_learn(self, regex):
    with pytest.raises(ValueError, match='nothing to learn'):
      automaton_lib.from_regex(regex, 'ab')

  def test_membership_needs_something_to_learn(self):
    for accepting in ([0, 0, 1], [1, 1, 0], [1, 0, 0]):
      # State 2 is never reached, and state 0 never again.
      automaton = automaton_lib.Automaton(
        'ab', [[1, 1], [1, 1], [0, 1]], 0, accepting
      )
      with pytest.raises(ValueError, match='nothing to learn'):
        automaton_lib.AutomatonTask(automaton)
      automaton_lib.AutomatonTask(automaton, target='state')

  @pytest.mark.parametrize(
    'alphabet', ['aa', '', ['ab', 'c'], 'a(', 'a ', 'a\\']
  )
  def test_bad_alphabets(self, alphabet):
    with pytest.raises(ValueError, match=r'(?i)symbol'):
      automaton_lib.from_regex('a', alphabet)

  def test_unknown_target(self):
    with pytest.raises(ValueError, match="'membership' or 'state', got 'x'"):
      automaton_lib.AutomatonTask(random_automaton(0), target='x')

  @pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
      (('ab', [[0, 1]], 0, [True]), r'State 1 is not in \[0, 1\)'),
      (('ab', [[0, -1]], 0, [True]), 'State -1 is not in'),
      (('ab', [[0, 0]], 1, [True]), 'State 1 is not in'),
      (('ab', [[0], [0]], 0, [True]), 'transitions must have shape'),
      (('ab', [[0, 0]], 0, [True, False]), 'accepting must have shape'),
      (('aa', [[0, 0]], 0, [True]), "Duplicate symbol 'a'"),
      (('', [[]], 0, [True]), 'at least one symbol'),
    ],
  )
  def test_bad_arrays(self, arguments, problem):
    with pytest.raises(ValueError, match=problem):
      automaton_lib.Automaton(*arguments)


def _run_from(automaton, state, symbols):
  for symbol in symbols:
    state = int(automaton.transitions[state, symbol])
  return state


FIELDS = {
  'alphabet': ['a', 'b'],
  'states': ['even', 'odd'],
  'start': 'even',
  'accepting': ['odd'],
  'transitions': {
    'even': {'a': 'odd', 'b': 'even'},
    'odd': {'a': 'even', 'b': 'odd'},
  },
}
EVEN = FIELDS['transitions']['even']


class TestJsonErrors:
  @pytest.mark.parametrize(
    ('changes', 'problem'),
    [
      ({'start': 'x'}, "Unknown state 'x' in start"),
      ({'start': 3}, 'Unknown state 3 in start'),
      ({'accepting': ['odd', 'x']}, "Unknown state 'x' in accepting"),
      ({'accepting': 'odd'}, "accepting must be a list of strings, got 'odd'"),
      ({'states': ['even']}, "Unknown state 'odd'"),
      ({'states': ['even', 'odd', 'odd']}, "Duplicate state 'odd'"),
      ({'states': ['even', 'odd', 'x']}, "'x' has no transition for symbol"),
      ({'states': []}, 'at least one state'),
      ({'alphabet': ['a', 'b', 'a']}, "Duplicate symbol 'a'"),
      ({'alphabet': ['a', 1]}, 'alphabet must be a list of strings, it has 1'),
      (
        {'alphabet': ['a', 'b', 'c']},
        "'even' has no transition for symbol 'c'",
      ),
      ({'alphabet': ['a']}, "Symbol 'b' in the transitions of state 'even'"),
      ({'alphabet': []}, 'at least one symbol'),
      (
        {'transitions': {'even': EVEN}},
        "'odd' has no transition for symbol 'a'",
      ),
      (
        {'transitions': {'even': EVEN, 'odd': {'a': 'odd'}}},
        "State 'odd' has no transition for symbol 'b'",
      ),
      (
        {'transitions': {'even': EVEN, 'odd': {'a': 'odd', 'b': 'x'}}},
        "Unknown state 'x' in the transitions of state 'odd'",
      ),
      (
        {'transitions': {'even': EVEN, 'odd': EVEN, 'x': EVEN}},
        "Unknown state 'x' in transitions",
      ),
      ({'transitions': [[0, 1], [1, 0]]}, 'transitions must be an object'),
      (
        {'transitions': {'even': EVEN, 'odd': ['even', 'odd']}},
        "transitions of 'odd' must be an object",
      ),
      ({'colour': 'red'}, "Unknown field 'colour'"),
    ],
  )
  def test_bad_fields(self, changes, problem, tmp_path):
    fields = FIELDS | changes
    path = tmp_path / 'automaton.json'
    path.write_text(json.dumps(fields))
    for source in (fields, path):
      with pytest.raises(ValueError, match=re.escape(problem)) as error:
        automaton_lib.from_json(source)
      assert '\n' not in str(error.value)
    assert str(path) in str(error.value)

  @pytest.mark.parametrize('name', FIELDS)
  def test_missing_field(self, name):
    fields = {key: value for key, value in FIELDS.items() if key != name}
    with pytest.raises(ValueError, match=f"field '{name}' is missing"):
      automaton_lib.from_json(fields)

  @pytest.mark.parametrize(
    ('text', 'problem'),
    [
      ('{"alphabet": [', 'not valid JSON.*line 1 column'),
      ('', 'not valid JSON'),
      ('[1, 2]', 'expected one JSON object'),
      ('{"start": "a", "start": "b"}', "Duplicate key 'start'"),
      ('{}', "field 'alphabet' is missing"),
      (b'\xff\xfe\x00', 'not text in UTF-8'),
    ],
  )
  def test_bad_files(self, text, problem, tmp_path):
    path = tmp_path / 'automaton.json'
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=problem) as error:
      automaton_lib.from_json(path)
    assert str(path) in str(error.value)
    assert '\n' not in str(error.value)

  def test_unreadable_files(self, tmp_path):
    for path in (tmp_path / 'absent.json', tmp_path):
      with pytest.raises(ValueError, match='Cannot read') as error:
        automaton_lib.from_json(path)
      assert str(path) in str(error.value)


class TestRunning:
  # 128 states are the most whose maps are stored in a byte.
  @pytest.mark.parametrize('num_states', [1, 5, 128, 129, 300])
  def test_states_are_those_of_reading_symbol_by_symbol(self, num_states):
    automaton = random_automaton(num_states, num_states, num_symbols=3)
    rng = np.random.default_rng(0)
    for length, width in ((1, 1), (1, 20), (2, 20), (13, 13), (13, 20)):
      tokens = rng.integers(3, size=(20, length))
      expected = [run(automaton, row) for row in tokens]
      states = automaton_lib.final_states(automaton, pad(tokens, width))
      np.testing.assert_array_equal(states, expected)
      assert states.dtype == np.int32

  def test_cycle_navigation_is_the_states_of_a_cycle(self):
    place = np.arange(5)
    cycle = automaton_lib.Automaton(
      '-0+',
      np.stack([(place + step) % 5 for step in (-1, 0, 1)], axis=-1),
      start=0,
      accepting=place == 0,
    )
    task = automaton_lib.AutomatonTask(cycle, target='state')
    original = cycle_navigation.CycleNavigation()
    assert task.input_size == original.input_size
    assert task.output_size == original.output_size
    for length in (1, 6, 20):
      tokens, answers = sample(task, length, 64, length, 20)
      np.testing.assert_array_equal(answers, original.solve(tokens))

  def test_state_task_samples_uniform_strings(self):
    task = automaton_lib.AutomatonTask(random_automaton(0), target='state')
    tokens, _ = sample(task, 0, 4096, 6, 10)
    assert_uniform(tokens, list(itertools.product(range(2), repeat=6)))


class TestSampling:
  @pytest.mark.parametrize('name', AUTOMATA)
  def test_classes_are_balanced_and_uniform(self, name):
    automaton = AUTOMATA[name]
    task = automaton_lib.AutomatonTask(automaton)
    num_symbols = len(automaton.alphabet)
    for length in range(1, 7 if num_symbols < 3 else 5):
      strings = {False: [], True: []}
      for string in itertools.product(range(num_symbols), repeat=length):
        strings[accepts(automaton, string)].append(string)
      tokens, answers = sample(task, length, 4096, length, 10)
      share = 0.5 if all(strings.values()) else float(bool(strings[True]))
      assert np.mean(answers) == share
      for answer in (False, True):
        if strings[answer]:
          assert_uniform(tokens[answers == answer], strings[answer])

  @pytest.mark.parametrize('name', AUTOMATA)
  def test_probabilities_are_exact_at_any_length(self, name):
    automaton = AUTOMATA[name]
    width, num_states = 1500, len(automaton.accepting)
    thresholds, exists = automaton_lib.uniform_walk(automaton, width)
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
    task = automaton_lib.AutomatonTask(AUTOMATA[name])
    width = 10_000
    for length in (500, 9_999, 10_000):
      tokens, answers = sample(task, 0, 64, length, width)
      assert tokens.min() >= 0
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
    task = automaton_lib.AutomatonTask(AUTOMATA['random3'], target)
    for length in (1, 7):
      narrow, wide = (
        sample(task, 5, 4096, length, width)[0] for width in (7, 10)
      )
      np.testing.assert_array_equal(narrow, wide)

  def test_keys_matter(self):
    task = automaton_lib.AutomatonTask(AUTOMATA['random3'])
    a, b = (sample(task, seed, 4096, 7, 10)[0] for seed in (0, 1))
    assert (a != b).any()
