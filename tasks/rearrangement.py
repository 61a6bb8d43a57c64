"""Base of the tasks that put a string's symbols in another order."""

import abc

import jax
import jax.numpy as jnp

from tasks import alignment, random_symbols, task


class Rearrangement(task.TokenTask):
  """A binary string whose symbols come in another order, or more than once."""

  input_size = 2
  output_size = 2

  @abc.abstractmethod
  def source(self, place: jax.Array, length: jax.Array) -> jax.Array:
    """Returns which symbol stands at a place of the answer.

    Args:
      place: Of the answer, from 0, int32 [B, O]; negative before its start,
        where what is returned does not matter.
      length: Of the string, int32 [B, 1].

    Returns:
      Indices into the string, from 0, int32 [B, O].
    """

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
    place = alignment.places(
      self.output_length(length), self.output_length(width)
    )
    column = width - length[:, None] + self.source(place, length[:, None])
    return alignment.take_columns(
      tokens, jnp.where(place < 0, -1, column), task.NO_SYMBOL
    )
