"""Nondeterministic automata, and the deterministic ones of their languages.

Sets of states are whole numbers with a bit for each state: a union is one
operation on machine words.
"""

from collections.abc import Iterable, Sequence
import functools
import operator

import numpy as np

from tasks.automata import description, minimization

# Bits of a set that are looked up together, and the memory that the answers
# may take before they are forgotten.
_CHUNK_BITS = 16
_CACHE_BYTES = 2**28


class Nfa:
  """An automaton with choices, that grows.

  Attributes:
    edges: By state, and by symbol's number: the states after it.
    epsilon: By state: the states after it without a symbol.
  """

  def __init__(self, what: str):
    """Initializes.

    Args:
      what: It is called so in an error.
    """
    self.edges: list[dict[int, list[int]]] = []
    self.epsilon: list[list[int]] = []
    self._what = what

  def add_state(self) -> int:
    """Returns a new state.

    Raises:
      ValueError: If there are too many.
    """
    description.check_size(len(self.edges) + 1, 1, self._what)
    self.edges.append({})
    self.epsilon.append([])
    return len(self.edges) - 1

  def add_edge(self, source: int, symbol: int, target: int) -> None:
    """Adds a transition."""
    self.edges[source].setdefault(symbol, []).append(target)


def smallest(
  nfa: Nfa,
  num_symbols: int,
  starts: Iterable[int],
  accepting: Iterable[int],
  what: str,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the minimal complete deterministic automaton.

  Its states are numbered breadth first, in the order of the symbols; otherwise
  as `_determinize`.
  """
  return minimization.numbered(
    *_determinize(nfa, num_symbols, starts, accepting, what)
  )


def _determinize(
  nfa: Nfa,
  num_symbols: int,
  starts: Iterable[int],
  accepting: Iterable[int],
  what: str,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the complete deterministic automaton of sets of states.

  Args:
    nfa: Says the transitions.
    num_symbols: V.
    starts: Its states before the first symbol.
    accepting: Those whose strings are in the language.
    what: It is called so in an error.

  Returns:
    Transitions, int32 [Q, V], and whether a state is accepting, bool [Q]. The
    start is 0; all states are reached.

  Raises:
    ValueError: If it is too large.
  """
  closures = _closures(nfa.epsilon)
  step = _make_step(nfa, closures, num_symbols)
  start = functools.reduce(operator.or_, (closures[q] for q in starts), 0)
  number, sets, transitions = {start: 0}, [start], []
  for states in sets:  # Grows while new sets are met: breadth first.
    row = []
    for after in step(states):
      if after not in number:
        number[after] = len(sets)
        sets.append(after)
        description.check_size(len(sets), num_symbols, what)
      row.append(number[after])
    transitions.append(row)
  ends = functools.reduce(operator.or_, (1 << q for q in accepting), 0)
  return (
    np.asarray(transitions, np.int32).reshape(len(sets), num_symbols),
    np.asarray([bool(states & ends) for states in sets]),
  )


def _closures(epsilon: Sequence[Sequence[int]]) -> list[int]:
  """Returns by state the set of those reached without a symbol."""
  order = _postorder(epsilon)
  closures = [1 << q for q in range(len(epsilon))]
  is_changed = True
  while is_changed:  # Once or twice: cycles are as deep as stars are nested.
    is_changed = False
    for q in order:
      closure = closures[q]
      for following in epsilon[q]:
        closure |= closures[following]
      is_changed |= closure != closures[q]
      closures[q] = closure
  return closures


def _postorder(following: Sequence[Sequence[int]]) -> list[int]:
  """Returns all states, each after those behind it but for cycles."""
  order, is_met = [], bytearray(len(following))
  for root in range(len(following)):
    if is_met[root]:
      continue
    is_met[root] = 1
    path = [(root, iter(following[root]))]
    while path:
      state, rest = path[-1]
      new = next((q for q in rest if not is_met[q]), None)
      if new is None:
        order.append(state)
        path.pop()
      else:
        is_met[new] = 1
        path.append((new, iter(following[new])))
  return order


def _make_step(nfa: Nfa, closures: Sequence[int], num_symbols: int):
  """Returns a function from a set to the sets after it, by symbol."""
  after = [
    {
      symbol: functools.reduce(operator.or_, (closures[q] for q in targets))
      for symbol, targets in row.items()
    }
    for row in nfa.edges
  ]
  num_bytes = -(-len(after) // _CHUNK_BITS) * _CHUNK_BITS // 8
  cache = {}
  room = max(1000, _CACHE_BYTES // (num_bytes + 100) // num_symbols)

  def chunk_after(index, chunk):
    """Returns the sets after some of the states of a chunk."""
    merged = {}
    for bit in range(_CHUNK_BITS):
      if chunk >> bit & 1:
        for symbol, states in after[index * _CHUNK_BITS + bit].items():
          merged[symbol] = merged.get(symbol, 0) | states
    return list(merged.items())

  def step(states):
    sets = [0] * num_symbols
    chunks = memoryview(states.to_bytes(num_bytes, 'little')).cast('H')
    for index, chunk in enumerate(chunks):
      if not chunk:
        continue
      key = index << _CHUNK_BITS | chunk
      found = cache.get(key)
      if found is None:
        if len(cache) >= room:
          cache.clear()
        found = cache[key] = chunk_after(index, chunk)
      for symbol, more in found:
        sets[symbol] |= more
    return sets

  return step
