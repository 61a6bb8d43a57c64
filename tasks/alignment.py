"""Moving symbols along rows, for outputs longer than one symbol.

Inputs and outputs are right-aligned, so an output column's place in its string
depends on the row's length. Letters: B batch, W padded width, N columns asked
for, O padded output width.
"""

import jax
import jax.numpy as jnp

from tasks import task

# Ends an output that is shorter than the output's length.
_TERMINATOR = 2


def lengths(tokens_BxW: jax.Array) -> jax.Array:
  """Returns each row's number of symbols, int32 [B]."""
  return jnp.sum(tokens_BxW != task.NO_SYMBOL, axis=-1, dtype=jnp.int32)


def take_columns(
  x_BxW: jax.Array, columns_BxN: jax.Array, fill: int
) -> jax.Array:
  """Returns each row's entries at the given columns, [B, N].

  Args:
    x_BxW: Rows.
    columns_BxN: Any integers.
    fill: Stands where there is no such column.
  """
  width = x_BxW.shape[1]
  taken = jnp.take_along_axis(
    x_BxW, jnp.clip(columns_BxN, 0, width - 1), axis=1
  )
  return jnp.where((columns_BxN >= 0) & (columns_BxN < width), taken, fill)


def places(lengths_B: jax.Array, width: int) -> jax.Array:
  """Returns each column's place in its right-aligned string, int32 [B, W].

  The first symbol has place 0; columns before the start have negative places.
  """
  return jnp.arange(width) - width + lengths_B[:, None]


def terminated(
  symbols_BxN: jax.Array,
  num_symbols_B: jax.Array,
  lengths_B: jax.Array,
  width: int,
) -> jax.Array:
  """Returns outputs that end early: symbols, the terminator, then zeros.

  Args:
    symbols_BxN: Left-aligned symbols, of which each row's first are kept.
    num_symbols_B: How many are kept; less than the output's length.
    lengths_B: The outputs' lengths.
    width: O, at least the longest length.

  Returns:
    Right-aligned outputs, int32 [B, O].
  """
  place_BxO = places(lengths_B, width)
  symbols = take_columns(symbols_BxN, place_BxO, 0)
  end_Bx1 = num_symbols_B[:, None]
  tail = jnp.where(place_BxO == end_Bx1, _TERMINATOR, 0)
  output = jnp.where(place_BxO < end_Bx1, symbols, tail)
  return jnp.where(place_BxO < 0, task.NO_SYMBOL, output).astype(jnp.int32)


def mask_through_terminator(target_BxOxS: jax.Array) -> jax.Array:
  """Returns 1.0 from the start of an output to its terminator, [B, O].

  Args:
    target_BxOxS: One-hot outputs; rows before the start are all zeros.
  """
  is_symbol = jnp.sum(target_BxOxS, axis=-1)
  is_end = target_BxOxS[..., _TERMINATOR]
  ends_before = jnp.cumsum(is_end, axis=-1) - is_end
  return jnp.where((is_symbol > 0) & (ends_before == 0), 1.0, 0.0)
