"""Odds First."""

import jax.numpy as jnp

from tasks import alignment, random_symbols, task


class OddsFirst(task.TokenTask):
  """What is a binary string with the symbols at odd indices put first?

  Indices count from 0: the output is the symbols at 1, 3, 5, ..., then those at
  0, 2, 4, ...

  Examples:
    00110101 -> 0111 0100
    110 -> 1 10
  """

  input_size = 2
  output_size = 2

  def output_length(self, input_length):
    """See base class."""
    return input_length

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; symbols are uniform."""
    return random_symbols.uniform_strings(rng, batch_size, length, width)

  def solve(self, tokens):
    """See base class."""
    width = tokens.shape[1]
    length = alignment.lengths(tokens)
    place = alignment.places(length, width)
    length = length[:, None]
    num_odds = length // 2
    index = jnp.where(place < num_odds, 2 * place + 1, 2 * (place - num_odds))
    start = width - length
    return alignment.take_columns(
      tokens, jnp.where(place < 0, -1, start + index), task.NO_SYMBOL
    )
