"""Reverse String."""

from tasks import alignment, random_symbols, task


class ReverseString(task.TokenTask):
  """What is a binary string read backwards?

  Examples:
    011010 -> 010110
    110 -> 011
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
    # The symbol at place p comes from p columns before the last.
    place = alignment.places(alignment.lengths(tokens), width)
    return alignment.take_columns(tokens, width - 1 - place, task.NO_SYMBOL)
