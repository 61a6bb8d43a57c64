"""From what a file says to a complete deterministic automaton."""

from typing import Any

import numpy as np

from tasks.automata import description, fields, nfa

_SINK = 'sink'


def complete(
  says: description.Description,
) -> tuple[dict[str, Any], list[str]]:
  """Returns the object of an automaton (see `fields`), and notes.

  Missing transitions lead to a new state that answers no string. An automaton
  with choices is determinized and minimised.

  Args:
    says: What a file says, its names checked.

  Returns:
    The object. One line for each thing that was done.

  Raises:
    ValueError: If the automaton is too large, has no start, or has choices and
      outputs.
  """
  description.check_names('symbol', says.alphabet)
  description.check_names('state', says.states)
  description.check_size(len(says.states), len(says.alphabet), 'The automaton')
  if not says.starts:
    raise ValueError('No state is the start.')
  notes = list(says.notes)
  says = _with_answers(says, notes)
  state_number = {state: i for i, state in enumerate(says.states)}
  symbol_number = {symbol: i for i, symbol in enumerate(says.alphabet)}
  table = np.full((len(says.states), len(says.alphabet)), -1, np.int32)
  choice = None
  if len(set(says.starts)) > 1:
    choice = f'{len(set(says.starts))} states are the start'
  for source, symbol, target in says.edges:
    if symbol is None:
      choice = choice or f'state {source!r} has an epsilon transition'
      continue
    place = state_number[source], symbol_number[symbol]
    if table[place] not in (-1, state_number[target]):
      choice = choice or f'state {source!r} has a choice for {symbol!r}'
    table[place] = state_number[target]
  if choice:
    if says.outputs is not None:
      raise ValueError(
        f'It is nondeterministic ({choice}); only automata that accept or'
        ' reject may be.'
      )
    return _deterministic(says, choice, notes), notes

  states = list(says.states)
  outputs = says.outputs and [says.outputs[state] for state in states]
  accepting = set(says.accepting)
  num_missing = int((table < 0).sum())
  if num_missing:
    sink = _SINK
    while sink in state_number:
      sink += '_'
    states.append(sink)
    table = np.concatenate([table, np.full((1, table.shape[1]), -1, np.int32)])
    table[table < 0] = len(states) - 1
    kind = 'rejecting'
    if outputs:
      outputs.append('none')
      kind = "whose output is 'none'"
    how_many = (
      '1 missing transition leads'
      if num_missing == 1
      else f'{num_missing:,} missing transitions lead'
    )
    notes.append(
      f'{how_many} to a sink, the new state {sink!r}, {kind} (with'
      ' --target=state one more class).'
    )
  start = state_number[says.starts[0]]
  is_end = [state in accepting for state in states]
  made = fields.from_arrays(
    says.alphabet, states, table, start, is_end, outputs
  )
  return made, notes


def _with_answers(
  says: description.Description, notes: list[str]
) -> description.Description:
  """Turns a Moore machine that accepts or rejects into an acceptor."""
  if says.outputs is None:
    return says
  names = description.in_order(list(set(says.outputs.values())))
  accepting = {name for name in names if name.lower() in description.YES}
  rejecting = {name for name in names if name.lower() in description.NO}
  if len(names) > 2 or (len(names) == 1 and not accepting | rejecting):
    return says
  if len(names) == 2 and not (accepting and rejecting):
    # One of them is known, neither is, or both mean the same.
    names.sort(key=lambda name: (name in accepting) - (name in rejecting))
    accepting = {names[1]}
    notes.append(
      f'The output {names[0]!r} is read as rejecting, {names[1]!r} as'
      ' accepting.'
    )
  ends = [state for state in says.states if says.outputs[state] in accepting]
  return says._replace(accepting=ends, outputs=None)


def _deterministic(
  says: description.Description, choice: str, notes: list[str]
) -> dict[str, Any]:
  """Returns the minimal automaton of one with choices."""
  what = 'The deterministic automaton of this nondeterministic one'
  machine = nfa.Nfa('The automaton')
  number = {state: machine.add_state() for state in says.states}
  symbol_number = {symbol: i for i, symbol in enumerate(says.alphabet)}
  for source, symbol, target in dict.fromkeys(says.edges):
    if symbol is None:
      machine.epsilon[number[source]].append(number[target])
    else:
      machine.add_edge(number[source], symbol_number[symbol], number[target])
  table, is_end = nfa.smallest(
    machine,
    len(says.alphabet),
    [number[state] for state in says.starts],
    [number[state] for state in says.accepting],
    what,
  )
  notes.append(
    f'It is nondeterministic ({choice}): determinized and minimised,'
    f' {len(table)} states.'
  )
  states = [str(q) for q in range(len(table))]
  return fields.from_arrays(says.alphabet, states, table, 0, is_end.tolist())
