"""Strings cut into chunks, of which the recurrences compute each at once.

Chunks are counted from a string's end, so that padding does not change even how
sums are rounded.

Letters: B batch, T length, N chunks, c chunk size.
"""

import jax
import jax.numpy as jnp

SIZE = 16


def split(x_BxTxany: jax.Array, fill: jax.Array | float = 0.0) -> jax.Array:
  """Returns [N, B, c, ...]; in front of the string stands `fill`."""
  batch_size, length, *rest = x_BxTxany.shape
  front = jnp.broadcast_to(fill, (batch_size, -length % SIZE, *rest))
  x = jnp.concatenate([front, x_BxTxany], axis=1)
  return x.reshape(batch_size, -1, SIZE, *rest).swapaxes(0, 1)


def joined(x_NxBxcxany: jax.Array, length: int) -> jax.Array:
  """Returns the last `length` places of all chunks, [B, T, ...]."""
  x = x_NxBxcxany.swapaxes(0, 1)
  x = x.reshape(len(x), -1, *x.shape[3:])
  return x[:, x.shape[1] - length :]
