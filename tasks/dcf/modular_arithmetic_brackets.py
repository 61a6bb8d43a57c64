"""Modular Arithmetic, with brackets."""

from tasks import expressions, task


class ModularArithmeticBrackets(task.TokenTask):
  """What is the value, modulo 5, of an expression with brackets?

  Symbols 0 to 4 are digits, 5 '+', 6 '-', 7 '*', 8 '(', 9 ')', and 10 is never
  sampled. Every sum, difference and product stands in brackets; a digit may
  have a sign, and brackets of its own.

  Examples:
    ((2+4)*(-3)) = -18 -> 2
    (1--2) = 3 -> 3
  """

  input_size = expressions.MODULUS + 6
  input_symbols = tuple('01234+-*()_')
  output_size = expressions.MODULUS

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; for the distribution, see `expressions.sample`."""
    return expressions.sample(rng, batch_size, length, width, num_operators=3)

  def solve(self, tokens):
    """See base class."""
    return expressions.evaluate(tokens)
