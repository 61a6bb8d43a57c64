"""Positional encodings of the transformer baselines.

All of them see strings, not their padding: they take positions counted from a
string's first symbol, or distances.

Letters: B batch, Q queries, K keys, H heads, d head size, D width.
"""

import enum

import haiku as hk
import jax
import jax.numpy as jnp

from regulargpt_jax import position_biases


class PositionalEncodings(enum.StrEnum):
  """How a transformer knows positions."""

  NONE = 'NONE'
  SIN_COS = 'SIN_COS'
  ALIBI = 'ALIBI'
  RELATIVE = 'RELATIVE'
  ROTARY = 'ROTARY'

  @classmethod
  def _missing_(cls, value):
    raise ValueError(
      f'Unknown positional_encodings {value!r}; the known ones are'
      f' {", ".join(cls)}.'
    )


def _angles(position, num_angles: int, max_time: int) -> jax.Array:
  """Returns position / max_time^(i / num_angles), [..., num_angles]."""
  fraction = jnp.arange(num_angles) / num_angles
  return position[..., None] * max_time**-fraction


def sinusoids(position, dim: int, max_time: int) -> jax.Array:
  """Returns sines and cosines of positions, [..., dim].

  Vaswani et al., 2017, section 3.5, with the even features (sines) before the
  odd ones (cosines), as Transformer-XL has them.

  Args:
    position: Positions or distances, of any shape.
    dim: Number of features, even.
    max_time: Longest wavelength, in units of 2 pi.
  """
  angles = _angles(position, dim // 2, max_time)
  return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def rotate(x_BxTxHxd, position_BxT, max_time: int) -> jax.Array:
  """Rotates features 2i and 2i+1 by the i-th angle of the position.

  Su et al., 2021 (arXiv:2104.09864), eq. 34. The inner product of a rotated
  query and a rotated key depends on their distance only.

  Args:
    x_BxTxHxd: Queries or keys; d even.
    position_BxT: Their positions.
    max_time: As in `sinusoids`.
  """
  angles = _angles(position_BxT, x_BxTxHxd.shape[-1] // 2, max_time)
  cos, sin = jnp.cos(angles)[:, :, None], jnp.sin(angles)[:, :, None]
  even, odd = x_BxTxHxd[..., 0::2], x_BxTxHxd[..., 1::2]
  rotated = jnp.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
  return rotated.reshape(x_BxTxHxd.shape)


def alibi_bias(distance_BxQxK, num_heads: int) -> jax.Array:
  """Returns what ALiBi adds to the logits, [B, H, Q, K].

  Press et al., 2022 (arXiv:2108.12409) have -slope * distance, for keys before
  the query. Keys after it get -slope * |distance|, and those before it
  -slope * (distance - 0.5), so that the two sides differ (Deletang et al.,
  2023).

  Args:
    distance_BxQxK: Position of the query less that of the key.
    num_heads: H.
  """
  is_before = distance_BxQxK > 0
  penalty_BxQxK = jnp.abs(distance_BxQxK) - 0.5 * is_before
  slopes_H = jnp.array(position_biases.alibi_slopes(num_heads))
  return -slopes_H[:, None, None] * penalty_BxQxK[:, None]


def relative_logits(
  q_BxQxHxd, k_BxKxHxd, first_distance_B, max_time: int
) -> jax.Array:
  """Returns Transformer-XL's attention logits, [B, H, Q, K], unscaled.

  (q_i + u).k_j + (q_i + v).(W R_(i-j)), with R the sinusoids of the distance,
  and u, v and W learned (Dai et al., 2019, section 3.3; arXiv:1901.02860). The
  second term is computed for all distances at once, [B, H, Q, Q + K], and
  shifted (appendix B of the paper, for keys on both sides).

  Args:
    q_BxQxHxd: Queries.
    k_BxKxHxd: Keys.
    first_distance_B: Position of the first query less that of the first key,
      [B]; or [1], for all strings.
    max_time: As in `sinusoids`.
  """
  num_queries, num_heads, head_size = q_BxQxHxd.shape[1:]
  num_keys = k_BxKxHxd.shape[1]
  normal = hk.initializers.RandomNormal(stddev=0.02)
  shape, dtype = (num_heads, head_size), q_BxQxHxd.dtype
  content_bias = hk.get_parameter('content_bias', shape, dtype, normal)
  position_bias = hk.get_parameter('position_bias', shape, dtype, normal)

  # Column c holds distance Q-1-c, c in [0, Q + K).
  distances = num_queries - 1 - jnp.arange(num_queries + num_keys)
  features = sinusoids(
    first_distance_B[:, None] + distances, num_heads * head_size, max_time
  )
  r_BxCxHxd = hk.Linear(
    num_heads * head_size, with_bias=False, name='relative_key'
  )(features.astype(dtype)).reshape(*features.shape[:2], *shape)
  position_logits = jnp.einsum(
    'bqhd,bchd->bhqc', q_BxQxHxd + position_bias, r_BxCxHxd
  )
  content_logits = jnp.einsum(
    'bqhd,bkhd->bhqk', q_BxQxHxd + content_bias, k_BxKxHxd
  )
  return content_logits + _relative_shift(position_logits, num_keys)


def _relative_shift(logits_BxHxQxC, num_keys: int) -> jax.Array:
  """Returns y[i, j] = logits[i, Q-1-i+j], [B, H, Q, K]; C = Q + K.

  In the flat array, y[i, j] stands at i*C + Q-1-i+j = Q-1 + i*(C-1) + j: a
  slice, cut into rows of C-1.
  """
  batch_size, num_heads, num_queries, num_columns = logits_BxHxQxC.shape
  flat = logits_BxHxQxC.reshape(batch_size, num_heads, -1)
  start = num_queries - 1
  flat = flat[..., start : start + num_queries * (num_columns - 1)]
  rows = flat.reshape(batch_size, num_heads, num_queries, num_columns - 1)
  return rows[..., :num_keys]
