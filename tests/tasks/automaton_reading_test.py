"""Tests of reading automata, from JSON and from regular expressions."""

import itertools
import re

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from tasks.regular import automaton_reading
from tests.tasks import automata

# Expressions that automata-lib and Python read alike.
_REGEXES = st.recursive(
  st.sampled_from(['a', 'b', '.', '()', '[a]', '[^a]']),
  lambda parts: st.builds(
    str.format,
    st.sampled_from(
      ['{}{}', '({}|{})', '({})*', '({})+', '({})?', '({}){{2}}']
    ),
    parts,
    parts,
  ),
  max_leaves=6,
)


class TestRegex:
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
    automaton = automaton_reading.from_regex(regex, alphabet)
    strings = [
      string
      for length in range(8)
      for string in itertools.product(range(len(alphabet)), repeat=length)
    ]
    expected = re.compile(regex)
    for string in strings:
      text = ''.join(alphabet[v] for v in string)
      assert automata.accepts(automaton, string) == bool(
        expected.fullmatch(text)
      ), text
    # Minimal: no two states have the same strings after them.
    futures = {
      tuple(
        bool(automaton.accepting[automata.run(automaton, string, q)])
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
      ('a{0}b', 1, 'repeats nothing'),
      ('(ab){0,0}', 4, 'repeats nothing'),
      ('a{99999999}', 1, 'more than 1000'),
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
      automaton_reading.from_regex(regex, 'ab')
    assert f'position {position}:' in str(error.value)
    assert repr(regex) in str(error.value)

  @pytest.mark.parametrize(
    'regex', ['', '()', '(a|b)*', 'a&b', '.+', '.*a.*|b*']
  )
  def test_nothing_to_learn(self, regex):
    with pytest.raises(ValueError, match='nothing to learn'):
      automaton_reading.from_regex(regex, 'ab')

  @pytest.mark.parametrize(
    'alphabet', ['aa', '', ['ab', 'c'], 'a(', 'a ', 'a\\']
  )
  def test_bad_alphabets(self, alphabet):
    with pytest.raises(ValueError, match=r'(?i)symbol'):
      automaton_reading.from_regex('a', alphabet)

  @hypothesis.given(_REGEXES)
  @hypothesis.settings(max_examples=200)
  def test_any_regex_has_the_language(self, regex):
    expected = {
      string: bool(re.fullmatch(regex, ''.join('ab'[v] for v in string)))
      for length in range(1, 7)
      for string in itertools.product(range(2), repeat=length)
    }
    try:
      automaton = automaton_reading.from_regex(regex, 'ab')
    except ValueError as error:
      assert 'nothing to learn' in str(error)
      assert len(set(expected.values())) == 1
    else:
      for string, answer in expected.items():
        assert automata.accepts(automaton, string) == answer, string

  @hypothesis.given(
    st.text('aaabbb()()|*+?.&[]^{}2,c', max_size=8) | _REGEXES, st.data()
  )
  @hypothesis.settings(max_examples=400)
  def test_regexes_parse_or_say_where_they_do_not(self, regex, data):
    # Some are nearly right.
    if regex and data.draw(st.booleans()):
      place = data.draw(st.integers(0, len(regex) - 1))
      regex = regex[:place] + regex[place + 1 :]
    try:
      automaton = automaton_reading.from_regex(regex, 'ab')
    except ValueError as error:
      assert re.search('position|nothing to learn', str(error))
    else:
      assert automaton.transitions.shape[1] == 2


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


class TestJson:
  @hypothesis.given(automata.automata(num_states=4))
  def test_round_trip(self, automaton):
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
    read = automaton_reading.from_json(fields)
    assert read.alphabet == automaton.alphabet
    assert read.start == automaton.start
    np.testing.assert_array_equal(read.transitions, automaton.transitions)
    np.testing.assert_array_equal(read.accepting, automaton.accepting)

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
  def test_bad_fields(self, changes, problem):
    with pytest.raises(ValueError, match=re.escape(problem)) as error:
      automaton_reading.from_json(FIELDS | changes)
    assert '\n' not in str(error.value)

  @pytest.mark.parametrize('name', FIELDS)
  def test_missing_field(self, name):
    fields = {key: value for key, value in FIELDS.items() if key != name}
    with pytest.raises(ValueError, match=f"field '{name}' is missing"):
      automaton_reading.from_json(fields)
