"""Few distinct chunks: run a block once per distinct chunk, then look it up.

Over a small alphabet the first levels of `reduce` meet only a handful of
different inputs. A chunk at level l covers C^(l+1) symbols, of which only a
prefix may lie before the start of the string, so it is a string of at most
C^(l+1) symbols. We number those strings in bijective base V: symbol v is the
digit v + 1, and the number of a string is sum_i digit_i V^(n-1-i). The empty
string, all padding, is 0; the shorter strings come first; and if v has exactly
s symbols, number(uv) = number(u) V^s + number(v), leading padding included.
"""

import jax
import jax.numpy as jnp
import numpy as np


def num_strings(vocab_size: int, max_length: int) -> int:
  """Returns how many strings have at most `max_length` symbols."""
  return sum(vocab_size**length for length in range(max_length + 1))


def join(numbers: jax.Array, vocab_size: int, length: int) -> jax.Array:
  """Returns the numbers of concatenated strings.

  Args:
    numbers: Integers [..., C], the numbers of C strings in order, of `length`
      symbols each, but for the first non-empty one, which may be shorter.
    vocab_size: V.
    length: Symbols in each full string.

  Returns:
    Integers [...].
  """
  chunk_size = numbers.shape[-1]
  place_values = [
    vocab_size ** (length * (chunk_size - 1 - i)) for i in range(chunk_size)
  ]
  return sum(numbers[..., i] * p for i, p in enumerate(place_values))


def split(vocab_size: int, length: int, chunk_size: int) -> np.ndarray:
  """Returns the parts of every string: `join`'s inverse, as a constant.

  Args:
    vocab_size: V.
    length: Symbols in each full part.
    chunk_size: Number of parts, C.

  Returns:
    Integers [num_strings(V, length * C), C].
  """
  number = np.arange(num_strings(vocab_size, length * chunk_size))
  place_value = vocab_size**length
  # The numbers of the strings of exactly `length` symbols start here.
  first_full = num_strings(vocab_size, length - 1)
  parts = []
  for _ in range(chunk_size):
    is_full = number >= first_full
    last = np.where(
      is_full, first_full + (number - first_full) % place_value, number
    )
    parts.append(last)
    number = (number - last) // place_value
  return np.stack(parts[::-1], axis=-1).astype(np.int32)


def composed(maps):
  """Returns where C strings, one after the other, lead from each state.

  Args:
    maps: Where each leads, integers [..., C, Q] of NumPy or of JAX, the first
      string first.

  Returns:
    Integers [..., Q] of the same.
  """
  xp = np if isinstance(maps, np.ndarray) else jnp
  result, *following = xp.moveaxis(maps, -2, 0)
  for other in following:
    result = xp.take_along_axis(other, result, axis=-1)
  return result


def in_chunks(x_BxnxF: jax.Array, chunk_size: int) -> jax.Array:
  """Splits positions into chunks from the right, [B, ceil(n / C), C, ...].

  Zeros stand before the first position where n is no multiple of C.
  """
  padding = -x_BxnxF.shape[1] % chunk_size
  x = jnp.pad(x_BxnxF, [(0, 0), (padding, 0)] + [(0, 0)] * (x_BxnxF.ndim - 2))
  return x.reshape(x.shape[0], -1, chunk_size, *x.shape[2:])
