"""The JSON object of an automaton: {"alphabet": [symbol, ...], ...}.

It has the fields "alphabet": [symbol, ...], "states": [state, ...], "start":
state, "transitions": {state: {symbol: state, ...}, ...}, and one of
"accepting": [state, ...] and "outputs": {state: answer, ...}. All names are
strings. Symbols and states are numbered in the order of their lists, answers in
the order of `description.in_order`.
"""

from collections.abc import Callable, Mapping, Sequence
import json
from typing import Any

import numpy as np

from tasks.automata import automaton as automaton_lib
from tasks.automata import description as description_lib
from tasks.automata import minimization

_FIELDS = (
  'alphabet',
  'states',
  'start',
  'accepting',
  'outputs',
  'transitions',
)


def parse(
  text: str, parse_json: Callable[[str], Any] = json.loads
) -> dict[str, Any]:
  """Returns the object that a text holds.

  Raises:
    ValueError: If it isn't one object of JSON.
  """
  try:
    fields = parse_json(text)
  except json.JSONDecodeError as error:
    raise ValueError(f'It is not valid JSON: {error}.') from error
  except RecursionError:
    raise ValueError('Its JSON is nested too deeply.') from None
  if not isinstance(fields, dict):
    raise ValueError('It must hold one JSON object, {"alphabet": ...}.')
  return fields


def describe(fields: Mapping[str, Any]) -> description_lib.Description:
  """Returns what an object says.

  Raises:
    ValueError: If a field is missing, unknown, or wrong.
  """
  _check_fields(fields)
  alphabet, states = fields['alphabet'], fields['states']
  known, symbols = set(states), set(alphabet)

  def check_state(state, where):
    if not isinstance(state, str) or state not in known:
      raise ValueError(f'Unknown state {state!r} in {where}.')

  check_state(fields['start'], 'start')
  edges = []
  for state, row in fields['transitions'].items():
    check_state(state, 'transitions')
    if not isinstance(row, Mapping):
      raise ValueError(f'transitions of {state!r} must be an object.')
    for symbol, following in row.items():
      if symbol not in symbols:
        raise ValueError(
          f'Symbol {symbol!r} in the transitions of state {state!r} is not in'
          f' the alphabet {", ".join(alphabet)}.'
        )
      check_state(following, f'the transitions of state {state!r}')
      edges.append(description_lib.Edge(state, symbol, following))
  outputs = fields.get('outputs')
  for state in fields.get('accepting', ()):
    check_state(state, 'accepting')
  if outputs is not None:
    for state, output in outputs.items():
      check_state(state, 'outputs')
      if not isinstance(output, str) or not output:
        raise ValueError(
          f'The output of state {state!r} must be a string, got {output!r}.'
        )
    for state in states:
      if state not in outputs:
        raise ValueError(f'State {state!r} has no output.')
    description_lib.check_names('output', list(set(outputs.values())))
  return description_lib.Description(
    alphabet,
    states,
    [fields['start']],
    edges,
    fields.get('accepting', ()),
    outputs,
  )


def _check_fields(fields: Mapping[str, Any]) -> None:
  """Raises a ValueError if a field is missing, or of a wrong type."""
  for name in _FIELDS:
    if name not in fields and name not in ('accepting', 'outputs'):
      raise ValueError(f'The field {name!r} is missing.')
  if ('accepting' in fields) == ('outputs' in fields):
    if 'outputs' in fields:
      raise ValueError("Give one of the fields 'accepting' and 'outputs'.")
    raise ValueError("The field 'accepting' is missing.")
  for name in fields:
    if name not in _FIELDS:
      raise ValueError(
        f'Unknown field {name!r}; the fields are {", ".join(_FIELDS)}.'
      )
  for name in ('alphabet', 'states', 'accepting'):
    names = fields.get(name, [])
    if not isinstance(names, Sequence) or isinstance(names, str):
      raise ValueError(f'{name} must be a list of strings, got {names!r}.')
    for item in names:
      if not isinstance(item, str) or not item:
        raise ValueError(f'{name} must be a list of strings, it has {item!r}.')
  for name in ('transitions', 'outputs'):
    value = fields.get(name, {})
    if not isinstance(value, Mapping):
      raise ValueError(f'{name} must be an object, got {value!r}.')
  description_lib.check_names('symbol', fields['alphabet'])
  description_lib.check_names('state', fields['states'])
  description_lib.check_size(
    len(fields['states']), len(fields['alphabet']), 'The automaton'
  )


def to_automaton(fields: Mapping[str, Any]) -> automaton_lib.Automaton:
  """Returns the automaton of an object.

  Raises:
    ValueError: If the object is wrong, or the automaton isn't complete.
  """
  says = describe(fields)
  state_number = {state: i for i, state in enumerate(says.states)}
  symbol_number = {symbol: i for i, symbol in enumerate(says.alphabet)}
  transitions = np.full((len(says.states), len(says.alphabet)), -1, np.int32)
  for source, symbol, target in says.edges:
    transitions[state_number[source], symbol_number[symbol]] = state_number[
      target
    ]
  for q, v in np.argwhere(transitions < 0):
    raise ValueError(
      f'State {says.states[q]!r} has no transition for symbol'
      f' {says.alphabet[v]!r}.'
    )
  classes = np.zeros(len(says.states), np.int32)
  if says.outputs is not None:
    class_of = {name: i for i, name in enumerate(answers(fields))}
    classes[:] = [class_of[says.outputs[state]] for state in says.states]
  else:
    classes[[state_number[state] for state in says.accepting]] = 1
  start = state_number[says.starts[0]]
  return automaton_lib.Automaton(says.alphabet, transitions, start, classes)


def answers(fields: Mapping[str, Any]) -> list[str]:
  """Returns the names of a Moore machine's answers, in their order."""
  return description_lib.in_order(list(set(fields['outputs'].values())))


def from_arrays(
  alphabet: Sequence[str],
  states: Sequence[str],
  transitions_QxV: np.ndarray,
  start: int,
  accepting_Q: Sequence[bool],
  outputs_Q: Sequence[str] | None = None,
) -> dict[str, Any]:
  """Returns the object of an automaton.

  Args:
    alphabet: Its V symbols.
    states: Their names.
    transitions_QxV: Next state by state and symbol.
    start: The state before the first symbol.
    accepting_Q: Whether a state's strings are in the language.
    outputs_Q: The answer of each state, of a machine of others than these two.
  """
  ends = {}
  if outputs_Q is not None:
    ends['outputs'] = dict(zip(states, outputs_Q, strict=True))
  else:
    pairs = zip(states, accepting_Q, strict=True)
    ends['accepting'] = [state for state, is_end in pairs if is_end]
  return {
    'alphabet': list(alphabet),
    'states': list(states),
    'start': states[start],
    **ends,
    'transitions': {
      state: {
        symbol: states[following]
        for symbol, following in zip(alphabet, row, strict=True)
      }
      for state, row in zip(states, transitions_QxV.tolist(), strict=True)
    },
  }


def minimized(fields: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the object of the minimal automaton.

  Of states that are alike the first stays, in its place and with its name.

  Raises:
    ValueError: As `to_automaton`.
  """
  automaton = to_automaton(fields)
  transitions = automaton.transitions
  kept, number_Q = minimization.merged(
    transitions, automaton.start, automaton.outputs
  )
  states = [fields['states'][q] for q in kept]
  outputs = fields.get('outputs')
  return from_arrays(
    automaton.alphabet,
    states,
    number_Q[transitions[kept]],
    number_Q[automaton.start],
    automaton.accepting[kept].tolist(),
    outputs and [outputs[state] for state in states],
  )
