"""How many levels a sequence needs, in exact integer arithmetic."""

import jax
import jax.numpy as jnp


def depth(length: int, chunk_size: int) -> int:
  """Returns L(T) = max(1, smallest L with C^L >= T), section 3.2.

  A logarithm in floating point is wrong here: ceil(log(125) / log(5)) is 4.

  Args:
    length: Number of symbols, T >= 0.
    chunk_size: C >= 2.
  """
  levels = 1
  while chunk_size**levels < length:
    levels += 1
  return levels


def traced_depth(
  length: jax.Array, chunk_size: int, max_length: int
) -> jax.Array:
  """Returns `depth` of traced lengths, int32 of the same shape.

  Args:
    length: Integers in [0, max_length].
    chunk_size: C >= 2.
    max_length: Static upper bound.
  """
  thresholds = [
    chunk_size**level for level in range(1, depth(max_length, chunk_size))
  ]
  return 1 + sum(
    ((length > t).astype(jnp.int32) for t in thresholds),
    start=jnp.zeros_like(length, jnp.int32),
  )
