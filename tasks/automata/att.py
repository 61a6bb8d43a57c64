"""Reading AT&T's text format of finite-state automata, which OpenFst prints."""

import re

from tasks.automata import description

# How programs write "no symbol", and a space.
EPSILONS = frozenset(('<eps>', '<epsilon>', '@0@', '@_EPSILON_SYMBOL_@'))
SPACE = '@_SPACE_@'


def read(text: str) -> description.Description:
  """Returns what a text says.

  A line is a transition, `from to symbol` or `from to input output`, where the
  two must be equal, or a final state alone; a weight may follow. The first
  line's first state is the start. Weights are left out.

  Raises:
    ValueError: If a line is none of these, or there is no transition.
  """
  rows = []
  for number, line in enumerate(text.split('\n'), 1):
    # Not at other white space, which may be a symbol.
    columns = re.split('[ \t]+', line.strip(' \t\r'))
    if columns == ['']:
      continue
    if len(columns) > 5:
      raise ValueError(
        f'line {number}: expected `from to input output`, or a final state'
        f' alone, got {line[:80]!r}.'
      )
    rows.append((number, columns))
    description.check_size(1, len(rows), 'The automaton')
  # `from to input output`, or `from to symbol weight`?
  four = [columns for _, columns in rows if len(columns) == 4]
  inputs, others = {c[2] for c in four}, {c[3] for c in four}
  has_weights = not others <= inputs and all(map(_is_number, others))
  states, edges, accepting = {}, [], {}
  is_weighted = False
  for number, columns in rows:
    end = 1 if len(columns) < 3 else 3 + (len(columns) > 3 and not has_weights)
    weight = columns[end] if len(columns) > end else None
    if weight is not None and not _is_number(weight):
      raise ValueError(f'line {number}: the weight {weight!r} is not a number.')
    is_weighted |= weight is not None and float(weight) != 0
    if end == 4 and columns[2] != columns[3]:
      raise ValueError(
        f'line {number}: input {columns[2]!r} and output {columns[3]!r} differ;'
        ' only automata that accept or reject can be read.'
      )
    # In OpenFst's usual semiring, what weighs infinitely much is not there.
    is_there = weight is None or float(weight) != float('inf')
    states[columns[0]] = None
    if end == 1:
      if is_there:
        accepting[columns[0]] = None
    else:
      states[columns[1]] = None
      symbol = columns[2].replace(SPACE, ' ')
      if is_there:
        edges.append(
          description.Edge(
            columns[0], None if symbol in EPSILONS else symbol, columns[1]
          )
        )
  symbols = {edge.symbol for edge in edges} - {None}
  if not symbols:
    raise ValueError('It has no transition: no line `from to input output`.')
  return description.Description(
    description.in_order(list(symbols)),
    description.in_order(list(states)),
    [next(iter(states))],
    edges,
    list(accepting),
    notes=['Its weights are left out.'] if is_weighted else [],
  )


def _is_number(text: str) -> bool:
  try:
    return float(text) == float(text)
  except ValueError:
    return False
