"""Automata to test with, run one symbol at a time, and their files."""

import json

from hypothesis import strategies as st

from tasks.automata import automaton as automaton_lib
from tasks.automata import fields as fields_lib
from tasks.automata import reading

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

# One language in every format: an odd number of a's.
JSON = json.dumps(FIELDS)
ATT = 'e\to\ta\ta\ne\te\tb\tb\no\te\ta\ta\no\to\tb\tb\no\n'
DOT = """digraph g {
s0 [label="even"];
s1 [label="odd", shape=doublecircle];
s0 -> s1 [label="a"];
s0 -> s0 [label="b"];
s1 -> s0 [label="a"];
s1 -> s1 [label="b"];
__start0 [label="", shape=none];
__start0 -> s0 [label=""];
}
"""
JFF = """<?xml version="1.0" encoding="UTF-8" standalone="no"?><structure>
<type>fa</type><automaton>
<state id="0" name="even"><x>1.0</x><initial/></state>
<state id="1" name="odd"><final/></state>
<transition><from>0</from><to>1</to><read>a</read></transition>
<transition><from>0</from><to>0</to><read>b</read></transition>
<transition><from>1</from><to>0</to><read>a</read></transition>
<transition><from>1</from><to>1</to><read>b</read></transition>
</automaton></structure>
"""
# As people draw it by hand.
BY_HAND = """/* odd */ digraph {
  rankdir=LR; "" [shape=point]; // the start
# 1
  node [shape = doublecircle]; odd;
  node [shape = circle];
  "" -> even:e -> odd [label=a]
  subgraph cluster { edge [color=red]; even -> even [label=b] }
  odd -> even [label="a"]; odd -> odd [label=<<b>b</b>>];
}
"""
LEARNLIB = """digraph g {
	s0 [shape="record" style="rounded" label="{ even | - }"];
	s1 [shape="record" style="rounded" label="{ odd | + }"];
	s0 -> s1 [label="a"]; s0 -> s0 [label="b"];
	s1 -> s0 [label="a"]; s1 -> s1 [label="b"];
__start0 [label="" shape="none" width="0" height="0"];
__start0 -> s0;

}
"""
WEIGHTED = '0 1 a 0.5\n0 0 b 1.5\n1 0 a\n1 1 b 0\n1 2.5\n0 inf\n'
FILES = {
  'a.json': JSON,
  'a.att': ATT,
  'a.dot': DOT,
  'a.jff': JFF,
  'hand.gv': BY_HAND,
  'learnlib.dot': LEARNLIB,
  'weighted.att': WEIGHTED,
}


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
