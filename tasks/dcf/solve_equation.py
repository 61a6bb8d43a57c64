"""Solve Equation."""

import jax
import jax.numpy as jnp

from tasks import expressions, task

_OPEN, _CLOSE, _UNKNOWN, _EQUALS = 7, 8, 9, 10


class SolveEquation(task.TokenTask):
  """Which digit is the unknown of an equation modulo 5?

  Symbols 0 to 4 are digits, 5 '+', 6 '-', 7 '(', 8 ')', 9 'x', 10 '='. On the
  left is an expression with brackets, x in place of one of its digits; on the
  right its value. Without products x has the factor 1 or -1, so that exactly
  one digit fits. An equation has at least 3 symbols: shorter strings are all 0,
  and so is their answer.

  Examples:
    (x+4)=2 -> 3
    (2-(1-x))=0 -> 4
  """

  input_size = expressions.MODULUS + 6
  input_symbols = tuple('01234+-()x=')
  output_size = expressions.MODULUS

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; the unknown is uniform among the digits.

    For the expression's distribution, see `expressions.sample`.
    """
    if width < 3:
      return task.right_align(jnp.zeros((width, batch_size), jnp.int32), length)
    expression_rng, unknown_rng = jax.random.split(rng)
    left = expressions.sample(
      expression_rng,
      batch_size,
      jnp.maximum(length - 2, 1),
      width - 2,
      num_operators=2,
    )
    is_digit = (left >= 0) & (left < expressions.MODULUS)
    digit_number = jnp.cumsum(is_digit, axis=-1)
    unknown_B = 1 + jax.random.randint(
      unknown_rng, (batch_size,), 0, digit_number[:, -1]
    )
    is_unknown = is_digit & (digit_number == unknown_B[:, None])
    # There are no products here, so the brackets' symbols are one lower.
    symbols = left - (left >= expressions.OPEN)
    symbols = jnp.where(is_unknown, _UNKNOWN, symbols)
    value_Bx1 = expressions.evaluate(left)[:, None]
    equals_Bx1 = jnp.full((batch_size, 1), _EQUALS)
    equation = jnp.concatenate([symbols, equals_Bx1, value_Bx1], axis=-1)
    is_inside = jnp.arange(width)[::-1] < length
    short = jnp.where(is_inside, 0, task.NO_SYMBOL)
    return jnp.where(length < 3, short, equation)

  def solve(self, tokens):
    """See base class.

    The left side is c + f x: its value at x = 0 and at x = 1 tells c and f.
    """
    if tokens.shape[1] < 3:
      return jnp.zeros_like(tokens[:, 0])
    left, value = tokens[:, :-2], tokens[:, -1]
    is_bracket = (left == _OPEN) | (left == _CLOSE)
    is_unknown = left == _UNKNOWN
    expression = left + is_bracket
    at_0, at_1 = jnp.split(
      expressions.evaluate(
        jnp.concatenate(
          [
            jnp.where(is_unknown, 0, expression),
            jnp.where(is_unknown, 1, expression),
          ]
        )
      ),
      2,
    )
    # The factor is 1 or -1, its own inverse. Without an unknown it is 0.
    return (value - at_0) * (at_1 - at_0) % expressions.MODULUS
