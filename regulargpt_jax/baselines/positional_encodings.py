"""Positional encodings of the transformer baselines.

All of them see strings, not their padding: they take positions counted from a
string's first symbol, or distances.

Letters: B batch, T length, Q queries, K keys, H heads, d head size, D width, F
hidden units.
"""

import enum

import haiku as hk
import jax
import jax.numpy as jnp

from regulargpt_jax import position_biases
from regulargpt_jax.baselines import layers

# FIRE's hidden layer, and where c and L start, as in its authors' experiments.
_FIRE_HIDDEN, _FIRE_SLOPE, _FIRE_THRESHOLD = 32, 0.1, 512.0
# The positions that CoPE tells apart, as in its authors' experiments.
_COPE_POSITIONS = 64
# Of random positions at test, where nothing else is random.
_TEST_KEY = 0


class PositionalEncodings(enum.StrEnum):
  """How a transformer knows positions."""

  NONE = 'NONE'
  SIN_COS = 'SIN_COS'
  ALIBI = 'ALIBI'
  RELATIVE = 'RELATIVE'
  ROTARY = 'ROTARY'
  KERPLE = 'KERPLE'
  FIRE = 'FIRE'
  COPE = 'COPE'

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


def kerple_bias(distance_BxQxK, num_heads: int) -> jax.Array:
  """Returns what KERPLE adds to the logits, [B, H, Q, K].

  -r1 log(1 + r2 |distance|) (Chi et al., 2022, eq. 6; arXiv:2205.09921), with
  r1 and r2 learned, and others for keys after the query. They start as in
  `position_biases`.

  Args:
    distance_BxQxK: Position of the query less that of the key.
    num_heads: H.
  """

  def learned(name, top):
    def init(shape, dtype):
      init = position_biases.softplus_uniform(top)
      return init(hk.next_rng_key(), shape).astype(dtype)

    return jax.nn.softplus(
      hk.get_parameter(f'kerple_{name}', (2, num_heads), init=init)
    )

  r1, r2 = learned('r1', 2.0), learned('r2', 1.0)
  side_BxQxK = (distance_BxQxK < 0).astype(jnp.int32)
  r1, r2 = (_of_side(r, side_BxQxK) for r in (r1, r2))
  return -r1 * jnp.log1p(r2 * jnp.abs(distance_BxQxK)[:, None])


def _of_side(x_2xH, side_BxQxK) -> jax.Array:
  """Returns a head's number for each query and key, [B, H, Q, K]."""
  before, after = x_2xH[:, :, None, None]
  return jnp.where(side_BxQxK[:, None], after, before)


def fire_bias(distance_BxQxK, position_BxQ, num_heads: int) -> jax.Array:
  """Returns what FIRE adds to the logits, [B, H, Q, K].

  f(psi(|i - j|) / psi(max(L, i))) for a query at i, counted from 1, with psi(x)
  = log(1 + c x), f a layer of hidden units, and c and L learned (Li et al.,
  2024, section 3; arXiv:2310.04418). The paper's model is causal. For
  a key after the query i is counted back from the last key, so that the
  quotient stays below 1 there too, and f has outputs of its own.

  Args:
    distance_BxQxK: Position of the query less that of the key.
    position_BxQ: Of the queries, from 0.
    num_heads: H.
  """

  def scalar(name, value):
    init = hk.initializers.Constant(value)
    return jnp.abs(hk.get_parameter(f'fire_{name}', (), init=init))

  slope, threshold = scalar('c', _FIRE_SLOPE), scalar('l', 1.0)
  is_after = distance_BxQxK < 0
  longest_BxQxK = 1 + jnp.where(
    is_after, -distance_BxQxK[..., -1:], position_BxQ[..., None]
  )
  far = jnp.maximum(_FIRE_THRESHOLD * threshold, longest_BxQxK)
  share_BxQxK = jnp.log1p(slope * jnp.abs(distance_BxQxK)) / jnp.log1p(
    slope * far
  )
  hidden_BxQxKxF = jax.nn.relu(
    layers.linear(share_BxQxK[..., None], _FIRE_HIDDEN, 'fire_hidden')
  )
  bias = layers.linear(hidden_BxQxKxF, 2 * num_heads, 'fire_out')
  before, after = jnp.split(jnp.moveaxis(bias, -1, 1), 2, axis=1)
  return jnp.where(is_after[:, None], after, before)


def cope_bias(q_BxQxHxd, logits_BxHxQxK, distance_BxQxK, visible) -> jax.Array:
  """Returns what CoPE adds to the logits before they are scaled, [B, H, Q, K].

  q_i.e[p_ij], where p_ij counts, from key j to query i, each key k as
  sigmoid(logits_ik), up to 63; between whole numbers e is interpolated
  (Golovneva et al., 2024, eq. 3 to 5; arXiv:2405.18719). The paper's listing
  scales the products with keys alone. Heads share e, which starts at 0. Keys
  after the query have an e of their own.

  Args:
    q_BxQxHxd: Queries.
    logits_BxHxQxK: Their scaled products with keys.
    distance_BxQxK: Position of the query less that of the key.
    visible: Which keys a query sees, and counts; broadcasts to [B, Q, K].
  """
  gates = jax.nn.sigmoid(logits_BxHxQxK) * visible[:, None]
  distance = distance_BxQxK[:, None]
  before = jnp.cumsum((gates * (distance >= 0))[..., ::-1], axis=-1)[..., ::-1]
  after = jnp.cumsum(gates * (distance <= 0), axis=-1)
  last = _COPE_POSITIONS - 1
  position = jnp.minimum(jnp.where(distance < 0, after, before), last)
  e_2xNxd = hk.get_parameter(
    'cope', (2, _COPE_POSITIONS, q_BxQxHxd.shape[-1]), init=jnp.zeros
  )
  of_positions = jnp.einsum(
    'bqhd,nd->bhqn', q_BxQxHxd, jnp.concatenate(e_2xNxd)
  )
  floor = position.astype(jnp.int32)
  first = jnp.where(distance < 0, _COPE_POSITIONS, 0)
  lower, upper = (
    jnp.take_along_axis(of_positions, first + n, axis=-1)
    for n in (floor, jnp.minimum(floor + 1, last))
  )
  return lower + (position - floor) * (upper - lower)


def random_positions(
  position_BxT, num_positions: int, rng: jax.Array | None
) -> jax.Array:
  """Returns as many positions of a longer range, in order, drawn at random.

  A string of n symbols has n of 0..num_positions - 1, any n of them equally
  likely (Ruoss et al., 2023, section 3; arXiv:2305.16843). All strings of a
  key share the draw: the positions of a shorter one are among a longer one's.

  Args:
    position_BxT: From a string's first symbol, negative before it.
    num_positions: At least T.
    rng: Key of the draw; None, at test, for one that is always the same.

  Raises:
    ValueError: If there are fewer positions than symbols.
  """
  length = position_BxT.shape[1]
  if num_positions < length:
    raise ValueError(
      f'randomized_positions ({num_positions:,}) must be at least the number of'
      f' tokens that are read ({length:,}).'
    )
  if rng is None:
    rng = jax.random.key(_TEST_KEY)
  rank = jax.random.permutation(rng, num_positions)

  def of_string(position_T):
    num_before = jnp.cumsum(rank <= position_T[-1])
    return jnp.searchsorted(num_before, position_T + 1)

  return jax.vmap(of_string)(position_BxT)


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
  r_BxCxHxd = layers.linear(
    features.astype(dtype),
    num_heads * head_size,
    'relative_key',
    with_bias=False,
  ).reshape(*features.shape[:2], *shape)
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
