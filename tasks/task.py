"""Base classes for tasks.

`GeneralizationTask` is the interface of DeepMind's Chomsky-hierarchy benchmark
(Deletang et al., 2023): a class written for it trains here unchanged.
`TokenTask` adds what makes a task fast and its labels checkable.

Letters: B batch, W padded width, O padded output width.
"""

import abc
from collections.abc import Sequence
from typing import TypedDict

import chex
import jax
import jax.numpy as jnp

# Stands where there is no symbol. Its one-hot vector is all zeros.
NO_SYMBOL = -1


class Batch(TypedDict):
  """One-hot strings and answers."""

  input: chex.Array
  output: chex.Array


class GeneralizationTask(abc.ABC):
  """A task whose strings come in any length.

  A batch's 'input' is one-hot, [B, T, input_size]; its 'output' is one-hot too,
  [B, output_length(T), output_size], or [B, output_size] if the task's outputs
  are one symbol whatever T is.
  """

  @abc.abstractmethod
  def sample_batch(
    self, rng: chex.PRNGKey, batch_size: int, length: int
  ) -> Batch:
    """Returns `batch_size` strings of `length` symbols and their answers."""

  @property
  @abc.abstractmethod
  def input_size(self) -> int:
    """Number of input symbols."""

  @property
  @abc.abstractmethod
  def output_size(self) -> int:
    """Number of output symbols."""

  def output_length(self, input_length: int) -> int:
    """Returns the number of output symbols for an input of that length."""
    del input_length
    return 1

  def pointwise_loss_fn(
    self, output: chex.Array, target: chex.Array
  ) -> chex.Array:
    """Returns the cross-entropy by class, in nats; sum over the last axis."""
    return -target * jax.nn.log_softmax(output)

  def accuracy_fn(self, output: chex.Array, target: chex.Array) -> chex.Array:
    """Returns 1.0 where the highest logit is the target's class, else 0.0."""
    is_right = jnp.argmax(output, -1) == jnp.argmax(target, -1)
    return is_right.astype(jnp.float32)

  def accuracy_mask(self, target: chex.Array) -> chex.Array:
    """Returns 1.0 where an output symbol counts; shape of target less one."""
    return jnp.ones(target.shape[:-1])


class TokenTask(GeneralizationTask):
  """A task that samples on the device and whose labels are a function.

  Tokens are int32, right-aligned in a static width, `NO_SYMBOL` before the
  start, so that one compiled program serves every length up to the width.

  Attributes:
    answers_in_place: Whether there is an answer a symbol, which depends on the
      string up to there alone, and is read there.
  """

  answers_in_place = False

  @abc.abstractmethod
  def sample_tokens(
    self,
    rng: chex.PRNGKey,
    batch_size: int,
    length: int | jax.Array,
    width: int,
  ) -> jax.Array:
    """Returns strings for `length`, right-aligned, int32 [B, W].

    Args:
      rng: The only source of randomness. The strings do not depend on `width`.
      batch_size: B, static.
      length: At least 1; may be traced.
      width: W, static; at least `input_length(length)`, which may be less than
        `length`.
    """

  @abc.abstractmethod
  def solve(self, tokens: jax.Array) -> jax.Array:
    """Returns the answers to right-aligned tokens [B, W].

    Answers are int32 [B] if the task's outputs are one symbol at any length,
    else right-aligned, [B, output_length(W)], even if that is 1. Deterministic,
    traceable, exact.
    """

  @property
  def input_symbols(self) -> Sequence[str]:
    """How the input symbols are written for people."""
    return [str(symbol) for symbol in range(self.input_size)]

  def input_length(self, length: int) -> int:
    """Returns the number of symbols that `sample_tokens` makes for a length."""
    return length

  def sample_batch(
    self, rng: chex.PRNGKey, batch_size: int, length: int
  ) -> Batch:
    """See base class; unpadded."""
    tokens = self.sample_tokens(
      rng, batch_size, length, self.input_length(length)
    )
    return {
      'input': jax.nn.one_hot(tokens, self.input_size),
      'output': jax.nn.one_hot(self.solve(tokens), self.output_size),
    }


def right_align(from_end_WxB: jax.Array, length: int | jax.Array) -> jax.Array:
  """Returns tokens [B, W] from symbols counted from the string's end.

  Drawing random symbols as [W, B], last symbol first, makes them independent
  of W: a counter-based generator numbers its values row by row.

  Args:
    from_end_WxB: Row e holds the symbols e places before the last.
    length: Symbols to keep.
  """
  place_Wx1 = jnp.arange(from_end_WxB.shape[0])[:, None]
  kept = jnp.where(place_Wx1 < length, from_end_WxB, NO_SYMBOL)
  return kept[::-1].T.astype(jnp.int32)
