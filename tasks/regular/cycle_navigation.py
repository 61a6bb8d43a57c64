"""Cycle Navigation."""

import jax.numpy as jnp
import numpy as np

from tasks import random_symbols, task
from tasks.regular import regular_task

_CYCLE_LENGTH = 5


class CycleNavigation(regular_task.RegularTask):
  """Where does a walk on a cycle of five positions end?

  Symbols 0, 1, 2 are the steps -1, 0, +1; the walk starts at position 0.

  Examples:
    2 2 1 0 is +1 +1 0 -1 -> 1
    0 0 1 is -1 -1 0 -> 3
  """

  input_size = 3
  input_symbols = tuple('-0+')
  output_size = _CYCLE_LENGTH

  @property
  def machine(self):
    """See base class; the state is the position."""
    position = np.arange(_CYCLE_LENGTH)
    after = [(position + step) % _CYCLE_LENGTH for step in (-1, 0, 1)]
    return regular_task.make_machine(np.stack(after, -1), 0, position)

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; steps are uniform."""
    return random_symbols.uniform_strings(
      rng, batch_size, length, width, num_symbols=3
    )

  def solve(self, tokens):
    """See base class."""
    steps = jnp.where(tokens == task.NO_SYMBOL, 0, tokens - 1)
    return steps.sum(-1) % _CYCLE_LENGTH
