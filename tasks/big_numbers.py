"""Exact arithmetic on numbers of hundreds of bits, on the device.

A number is an array of digits, one row a number; unless said otherwise the
least significant comes first. Limbs are digits in base 256, in int32: a sum of
products of limbs stays exact up to 2^15 limbs.

Letters: B batch, W padded width, N digits, K limbs, M limbs of a root.
"""

import jax
import jax.numpy as jnp

from tasks import alignment, random_symbols, task

# Stands between two numbers in a string.
_SEPARATOR = 2
_LIMB_BITS = 8
_BASE = 2**_LIMB_BITS


def nonzero_bits(
  bits_WxB: jax.Array,
  place_WxB: jax.Array,
  num_bits_B: jax.Array,
  word_B: jax.Array,
) -> jax.Array:
  """Returns uniform bits made uniform among those that are not all 0.

  The number of tosses before the first head is geometric; modulo n it is so
  distributed as if heads had come within n tosses. That gives the first 1's
  place without any rejection; the bits after it stay as they are.

  Args:
    bits_WxB: Uniform bits.
    place_WxB: Each bit's place in its number, 0 to num_bits - 1, from either
      end of it.
    num_bits_B: At least 1.
    word_B: Uniform uint32, whose bits are the tosses: the distribution is
      exact to 2^-32.
  """
  first_B = jax.lax.clz(word_B).astype(jnp.int32) % num_bits_B
  bits = jnp.where(place_WxB < first_B, 0, bits_WxB)
  return jnp.where(place_WxB == first_B, 1, bits)


def sample_pair(
  rng: jax.Array, batch_size: int, length: int | jax.Array, width: int
) -> jax.Array:
  """Returns strings of two numbers, little-endian, with a 2 between them.

  The first number's length is uniform in 1 to length - 2, the second takes the
  rest; both numbers are uniform among those above 0. A string of length 1 or 2
  is one number, uniform from 0.

  Returns:
    Right-aligned tokens, int32 [B, W].
  """
  bit_rng, size_rng, word_rng = jax.random.split(rng, 3)
  bits = random_symbols.uniform_bits(bit_rng, batch_size, width)
  size_n = jax.random.randint(
    size_rng, (batch_size,), 1, jnp.maximum(length - 1, 2)
  )
  size_m = jnp.maximum(length - 1 - size_n, 1)
  word_n, word_m = jax.random.bits(word_rng, (2, batch_size), jnp.uint32)
  place = jnp.arange(width)[:, None]
  is_m = place < size_m
  numbers = nonzero_bits(
    bits,
    jnp.where(is_m, place, place - size_m - 1),
    jnp.where(is_m, size_m, size_n),
    jnp.where(is_m, word_m, word_n),
  )
  pair = jnp.where(place == size_m, _SEPARATOR, numbers)
  return task.right_align(jnp.where(length <= 2, bits, pair), length)


def split_pair(
  tokens_BxW: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Returns both numbers, [B, W] each, and whether there are two, [B].

  Where there is only one, it is the first, and the second is 0.
  """
  width = tokens_BxW.shape[1]
  is_separator = tokens_BxW == _SEPARATOR
  is_pair = jnp.any(is_separator, axis=-1)
  end = jnp.where(is_pair, jnp.argmax(is_separator, axis=-1), width)[:, None]
  start = width - alignment.lengths(tokens_BxW)[:, None]
  column = jnp.arange(width)
  n = alignment.take_columns(tokens_BxW, start + column, 0)
  n = jnp.where(column < end - start, n, 0)
  m = alignment.take_columns(tokens_BxW, end + 1 + column, 0)
  return n, m, is_pair


def num_digits(digits_BxN: jax.Array) -> jax.Array:
  """Returns the number of digits without leading zeros, [B]; 1 for 0."""
  place = jnp.arange(1, digits_BxN.shape[1] + 1)
  return jnp.max(jnp.where(digits_BxN != 0, place, 1), axis=-1)


def normalize(values_BxN: jax.Array, base: int, bound: int) -> jax.Array:
  """Returns the digits, modulo base^N, of numbers whose digits are too large.

  Args:
    values_BxN: Digits from 0 to `bound`.
    base: Of the number system.
    bound: The largest digit.
  """

  def to_next(carry_BxN):
    return jnp.pad(carry_BxN[:, :-1], ((0, 0), (1, 0)))

  while bound > 2 * (base - 1):
    values_BxN = values_BxN % base + to_next(values_BxN // base)
    bound = base - 1 + bound // base
  # Now a carry is 0 or 1. A digit of base - 1 hands on what it gets, so what
  # leaves a place was settled at the last place with another digit.
  settled = 2 * jnp.arange(values_BxN.shape[1]) + (values_BxN >= base)
  settled = jnp.where(values_BxN == base - 1, 0, settled)
  carry = jax.lax.cummax(settled, axis=1) % 2
  return (values_BxN + to_next(carry)) % base


def _to_limbs(bits_BxN: jax.Array) -> jax.Array:
  """Returns limbs [B, K] from bits."""
  batch_size, num_bits = bits_BxN.shape
  padded = jnp.pad(bits_BxN, ((0, 0), (0, -num_bits % _LIMB_BITS)))
  by_limb = padded.reshape(batch_size, -1, _LIMB_BITS)
  return jnp.sum(by_limb << jnp.arange(_LIMB_BITS), axis=-1)


def _to_bits(limbs_BxK: jax.Array) -> jax.Array:
  """Returns bits [B, 8 K] from limbs."""
  bits = limbs_BxK[..., None] >> jnp.arange(_LIMB_BITS) & 1
  return bits.reshape(limbs_BxK.shape[0], -1)


def add(n_BxN: jax.Array, m_BxN: jax.Array) -> jax.Array:
  """Returns the bits of the sums, modulo 2^N."""
  return normalize(n_BxN + m_BxN, 2, 2)


def multiply(n_BxN: jax.Array, m_BxN: jax.Array) -> jax.Array:
  """Returns the bits of the products, modulo 2^N."""
  n, m = _to_limbs(n_BxN), _to_limbs(m_BxN)
  batch_size, num_limbs = n.shape
  products_BxKxK = n[:, :, None] * m[:, None, :]
  # Moves row i by i columns, so that each column holds one power of the base:
  # after padding to 2 K columns, rows are read again as if one shorter.
  padded = jnp.pad(products_BxKxK, ((0, 0), (0, 0), (0, num_limbs)))
  skewed = padded.reshape(batch_size, -1)[:, :-num_limbs]
  skewed = skewed.reshape(batch_size, num_limbs, 2 * num_limbs - 1)
  limbs = jnp.sum(skewed[:, :, :num_limbs], axis=1)
  bound = num_limbs * (_BASE - 1) ** 2
  return _to_bits(normalize(limbs, _BASE, bound))[:, : n_BxN.shape[1]]


def floor_sqrt(bits_BxN: jax.Array) -> jax.Array:
  """Returns the bits of the floor of the square roots, [B, ceil(N / 2)].

  Digit by digit in base 256: the next digit of the root q is the remainder
  r = n - q^2 divided by 2 q, estimated from their leading limbs. Digits may be
  negative, so that an estimate off by one is made good by the next, and carries
  need not travel; only the sign of the last remainder has to be exact.
  """
  num_bits = bits_BxN.shape[1]
  # Of the root; an estimate reads three of them.
  num_limbs = max(3, -(-num_bits // (2 * _LIMB_BITS)))
  total_bits = 2 * _LIMB_BITS * num_limbs
  # From here to the root's digits the most significant limb comes first.
  bits = jnp.pad(bits_BxN, ((0, 0), (0, total_bits - num_bits)))[:, ::-1]
  # With n multiplied by 4^shift, so that one of its first two bits is 1, the
  # root's first limb is at least 128 and estimates are good.
  shift_Bx1 = jnp.argmax(bits, axis=-1, keepdims=True) // 2
  bits = alignment.take_columns(bits, 2 * shift_Bx1 + jnp.arange(total_bits), 0)
  remainder = _to_limbs(bits[:, ::-1])[:, ::-1]

  def carry(limbs):
    """Brings limbs near -128..127; the first takes what comes."""
    upward = (limbs[:, 1:] + _BASE // 2) // _BASE
    kept = jnp.pad(limbs[:, 1:] - _BASE * upward, ((0, 0), (1, 0)))
    first = jnp.pad(limbs[:, :1], ((0, 0), (0, limbs.shape[1] - 1)))
    return first + kept + jnp.pad(upward, ((0, 0), (0, 1)))

  def append(j, digit_B, root, remainder):
    """Makes the root's limb j that digit: r <- r - digit (2 q + digit)."""
    digit_Bx1 = digit_B[:, None]
    is_j = jnp.arange(num_limbs) == j
    window = jax.lax.dynamic_slice_in_dim(remainder, j + 1, num_limbs, axis=1)
    window -= digit_Bx1 * (2 * root + jnp.where(is_j, digit_Bx1, 0))
    remainder = jax.lax.dynamic_update_slice_in_dim(
      remainder, window, j + 1, axis=1
    )
    # Limbs are below 2^17; once carried below 2^10, twice within 130.
    return jnp.where(is_j, digit_Bx1, root), carry(carry(remainder))

  def step(j, state):
    root, remainder = state
    leading = jax.lax.dynamic_slice_in_dim(remainder, j - 1, 4, axis=1)
    scale = float(_BASE) ** -jnp.arange(4)
    divisor = 2 * jnp.sum(root[:, :3] * scale[:3], axis=-1)
    # Only the number 0 has a divisor of 0.
    estimate = jnp.sum(leading * scale, axis=-1) / jnp.maximum(divisor, 1)
    estimate *= _BASE**2
    digit = jnp.round(estimate).astype(jnp.int32)
    return append(j, digit, root, remainder)

  first = jnp.sqrt(
    (_BASE * remainder[:, 0] + remainder[:, 1]).astype(jnp.float32)
  )
  root = jnp.zeros((bits.shape[0], num_limbs), jnp.int32)
  state = append(0, jnp.round(first).astype(jnp.int32), root, remainder)
  root, remainder = jax.lax.fori_loop(1, num_limbs, step, state)
  # The root is right or one too large. No limb can outweigh one before it.
  leading = jnp.argmax(remainder != 0, axis=-1, keepdims=True)
  is_too_large = jnp.take_along_axis(remainder, leading, axis=1) < 0
  # Adding 255 to every limb and 1 to the last changes nothing modulo 256^M, and
  # leaves no negative digit.
  digits = (root + _BASE - 1)[:, ::-1]
  digits = digits.at[:, 0].add(jnp.where(is_too_large[:, 0], 0, 1))
  root_bits = _to_bits(normalize(digits, _BASE, 2 * _BASE))
  place = jnp.arange((num_bits + 1) // 2)
  return alignment.take_columns(root_bits, shift_Bx1 + place, 0)
