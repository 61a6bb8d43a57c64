"""Binary Addition."""

from tasks import alignment, big_numbers, task


class BinaryAddition(task.TokenTask):
  """What is the sum of two binary numbers, the lowest digits first?

  Symbol 2 stands for '+' between them. The output is the sum without leading
  zeros (they would come last), the terminator 2, then 0s; what comes after the
  terminator does not count. A string of length 1 or 2 is one number, without a
  '+', and so its own sum.

  Examples:
    001 + 01101 is 4 + 22 = 26 -> 01011 2 0000
    11 + 1 is 3 + 1 = 4 -> 001 2 0
  """

  input_size = 3
  input_symbols = tuple('01+')
  output_size = 3

  def output_length(self, input_length):
    """See base class."""
    return input_length + 1

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; for the distribution, see `big_numbers.sample_pair`."""
    return big_numbers.sample_pair(rng, batch_size, length, width)

  def solve(self, tokens):
    """See base class."""
    n, m, _ = big_numbers.split_pair(tokens)
    total = big_numbers.add(n, m)
    return alignment.terminated(
      total,
      big_numbers.num_digits(total),
      alignment.lengths(tokens) + 1,
      tokens.shape[1] + 1,
    )

  def accuracy_mask(self, target):
    """See base class; counts up to the terminator."""
    return alignment.mask_through_terminator(target)
