"""Automata to test with, run one symbol at a time."""

from hypothesis import strategies as st

from tasks.regular import automaton as automaton_lib


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
