"""Tests of the JSON object of an automaton."""

import re

import hypothesis
import numpy as np
import pytest

from tasks.automata import fields as fields_lib
from tests import refusals
from tests.tasks import automata

FIELDS = automata.FIELDS
OUTPUTS = automata.OUTPUTS
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
    read = fields_lib.to_automaton(fields)
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
      ({'alphabet': ['a', '\ud800']}, 'half of a surrogate pair'),
      ({'outputs': OUTPUTS}, "one of the fields 'accepting' and 'outputs'"),
      (
        {'accepting': None, 'outputs': {'x': '0'}},
        "Unknown state 'x' in outputs",
      ),
      ({'accepting': None, 'outputs': {'odd': '0'}}, "'even' has no output"),
      ({'accepting': None, 'outputs': {'odd': 1}}, 'must be a string, got 1'),
      ({'accepting': None, 'outputs': ['0', '1']}, 'outputs must be an object'),
    ],
  )
  def test_bad_fields(self, changes, problem):
    fields = FIELDS | changes
    with refusals.one_line(re.escape(problem)):
      fields_lib.to_automaton(
        {k: v for k, v in fields.items() if v is not None}
      )

  @pytest.mark.parametrize('name', FIELDS)
  def test_missing_field(self, name):
    fields = {key: value for key, value in FIELDS.items() if key != name}
    with pytest.raises(ValueError, match=f"field '{name}' is missing"):
      fields_lib.to_automaton(fields)

  def test_outputs_are_classes_in_the_order_of_numbers(self):
    fields = {k: v for k, v in FIELDS.items() if k != 'accepting'}
    automaton = fields_lib.to_automaton(fields | {'outputs': OUTPUTS})
    assert automaton.outputs.tolist() == [1, 0]
