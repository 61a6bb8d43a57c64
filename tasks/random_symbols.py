"""Uniform symbols, for few random words: they are most of sampling's cost.

Letters: B batch, W padded width.
"""

import jax
import jax.numpy as jnp

from tasks import task

_WORD_BITS = 32


def uniform_bits(rng: jax.Array, batch_size: int, width: int) -> jax.Array:
  """Returns uniform bits, int32 [W, B]; row i does not depend on W.

  Every bit of a random word is used, which makes sampling a binary string
  several times faster than with a word or two a symbol.
  """
  words = jax.random.bits(
    rng, (-(-width // _WORD_BITS), batch_size), jnp.uint32
  )
  row_W = jnp.arange(width)
  bit_Wx1 = (row_W % _WORD_BITS)[:, None].astype(jnp.uint32)
  return (words[row_W // _WORD_BITS] >> bit_Wx1 & 1).astype(jnp.int32)


def uniform_symbols(
  rng: jax.Array, batch_size: int, width: int, num_symbols: int
) -> jax.Array:
  """Returns uniform symbols, int32 [W, B]; row i does not depend on W.

  One random word a symbol: a symbol's probability is off by less than 2^-32.
  """
  words = jax.random.bits(rng, (width, batch_size), jnp.uint32)
  return (words % num_symbols).astype(jnp.int32)


def uniform_strings(
  rng: jax.Array,
  batch_size: int,
  length: int | jax.Array,
  width: int,
  num_symbols: int = 2,
) -> jax.Array:
  """Returns uniform strings, right-aligned, int32 [B, W]."""
  if num_symbols == 2:
    symbols_WxB = uniform_bits(rng, batch_size, width)
  else:
    symbols_WxB = uniform_symbols(rng, batch_size, width, num_symbols)
  return task.right_align(symbols_WxB, length)
