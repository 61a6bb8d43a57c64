"""Reading automata, from JSON and from regular expressions."""

from collections.abc import Mapping, Sequence
import re

import numpy as np

from tasks.regular import automaton as automaton_lib

_JSON_FIELDS = ('alphabet', 'states', 'start', 'accepting', 'transitions')


def from_json(fields: Mapping) -> automaton_lib.Automaton:
  """Returns the automaton that an object of JSON describes.

  It is {"alphabet": [symbol, ...], "states": [state, ...], "start": state,
  "accepting": [state, ...], "transitions": {state: {symbol: state, ...},
  ...}}. Symbols and states are strings, and are numbered in the order of their
  lists.

  Args:
    fields: The object, parsed.

  Raises:
    ValueError: If it isn't such an object, or the automaton isn't complete.
  """
  for name in _JSON_FIELDS:
    if name not in fields:
      raise ValueError(f'The field {name!r} is missing.')
  for name in fields:
    if name not in _JSON_FIELDS:
      raise ValueError(
        f'Unknown field {name!r}; the fields are {", ".join(_JSON_FIELDS)}.'
      )
  for name in ('alphabet', 'states', 'accepting'):
    names = fields[name]
    if not isinstance(names, Sequence) or isinstance(names, str):
      raise ValueError(f'{name} must be a list of strings, got {names!r}.')
    for item in names:
      if not isinstance(item, str) or not item:
        raise ValueError(f'{name} must be a list of strings, it has {item!r}.')
  alphabet, states = fields['alphabet'], fields['states']
  automaton_lib.check_distinct('symbol', alphabet)
  automaton_lib.check_distinct('state', states)
  state_number = {state: i for i, state in enumerate(states)}

  def number(state, where):
    if not isinstance(state, str) or state not in state_number:
      raise ValueError(f'Unknown state {state!r} in {where}.')
    return state_number[state]

  table = fields['transitions']
  if not isinstance(table, Mapping):
    raise ValueError(f'transitions must be an object, got {table!r}.')
  for state, row in table.items():
    number(state, 'transitions')
    if not isinstance(row, Mapping):
      raise ValueError(f'transitions of {state!r} must be an object.')
    for symbol in row:
      if symbol not in alphabet:
        raise ValueError(
          f'Symbol {symbol!r} in the transitions of state {state!r} is not in'
          f' the alphabet {", ".join(alphabet)}.'
        )
  transitions = np.zeros((len(states), len(alphabet)), np.int32)
  for q, state in enumerate(states):
    for v, symbol in enumerate(alphabet):
      if symbol not in table.get(state, {}):
        raise ValueError(
          f'State {state!r} has no transition for symbol {symbol!r}.'
        )
      transitions[q, v] = number(
        table[state][symbol], f'the transitions of state {state!r}'
      )
  accepting = np.zeros(len(states), bool)
  accepting[[number(state, 'accepting') for state in fields['accepting']]] = 1
  return automaton_lib.Automaton(
    alphabet, transitions, number(fields['start'], 'start'), accepting
  )


def from_regex(regex: str, alphabet: Sequence[str]) -> automaton_lib.Automaton:
  """Returns the minimal complete automaton of a regular expression.

  The syntax, a part of automata-lib's: `|` union, `&` intersection, `^`
  shuffle, `*`, `+`, `?`, `{n}`, `{m,n}`, `.` any symbol, `[ab]` one of these,
  `[^ab]` any other, `()` the empty string or a group. States are numbered
  breadth first from the start, which is 0, in the order of the alphabet.

  Args:
    regex: The expression.
    alphabet: Its symbols, single characters.

  Raises:
    ValueError: If the expression doesn't parse or has symbols outside the
      alphabet, if the alphabet has a symbol that the syntax reserves, or if
      there is nothing to learn (see `automaton.check_learnable`).
  """
  automaton_lib.check_distinct('symbol', alphabet)
  for symbol in alphabet:
    if len(symbol) != 1 or symbol in _RESERVED:
      raise ValueError(
        f'Symbol {symbol!r} cannot stand in a regex: symbols are single'
        f' characters other than {" ".join(_RESERVED.split())}; give the'
        ' automaton as JSON.'
      )
  _check_regex(regex, alphabet)
  # Imported here, as no task of the benchmark itself needs it.
  from automata.base import exceptions
  from automata.fa import dfa, nfa

  try:
    parsed = nfa.NFA.from_regex(regex, input_symbols=set(alphabet))
  except (exceptions.AutomatonException, exceptions.RegexException) as error:
    raise ValueError(f'Regex {regex!r} does not parse: {error}') from error
  minimal = dfa.DFA.from_nfa(parsed, minify=True).to_complete()

  order = [minimal.initial_state]
  for state in order:  # Grows while new states are met: breadth first.
    for symbol in alphabet:
      following = minimal.transitions[state][symbol]
      if following not in order:
        order.append(following)
  transitions = [
    [order.index(minimal.transitions[state][symbol]) for symbol in alphabet]
    for state in order
  ]
  accepting = [state in minimal.final_states for state in order]
  automaton = automaton_lib.Automaton(alphabet, transitions, 0, accepting)
  automaton_lib.check_learnable(automaton)
  return automaton


_RESERVED = '( ) [ ] { } | & ^ * + ? . \\ \t\n'
_BINARY = '|&^'
_REPETITION = re.compile(r'\{(\d+)\}|\{(\d*),(\d*)\}')
_CHARACTER_CLASS = re.compile(r'\[\^?([^]^]+)\]')


def _check_regex(regex: str, alphabet: Sequence[str]) -> None:
  """Raises a ValueError that says where an expression goes wrong."""

  def fail(position, problem):
    raise ValueError(
      f'Regex {regex!r} does not parse at position {position}: {problem}.'
    )

  def check_symbol(position, symbol):
    if symbol not in alphabet:
      raise ValueError(
        f'Regex {regex!r}, position {position}: symbol {symbol!r} is not in the'
        f' alphabet {", ".join(alphabet)}.'
      )

  open_groups = []
  # The operator that still wants an operand to its right, if there is one.
  waiting = None
  has_left = False  # Whether there is an operand for an operator to apply to.
  position = 0
  while position < len(regex):
    character, length = regex[position], 1
    if character == '(':
      open_groups.append(position)
      waiting, has_left = None, False
    elif character == ')':
      if not open_groups:
        fail(position, "')' closes nothing")
      if waiting is not None:
        fail(waiting, f'{regex[waiting]!r} has nothing to its right')
      open_groups.pop()
      has_left = True
    elif character in _BINARY:
      if not has_left:
        fail(position, f'{character!r} has nothing to its left')
      waiting, has_left = position, False
    elif character in '*+?{':
      if character == '{':
        match = _REPETITION.match(regex, position)
        if not match:
          fail(position, "'{' does not start a repetition like {2} or {1,3}")
        length = len(match.group())
        least, most = match.group(2), match.group(3)
        if least and most and int(least) > int(most):
          fail(position, f'{match.group()} has its bounds in the wrong order')
      if not has_left:
        fail(position, f'{character!r} has nothing to repeat')
      if character == '{' and int(match.group(1) or most or 1) == 0:
        # automata-lib would read it as `?`.
        fail(position, f'{match.group()} repeats nothing; write ()')
      if character == '{' and int(match.group(1) or most or least or 0) > 1000:
        fail(position, f'{match.group()} repeats more than 1000 times')
    else:
      if character == '[':
        match = _CHARACTER_CLASS.match(regex, position)
        if not match:
          fail(position, "'[' does not start a list of symbols like [ab]")
        length = len(match.group())
        for i in range(*match.span(1)):
          check_symbol(i, regex[i])
      elif character in ']}':
        fail(position, f'{character!r} closes nothing')
      elif character != '.':
        check_symbol(position, character)
      waiting, has_left = None, True
    position += length
  if open_groups:
    fail(open_groups[-1], "'(' is never closed")
  if waiting is not None:
    fail(waiting, f'{regex[waiting]!r} has nothing to its right')
