"""The smallest deterministic automaton with the same answers."""

from collections.abc import Sequence

import numpy as np


def minimal(
  transitions_QxV: np.ndarray, start: int, classes_Q: Sequence[int]
) -> np.ndarray:
  """Returns one state for each kind of states that the minimal automaton has.

  Hopcroft's algorithm (1971), for any number of classes, O(V Q log Q).

  Args:
    transitions_QxV: Next state by state and symbol, complete.
    start: The state before the first symbol.
    classes_Q: The answer to a string that ends in the state.

  Returns:
    By state its representative, the first of the states that answer all
    strings as it does, int [Q]; -1 for states that no string reaches.
  """
  reached = breadth_first(transitions_QxV, start)
  representative_Q = np.full(len(transitions_QxV), -1)
  number_Q = np.zeros(len(transitions_QxV), int)
  states = np.sort(reached)
  number_Q[states] = np.arange(len(states))
  blocks = _blocks(
    number_Q[transitions_QxV[states]], np.asarray(classes_Q)[states]
  )
  for block in blocks:
    members = states[list(block)]
    representative_Q[members] = members.min()
  return representative_Q


def numbered(
  transitions_QxV: np.ndarray, is_end_Q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the minimal automaton, its states numbered breadth first.

  Args:
    transitions_QxV: Next state by state and symbol; the start is 0.
    is_end_Q: Whether a state is accepting.

  Returns:
    Transitions and accepting states; the start is 0. Equivalent automata give
    the same arrays.
  """
  like_Q = minimal(transitions_QxV, 0, is_end_Q)
  smaller_QxV = like_Q[transitions_QxV]
  order = breadth_first(smaller_QxV, 0)
  number_Q = np.zeros(len(like_Q), np.int32)
  number_Q[order] = np.arange(len(order))
  return number_Q[smaller_QxV[order]], is_end_Q[order]


def breadth_first(transitions_QxV: np.ndarray, start: int) -> list[int]:
  """Returns the states that strings reach, in the order of the shortest."""
  rows = transitions_QxV.tolist()
  order, is_met = [start], {start}
  for state in order:  # Grows while new states are met.
    for following in rows[state]:
      if following not in is_met:
        is_met.add(following)
        order.append(following)
  return order


def _blocks(transitions_QxV: np.ndarray, classes_Q: np.ndarray) -> list[set]:
  """Returns sets of equivalent states."""
  num_states, num_symbols = transitions_QxV.shape
  before = [[[] for _ in range(num_states)] for _ in range(num_symbols)]
  for state, row in enumerate(transitions_QxV.tolist()):
    for symbol, following in enumerate(row):
      before[symbol][following].append(state)
  blocks = [
    set(np.flatnonzero(classes_Q == c).tolist()) for c in np.unique(classes_Q)
  ]
  block_of = np.zeros(num_states, int).tolist()
  for i, block in enumerate(blocks):
    for state in block:
      block_of[state] = i
  # Blocks that others may still have to be split by.
  waiting = set(range(len(blocks)))
  while waiting:
    splitter = list(blocks[waiting.pop()])
    for before_V in before:
      hit = {}
      for state in splitter:
        for previous in before_V[state]:
          hit.setdefault(block_of[previous], []).append(previous)
      for i, members in hit.items():
        if len(members) == len(blocks[i]):
          continue
        new = len(blocks)
        blocks[i].difference_update(members)
        blocks.append(set(members))
        for state in members:
          block_of[state] = new
        is_new_smaller = len(members) <= len(blocks[i])
        waiting.add(new if i in waiting or is_new_smaller else i)
  return blocks
