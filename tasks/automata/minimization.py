"""The smallest deterministic automaton with the same answers."""

from collections.abc import Sequence

import numpy as np


def merged(
  transitions_QxV: np.ndarray, start: int, classes_Q: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns which states the minimal automaton has, and which each becomes.

  Args:
    transitions_QxV: Next state by state and symbol, complete.
    start: The state before the first symbol.
    classes_Q: The answer to a string that ends in the state.

  Returns:
    The first of each kind of states, ascending, int; and by state the place of
    its own kind's among them, int [Q], -1 for states that no string reaches.
  """
  like_Q = _representatives(transitions_QxV, start, classes_Q)
  kept = np.unique(like_Q[like_Q >= 0])
  return kept, np.where(like_Q >= 0, np.searchsorted(kept, like_Q), -1)


def _representatives(
  transitions_QxV: np.ndarray, start: int, classes_Q: Sequence[int]
) -> np.ndarray:
  """Returns by state the first of the states that answer all strings as it.

  Hopcroft's algorithm (1971), for any number of classes, O(V Q log Q). It is -1
  for states that no string reaches.
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
  kept, number_Q = merged(transitions_QxV, 0, is_end_Q)
  smaller_KxV = number_Q[transitions_QxV[kept]]
  order = breadth_first(smaller_KxV, 0)
  place_K = np.zeros(len(kept), np.int32)
  place_K[order] = np.arange(len(order))
  return place_K[smaller_KxV[order]], is_end_Q[kept[order]]


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
