"""Tasks whose answer is that of a finite machine."""

import abc
from typing import NamedTuple

import numpy as np

from tasks import task


class MooreMachine(NamedTuple):
  """A complete automaton whose states have outputs, as plain arrays.

  Attributes:
    transitions: Next state by state and symbol, int32 [Q, V].
    start: The state before the first symbol.
    outputs: The answer to a string that ends in the state, int32 [Q].
  """

  transitions: np.ndarray
  start: int
  outputs: np.ndarray


def make_machine(transitions, start, outputs) -> MooreMachine:
  """Returns a machine from anything that NumPy takes for its arrays."""
  return MooreMachine(
    np.asarray(transitions, np.int32), int(start), np.asarray(outputs, np.int32)
  )


def answers(machine: MooreMachine, tokens: np.ndarray) -> np.ndarray:
  """Returns a machine's answers to strings, read symbol by symbol.

  Args:
    machine: It.
    tokens: Symbols, -1 for none, int [..., W].

  Returns:
    Classes, int32 [...].
  """
  states = np.full(tokens.shape[:-1], machine.start)
  for column in np.moveaxis(tokens, -1, 0):
    after = machine.transitions[states, np.maximum(column, 0)]
    states = np.where(column == task.NO_SYMBOL, states, after)
  return machine.outputs[states]


class RegularTask(task.TokenTask):
  """A task that a Moore machine solves.

  Attributes:
    takes_all_strings: Whether every string of its symbols is one of the task's;
      if not, the machine's answers to others mean nothing.
  """

  takes_all_strings = True

  @property
  @abc.abstractmethod
  def machine(self) -> MooreMachine:
    """The machine whose last state's output is what `solve` answers.

    Its V symbols are the `input_size` tokens, its outputs the `output_size`
    classes. It agrees with `solve` on every string that the task can sample.
    """
