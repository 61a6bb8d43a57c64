"""Bucket Sort."""

import jax.numpy as jnp

from tasks import alignment, random_symbols, task

_NUM_SYMBOLS = 5


class BucketSort(task.TokenTask):
  """What is a string over five symbols, sorted?

  Examples:
    10204112 -> 00111224
    4310 -> 0134
  """

  input_size = _NUM_SYMBOLS
  output_size = _NUM_SYMBOLS

  def output_length(self, input_length):
    """See base class."""
    return input_length

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; symbols are uniform."""
    return random_symbols.uniform_strings(
      rng, batch_size, length, width, _NUM_SYMBOLS
    )

  def solve(self, tokens):
    """See base class, by counting, which is cheaper than a sort."""
    place = alignment.places(alignment.lengths(tokens), tokens.shape[1])
    output = jnp.where(place < 0, task.NO_SYMBOL, 0)
    num_up_to = 0
    for symbol in range(_NUM_SYMBOLS - 1):
      num_up_to += jnp.sum(tokens == symbol, axis=-1, keepdims=True)
      output += place >= num_up_to
    return output
