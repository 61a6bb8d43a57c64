"""The smallest automaton with the same answers, in a fixed numbering."""

import numpy as np


def minimal(
  transitions_QxV: np.ndarray, start: int, classes_Q: np.ndarray
) -> tuple[np.ndarray, int, np.ndarray]:
  """Returns the minimal automaton; equivalent ones give the same arrays.

  Moore's refinement of classes. (Libraries of automata minimize acceptors,
  which have two classes.) States are numbered breadth first from the start, in
  the order of the symbols.

  Args:
    transitions_QxV: Next state by state and symbol, complete.
    start: The state before the first symbol.
    classes_Q: The answer to a string that ends in the state.

  Returns:
    Transitions, start (which is 0) and classes, of fewer states or as many.
  """
  # Two states are alike if their classes are, and those of the states behind
  # them; `block` numbers the states that are alike after so many symbols.
  _, block_Q = np.unique(classes_Q, return_inverse=True)
  num_blocks = 0
  while num_blocks < block_Q.max() + 1:
    num_blocks = block_Q.max() + 1
    behind_QxV = block_Q[transitions_QxV]
    for behind_Q in behind_QxV.T:
      _, block_Q = np.unique(
        block_Q * num_blocks + behind_Q, return_inverse=True
      )
  _, member = np.unique(block_Q, return_index=True)  # One state of each block.
  next_block = block_Q[transitions_QxV[member]]

  order, met = [], {int(block_Q[start]): None}
  while len(order) < len(met):  # `met` keeps the order: breadth first.
    order = list(met)
    met |= dict.fromkeys(next_block[order].flat)
  number = np.zeros(len(member), np.int32)
  number[order] = np.arange(len(order))
  return number[next_block[order]], 0, np.asarray(classes_Q)[member[order]]
