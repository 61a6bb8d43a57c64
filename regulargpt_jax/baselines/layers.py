"""Layers that the baselines share."""

import haiku as hk
import jax


def linear(x_NxI: jax.Array, features: int, name: str, **options) -> jax.Array:
  """Returns x W + b of an `hk.Linear`, [N, features]; N may be several axes.

  Their rows are put one below the other, see `regulargpt_jax.rows`.
  """
  layer = hk.Linear(features, name=name, **options)
  return hk.BatchApply(layer, x_NxI.ndim - 1)(x_NxI)
