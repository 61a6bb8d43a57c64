"""Duplicate String."""

import jax.numpy as jnp

from tasks import rearrangement


class DuplicateString(rearrangement.Rearrangement):
  """What is a binary string written twice?

  Examples:
    101 -> 101101
    0111 -> 01110111
  """

  def output_length(self, input_length):
    """See base class."""
    return 2 * input_length

  def source(self, place, length):
    """See base class."""
    return jnp.where(place < length, place, place - length)
