"""Odds First."""

import jax.numpy as jnp

from tasks import rearrangement


class OddsFirst(rearrangement.Rearrangement):
  """What is a binary string with the symbols at odd indices put first?

  Indices count from 0: the output is the symbols at 1, 3, 5, ..., then those at
  0, 2, 4, ...

  Examples:
    00110101 -> 0111 0100
    110 -> 1 10
  """

  def source(self, place, length):
    """See base class."""
    num_odds = length // 2
    return jnp.where(place < num_odds, 2 * place + 1, 2 * (place - num_odds))
