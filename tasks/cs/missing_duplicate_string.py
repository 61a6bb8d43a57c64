"""Missing Duplicate String."""

import jax
import jax.numpy as jnp

from tasks import alignment, random_symbols, task

_MISSING, _BLANK = 2, 3


class MissingDuplicateString(task.TokenTask):
  """Which symbol is missing from a binary string written twice?

  Symbol 2 stands in place of the missing one. Where the length is odd, a blank,
  3, comes last. A string of length 1 has no room for two copies: it is the
  symbol 1, and so is its answer.

  Examples:
    01100210 is 0110 twice, its third symbol missing once -> 1
    1011213 is 101 twice and a blank -> 0
  """

  input_size = 4
  input_symbols = tuple('01?_')
  output_size = 2

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; symbols and the missing one's index are uniform."""
    symbol_rng, missing_rng = jax.random.split(rng)
    symbols = random_symbols.uniform_bits(symbol_rng, batch_size, width)
    num_blanks = length % 2
    # At least 1, so that the arithmetic holds for a string of length 1 too.
    half = jnp.maximum(length // 2, 1)
    place_W = jnp.arange(width) - num_blanks
    missing_B = jax.random.randint(missing_rng, (batch_size,), 0, 2 * half)
    copies = jnp.where(
      place_W[:, None] == missing_B, _MISSING, symbols[place_W % half]
    )
    last = jnp.where(length == 1, 1, _BLANK)
    return task.right_align(
      jnp.where(place_W[:, None] < 0, last, copies), length
    )

  def solve(self, tokens):
    """See base class."""
    width = tokens.shape[1]
    half = alignment.lengths(tokens) // 2
    is_missing = tokens == _MISSING
    column = jnp.argmax(is_missing, axis=-1)
    end = width - (tokens[:, -1] == _BLANK)
    twin = jnp.where(column < end - half, column + half, column - half)
    symbol = alignment.take_columns(tokens, twin[:, None], 0)[:, 0]
    return jnp.where(jnp.any(is_missing, axis=-1), symbol, 1)
