"""Position biases: what is added to the logits of attention, by distance.

Each is an array [H, T]: a head's bias for every distance in [0, T) from the
query back to the key.

Letters: T length, H heads, N buckets.
"""

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from regulargpt_jax import lookup

# Those whose parameters all layers share: T5 says so (Raffel et al., 2020,
# section 2.1).
SHARED_BY_LAYERS = ('t5',)
# Section 2.1 of T5.
_NUM_BUCKETS = 32
_MAX_DISTANCE = 128


def alibi_slopes(num_heads: int) -> list[float]:
  """Returns ALiBi's slope of every head (Press et al., 2022, section 3).

  They are 2^(-8 h / H), h = 1..H, for H a power of two; otherwise those of the
  power of two below, and every second one of the power of two above.
  """
  power = 2 ** (num_heads.bit_length() - 1)
  slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
  between = [2 ** (-8 * (h - 0.5) / power) for h in range(1, power + 1)]
  return slopes + between[: num_heads - power]


def alibi(num_heads: int, length: int) -> jax.Array:
  """Returns -slope * distance, [H, T] (Press et al., 2022, section 3)."""
  slopes_H = np.array(alibi_slopes(num_heads))
  return jnp.asarray(-slopes_H[:, None] * np.arange(length), jnp.float32)


def kerple_log(r1_H: jax.Array, r2_H: jax.Array, length: int) -> jax.Array:
  """Returns -r1 log(1 + r2 distance), [H, T] (Chi et al., 2022, eq. 6)."""
  return -r1_H[:, None] * jnp.log1p(r2_H[:, None] * jnp.arange(length))


def t5_bucket(distance: np.ndarray) -> np.ndarray:
  """Returns the bucket of distances, integers in [0, 32), for causal attention.

  Half of the buckets are a distance each; the others grow as its logarithm up
  to distance 128, beyond which all share the last one (Raffel et al., 2020,
  section 2.1; the rounding is their code's).

  Args:
    distance: Integers >= 0, of any shape.
  """
  exact = _NUM_BUCKETS // 2
  # No distance lies where a rounded logarithm could take the wrong side.
  ratio = np.log(np.maximum(distance, exact) / exact)
  far = exact + ratio / np.log(_MAX_DISTANCE / exact) * exact
  far = np.minimum(far.astype(np.int64), _NUM_BUCKETS - 1)
  return np.where(distance < exact, distance, far)


def t5(bias_NxH: jax.Array, length: int) -> jax.Array:
  """Returns each distance's bucket's bias, [H, T]."""
  return lookup.take_rows(bias_NxH, t5_bucket(np.arange(length))).T


def softplus_uniform(top):
  """Initializes softplus(x) uniformly in [0.01, top)."""

  def init(key, shape):
    value = jax.random.uniform(key, shape, minval=0.01, maxval=top)
    return jnp.log(jnp.expm1(value))

  return init


class PositionBias(nn.Module):
  """A position bias with its parameters, in float32.

  Attributes:
    kind: 'alibi', 'kerple_log', 't5' or 'none'.
    num_heads: H.
  """

  kind: str
  num_heads: int

  @nn.compact
  def __call__(self, length: int) -> jax.Array:
    """Returns the bias, [H, T].

    KERPLE's r1 and r2 start where its authors' code has them, uniform up to 2
    and up to 1, and at least 0.01; they are kept positive by a softplus, where
    that code cuts them off at 0.01.

    Args:
      length: T.
    """
    if self.kind == 'alibi':
      return alibi(self.num_heads, length)
    if self.kind == 'kerple_log':
      r1_H, r2_H = (
        jax.nn.softplus(
          self.param(name, softplus_uniform(top), (self.num_heads,))
        )
        for name, top in (('r1', 2.0), ('r2', 1.0))
      )
      return kerple_log(r1_H, r2_H, length)
    if self.kind == 't5':
      shape = (_NUM_BUCKETS, self.num_heads)
      init = nn.initializers.normal(0.02)
      return t5(self.param('bias', init, shape), length)
    return jnp.zeros((self.num_heads, length))
