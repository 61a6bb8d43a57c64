"""Parity Check (PARITY)."""

import jax

from tasks import task
from tasks.regular import regular_task


class ParityCheck(regular_task.RegularTask):
  """Is the number of 1s in a binary string odd?

  Answers 1 if it is, else 0.

  Examples:
    0110 has two 1s -> 0
    10110 has three 1s -> 1
  """

  input_size = 2
  output_size = 2

  def __init__(self, probability: float = 0.5):
    """Initializes.

    Args:
      probability: Of a 1, independently at each place (Table 2 of the
        RegularGPT paper varies it).

    Raises:
      ValueError: If it is not in [0, 1].
    """
    probability = float(probability)
    if not 0.0 <= probability <= 1.0:
      raise ValueError(f'probability must be in [0, 1], got {probability}.')
    self._probability = probability

  @property
  def machine(self):
    """See base class; the state is the parity."""
    return regular_task.make_machine([(0, 1), (1, 0)], 0, [0, 1])

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class."""
    ones = jax.random.bernoulli(rng, self._probability, (width, batch_size))
    return task.right_align(ones, length)

  def solve(self, tokens):
    """See base class."""
    return (tokens == 1).sum(-1) % 2
