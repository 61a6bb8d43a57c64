"""Tests of completing automata, and of writing what is read."""

import itertools

from aalpy.utils import FileHandler
from automata.fa import dfa, nfa
import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from tasks.automata import att, completion, description, reading, writing
from tasks.automata import fields as fields_lib
from tasks.regular import automaton_task
from tests.tasks import automata


@st.composite
def descriptions(draw):
  """Draws automata with gaps and choices."""
  states = ['p', 'q', 'r', 's'][: draw(st.integers(1, 4))]
  state = st.sampled_from(states)
  edge = st.builds(
    description.Edge, state, st.sampled_from(['a', 'b', None]), state
  )
  return description.Description(
    ['a', 'b'],
    states,
    draw(st.lists(state, min_size=1, max_size=2)),
    draw(st.lists(edge, max_size=10)),
    draw(st.lists(state, max_size=3)),
  )


@hypothesis.given(descriptions())
@hypothesis.settings(max_examples=60)
def test_completion_keeps_the_language(says):
  """The oracle is another library."""
  table = {state: {} for state in says.states} | {
    'start': {'': set(says.starts)}
  }
  for source, symbol, target in says.edges:
    table[source].setdefault(symbol or '', set()).add(target)
  expected = nfa.NFA(
    states=set(table),
    input_symbols={'a', 'b'},
    transitions=table,
    initial_state='start',
    final_states=set(says.accepting),
  )
  found, notes = completion.complete(says)
  automaton = fields_lib.to_automaton(found)
  for length in range(5):
    for string in itertools.product(range(2), repeat=length):
      text = ''.join('ab'[v] for v in string)
      assert automata.accepts(automaton, string) == expected.accepts_input(text)
  small = fields_lib.minimized(found)
  minimal = dfa.DFA.from_nfa(expected, minify=True).to_complete()
  assert len(small['states']) == len(minimal.states)
  if any('nondeterministic' in note for note in notes):
    assert len(found['states']) == len(small['states'])


_NAMES = st.lists(
  st.text(
    st.characters(codec='utf-8', exclude_characters='\0'),
    min_size=1,
    max_size=3,
  )
  .map(str.strip)
  .filter(bool),
  min_size=2,
  max_size=4,
  unique=True,
)


@hypothesis.given(_NAMES, _NAMES, _NAMES, st.data())
@hypothesis.settings(max_examples=60)
def test_what_is_written_is_read(states, alphabet, outputs, data):
  index = st.integers(0, len(states) - 1)
  size = len(states) * len(alphabet)
  table = np.reshape(
    data.draw(st.lists(index, min_size=size, max_size=size)), (len(states), -1)
  )
  of_state = [data.draw(st.sampled_from(outputs)) for _ in states]
  is_end = data.draw(st.lists(st.booleans(), min_size=1, max_size=1)) + [
    True
  ] * (len(states) - 1)
  has_outputs = len(set(of_state)) > 2
  fields = fields_lib.from_arrays(
    alphabet, states, table, 0, is_end, of_state if has_outputs else None
  )
  assert fields_lib.describe(fields_lib.parse(writing.to_json(fields))) == (
    fields_lib.describe(fields)
  )
  again, notes = completion.complete(
    reading.FORMATS['.dot'](writing.to_dot(fields))
  )
  assert not notes
  order = [again['alphabet'].index(symbol) for symbol in alphabet]
  read = fields_lib.to_automaton(again)
  np.testing.assert_array_equal(read.transitions[:, order], table)
  assert again['states'] == states
  assert again.get('outputs') == fields.get('outputs')
  assert again.get('accepting') == fields.get('accepting')
  try:
    text = writing.to_att(fields)
  except ValueError as error:
    assert has_outputs or any(
      len(s.split()) > 1 or s in att.EPSILONS for s in alphabet
    ), error
  else:
    again, _ = completion.complete(reading.FORMATS['.att'](text))
    assert again['accepting'] == [
      str(i) for i, state in enumerate(states) if state in fields['accepting']
    ]
    order = [again['alphabet'].index(symbol) for symbol in alphabet]
    read = fields_lib.to_automaton(again)
    np.testing.assert_array_equal(read.transitions[:, order], table)


def test_entities_are_characters_as_graphviz_has_them():
  text = automata.DOT.replace(
    'label="a"', 'label="&lt;&#97;&#x62;&amp;amp;&notit;"'
  )
  found, _ = completion.complete(reading.FORMATS['.dot'](text))
  assert found['alphabet'] == ['<ab&amp;&notit;', 'b']
  again, _ = completion.complete(reading.FORMATS['.dot'](writing.to_dot(found)))
  assert again['alphabet'] == found['alphabet']


def test_what_would_be_read_as_another_is_not_written():
  for to_text in (writing.to_dot, writing.to_att):
    zero = fields_lib.from_arrays(
      ['\0'], ['p', 'q'], np.array([[1], [0]]), 0, [False, True], None
    )
    with pytest.raises(ValueError, match=r'write \.json'):
      to_text(zero)
  spaces = {**automata.FIELDS, 'outputs': {'even': 'low', 'odd': 'low '}}
  with pytest.raises(ValueError, match='white space at an end'):
    writing.to_dot(spaces)
  spaced = fields_lib.from_arrays(
    ['@_SPACE_@'], ['p', 'q'], np.array([[1], [0]]), 0, [False, True], None
  )
  with pytest.raises(ValueError, match='@_SPACE_@'):
    writing.to_att(spaced)


def test_aalpy_reads_what_is_written(tmp_path):
  for machine, kind in (
    (automata.FIELDS, 'dfa'),
    (
      {k: v for k, v in automata.FIELDS.items() if k != 'accepting'}
      | {'outputs': automata.OUTPUTS},
      'moore',
    ),
  ):
    path = tmp_path / f'{kind}.dot'
    path.write_text(writing.to_dot(machine))
    read = FileHandler.load_automaton_from_file(path, kind)
    automaton = fields_lib.to_automaton(machine)
    for length in range(1, 6):
      for string in itertools.product('ab', repeat=length):
        last = read.execute_sequence(read.initial_state, string)[-1]
        state = automata.run(automaton, ['ab'.index(s) for s in string])
        if kind == 'moore':
          last = fields_lib.answers(machine).index(str(last))
        assert last == automaton.outputs[state]
    # And we read what it writes.
    FileHandler.save_automaton_to_file(read, tmp_path / 'again.dot')
    found, notes = reading.read(tmp_path / 'again.dot')
    assert not [note for note in notes if 'is read as' not in note]
    if kind == 'dfa':
      assert automata.language(found) == automata.language(automata.FIELDS)


def test_a_random_automaton_of_3000_states_takes_seconds(tmp_path):
  rng = np.random.default_rng(0)
  states = [str(q) for q in range(3000)]
  fields = fields_lib.from_arrays(
    'abc', states, rng.integers(3000, size=(3000, 3)), 5, rng.random(3000) < 0.5
  )
  for ending, to_text in writing.FORMATS.items():
    found, _ = automata.read_text(tmp_path, f'a{ending}', to_text(fields))
    assert len(found['states']) == 3000
  automaton = fields_lib.to_automaton(fields_lib.minimized(found))
  automaton_task.AutomatonTask(automaton)
  assert 2500 < len(automaton.outputs) < 3000
