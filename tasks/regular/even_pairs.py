"""Even Pairs."""

import jax.numpy as jnp

from tasks import random_symbols, task
from tasks.regular import regular_task


class EvenPairs(regular_task.RegularTask):
  """Is the number of pairs 01 and 10 in a binary string even?

  Answers 0 if it is, else 1.

  Examples:
    aabba has one 'ab' and one 'ba': 2, even -> 0, with a = 0 and b = 1
    aab has one 'ab': 1, odd -> 1
  """

  input_size = 2
  output_size = 2

  @property
  def machine(self):
    """See base class; the state is the first and the last symbol."""
    # 0 is the start, 1 + 2 * first + last any other.
    transitions = [(1, 4), (1, 2), (1, 2), (3, 4), (3, 4)]
    return regular_task.make_machine(transitions, 0, [0, 0, 1, 1, 0])

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; symbols are uniform."""
    return random_symbols.uniform_strings(rng, batch_size, length, width)

  def solve(self, tokens):
    """See base class."""
    first, second = tokens[:, :-1], tokens[:, 1:]
    changes = (first != task.NO_SYMBOL) & (first != second)
    return jnp.sum(changes, axis=-1) % 2
