"""Compute Sqrt."""

import jax
import jax.numpy as jnp

from tasks import alignment, big_numbers, random_symbols, task


class ComputeSqrt(task.TokenTask):
  """What is the square root of a binary number, rounded down?

  Both are written with the highest digits first; the root has half as many
  digits, rounded up.

  Examples:
    100101 = 37 -> 110 = 6
    00111 = 7 -> 010 = 2
  """

  input_size = 2
  output_size = 2

  def output_length(self, input_length):
    """See base class."""
    return (input_length + 1) // 2

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; the number is uniform among those above 0."""
    bit_rng, word_rng = jax.random.split(rng)
    bits = random_symbols.uniform_bits(bit_rng, batch_size, width)
    word_B = jax.random.bits(word_rng, (batch_size,), jnp.uint32)
    place_Wx1 = jnp.arange(width)[:, None]
    number = big_numbers.nonzero_bits(bits, place_Wx1, length, word_B)
    return task.right_align(number, length)

  def solve(self, tokens):
    """See base class."""
    bits = jnp.where(tokens == task.NO_SYMBOL, 0, tokens)
    root = big_numbers.floor_sqrt(bits[:, ::-1])[:, ::-1]
    size = self.output_length(alignment.lengths(tokens))
    place = alignment.places(size, root.shape[1])
    return jnp.where(place < 0, task.NO_SYMBOL, root)
