"""The answers to all prefixes of a string, where there was one to the whole."""

from collections.abc import Sequence

import jax.numpy as jnp

from tasks import task
from tasks.automata import automaton
from tasks.regular import regular_task


def whole(one: task.GeneralizationTask) -> task.GeneralizationTask:
  """Returns a task, or, of one of prefixes, that of whole strings."""
  return one.whole if isinstance(one, Prefixes) else one


class Prefixes(task.TokenTask):
  """What does an automaton answer after each symbol?

  How papers on state tracking train (Liu et al., 2023; Merrill et al., 2024):
  an answer a symbol, given where the symbol is read.

  Attributes:
    whole: The task whose answer to the whole string it is.
  """

  answers_in_place = True

  def __init__(self, whole: regular_task.RegularTask):
    """Initializes.

    Args:
      whole: Whose answer it is, and whose strings.

    Raises:
      ValueError: If the prefixes of its strings are none of its own.
    """
    if not whole.takes_all_strings:
      raise ValueError(
        f'{type(whole).__name__} has no answers to all prefixes: some are none'
        ' of its strings.'
      )
    self.whole = whole

  @property
  def input_size(self) -> int:
    """See base class."""
    return self.whole.input_size

  @property
  def output_size(self) -> int:
    """See base class."""
    return self.whole.output_size

  @property
  def input_symbols(self) -> Sequence[str]:
    """See base class."""
    return self.whole.input_symbols

  def input_length(self, length: int) -> int:
    """See base class."""
    return self.whole.input_length(length)

  def output_length(self, input_length: int) -> int:
    """See base class."""
    return input_length

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; those of the whole."""
    return self.whole.sample_tokens(rng, batch_size, length, width)

  def solve(self, tokens):
    """See base class; symbol by symbol."""
    machine = self.whole.machine
    states_BxW = automaton.states_by_symbol(
      machine.transitions, machine.start, tokens
    )
    answers_BxW = jnp.asarray(machine.outputs)[states_BxW]
    return jnp.where(tokens == task.NO_SYMBOL, task.NO_SYMBOL, answers_BxW)
