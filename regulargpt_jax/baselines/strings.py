"""What all baselines ask of one-hot strings; a row of zeros is no symbol.

Letters: B batch, T length, V symbols.
"""

import jax
import jax.numpy as jnp


def is_symbol(x_BxTxV: jax.Array) -> jax.Array:
  """Returns where there is a symbol, bool [B, T]."""
  return jnp.any(x_BxTxV != 0, axis=-1)


def num_symbols(x_BxTxV: jax.Array) -> jax.Array:
  """Returns the strings' lengths, int [B]."""
  return is_symbol(x_BxTxV).sum(axis=-1)


def with_time(x: jax.Array) -> jax.Array:
  """Returns strings [B, T, V]; [B, V] is read as T = 1."""
  return x[:, None] if x.ndim == 2 else x
