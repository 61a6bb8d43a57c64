"""Composition of a sequence of maps, as a tree of logarithmic depth."""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp


def compose_all(
  compose: Callable[[chex.ArrayTree, chex.ArrayTree], chex.ArrayTree],
  maps: chex.ArrayTree,
  identity: chex.ArrayTree,
) -> chex.ArrayTree:
  """Returns the composition of maps along axis 1.

  Args:
    compose: Given maps f and g, returns "f, then g", elementwise over [B, n].
    maps: A tree of arrays [B, W, ...], in the order of application.
    identity: The map that changes nothing, a tree of the same structure whose
      leaves broadcast to [B, 1, ...].

  Returns:
    A tree of arrays [B, ...].
  """

  def append_identity(x, one):
    return jnp.concatenate([x, jnp.broadcast_to(one, x[:, :1].shape)], axis=1)

  while (width := jax.tree.leaves(maps)[0].shape[1]) > 1:
    if width % 2:
      maps = jax.tree.map(append_identity, maps, identity)
    first = jax.tree.map(lambda x: x[:, 0::2], maps)
    second = jax.tree.map(lambda x: x[:, 1::2], maps)
    maps = compose(first, second)
  return jax.tree.map(lambda x: x[:, 0], maps)
