"""Automata to test with, run one symbol at a time, and their files."""

from hypothesis import strategies as st

from tasks.automata import fields as fields_lib
from tasks.automata import reading
from tasks.regular import automaton as automaton_lib

# An odd number of a's.
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
OUTPUTS = {'even': '10', 'odd': '9'}


@st.composite
def automata(draw, num_states=5, num_symbols=3):
  """Draws automata of a size."""
  state = st.integers(0, num_states - 1)
  row = st.tuples(*[state] * num_symbols)
  return automaton_lib.Automaton(
    'abcdefgh'[:num_symbols],
    draw(st.tuples(*[row] * num_states)),
    draw(state),
    draw(st.tuples(*[st.booleans()] * num_states)),
  )


def run(automaton, symbols, state=None):
  """Returns the state after a string, read from a state or the start."""
  if state is None:
    state = automaton.start
  for symbol in symbols:
    state = int(automaton.transitions[state, symbol])
  return state


def accepts(automaton, symbols):
  return bool(automaton.accepting[run(automaton, symbols)])


def read_text(folder, name, text):
  path = folder / name
  path.write_bytes(text if isinstance(text, bytes) else text.encode())
  return reading.read(path)


def language(fields, length=6):
  """Returns the answers to all strings of at most a length, as a list."""
  automaton = fields_lib.to_automaton(fields)
  states, answers = [automaton.start], []
  for _ in range(length):
    answers += automaton.outputs[states].tolist()
    states = automaton.transitions[states].ravel()
  return answers
