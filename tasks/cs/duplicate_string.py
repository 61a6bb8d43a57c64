"""Duplicate String."""

import jax.numpy as jnp

from tasks import alignment, random_symbols, task


class DuplicateString(task.TokenTask):
  """What is a binary string written twice?

  Examples:
    101 -> 101101
    0111 -> 01110111
  """

  input_size = 2
  output_size = 2

  def output_length(self, input_length):
    """See base class."""
    return 2 * input_length

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; symbols are uniform."""
    return random_symbols.uniform_strings(rng, batch_size, length, width)

  def solve(self, tokens):
    """See base class."""
    width = tokens.shape[1]
    length = alignment.lengths(tokens)[:, None]
    from_end = jnp.arange(2 * width)[::-1]
    # The second copy ends at the string's end, the first one length before.
    source = jnp.where(from_end < length, from_end, from_end - length)
    return alignment.take_columns(
      tokens,
      jnp.where(from_end < 2 * length, width - 1 - source, -1),
      task.NO_SYMBOL,
    )
