"""Binary Multiplication."""

import jax.numpy as jnp

from tasks import alignment, big_numbers, task


class BinaryMultiplication(task.TokenTask):
  """What is the product of two binary numbers, the lowest digits first?

  Symbol 2 stands for '*' between them. The output is the product without
  leading zeros (they would come last), the terminator 2, then 0s; what comes
  after the terminator does not count. A string of length 1 or 2 is one number,
  without a '*': its output, too short for a product, is just the terminator,
  after a 0 where there is room.

  Examples:
    001 * 01101 is 4 * 22 = 88 -> 0001101 2 0
    11 * 11 is 3 * 3 = 9 -> 1001 2
  """

  input_size = 3
  input_symbols = tuple('01*')
  output_size = 3

  def output_length(self, input_length):
    """See base class."""
    return input_length

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; for the distribution, see `big_numbers.sample_pair`."""
    return big_numbers.sample_pair(rng, batch_size, length, width)

  def solve(self, tokens):
    """See base class."""
    n, m, is_pair = big_numbers.split_pair(tokens)
    product = big_numbers.multiply(n, m)
    length = alignment.lengths(tokens)
    # Without a second number the product is 0.
    size = jnp.where(is_pair, big_numbers.num_digits(product), length - 1)
    return alignment.terminated(product, size, length, tokens.shape[1])

  def accuracy_mask(self, target):
    """See base class; counts up to the terminator."""
    return alignment.mask_through_terminator(target)
