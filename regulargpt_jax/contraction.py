"""How far a level's output moves when its inputs do: a penalty in training.

A model whose level contracts forgets small errors of its states, so that depths
that were never trained are like those that were. And it can be certified, see
`analysis.closure`.

Letters: N chunks, C chunk size, D width.
"""

import chex
import jax
import jax.numpy as jnp

from regulargpt_jax import model

# Chunks, and levels above the tables of short strings' states.
_NUM_CHUNKS, _NUM_LEVELS = 128, 2
# Rows of such a table, at most, and symbols that ask for as many.
_MAX_ROWS, _NUM_SYMBOLS = 2**10, 2**20
# How far inputs are moved, relative to the deviation among states.
_SIZE = 0.1
# States that are all alike have a deviation of 0.
_LEAST_SQUARE = 1e-6
# Of chunks, this share has pads in front.
_PADDED = 0.15
# The worst chunk is what breaks a proof: mean of so high a power.
_POWER = 2


def penalty(
  module: model.RegularGPT, variables: chex.ArrayTree, rng: chex.PRNGKey
) -> jax.Array:
  """Returns the squared gain of a level, about the largest among chunks.

  The mean square by which outputs move, over that by which all inputs do, each
  relative to the variance of its kind among chunks. (The mean square would do
  for inputs, but outputs' could be enlarged by a bias; and it has to have a
  gradient, or all outputs would be made small.) Chunks are of states of short
  strings, and of what the level makes of those.

  Args:
    module: Of thickness 1.
    variables: Its parameters, {'params': ...}; states have no gradient.
    rng: For the chunks, and the moves.
  """
  chunk_size = module.config.chunk_size
  table = module.apply(
    variables, _NUM_SYMBOLS, max_rows=_MAX_ROWS, method='tabulate'
  )[-1]
  states_NxD = jax.lax.stop_gradient(table[1:])

  def level(x_NxCxD, present_NxC):
    out, _ = module.apply(variables, x_NxCxD, present_NxC, method='level')
    return out[:, 0]

  def variance(x_NxD):
    return jnp.mean(jnp.var(x_NxD, axis=0)) + _LEAST_SQUARE

  total = 0.0
  for number in range(_NUM_LEVELS):
    draw, pad, how_many, move = jax.random.split(
      jax.random.fold_in(rng, number), 4
    )
    shape = (_NUM_CHUNKS, chunk_size)
    chosen = jax.random.randint(draw, shape, 0, len(states_NxD))
    x_NxCxD = states_NxD[chosen]
    has_pads = jax.random.uniform(pad, shape[:1]) < _PADDED
    num_pads = jax.random.randint(how_many, shape[:1], 1, chunk_size)
    num_pads = jnp.where(has_pads, num_pads, 0)
    present = jnp.arange(chunk_size) >= num_pads[:, None]
    scale = _SIZE * jnp.sqrt(variance(states_NxD))
    moved = x_NxCxD + scale * jax.random.normal(move, x_NxCxD.shape)
    out = level(x_NxCxD, present)
    square = jnp.mean(jnp.square(level(moved, present) - out), axis=-1)
    gain = square / _SIZE**2 / variance(out)
    # The root's derivative is infinite at 0.
    total += jnp.mean((gain + 1e-9) ** _POWER) ** (1 / _POWER)
    states_NxD = jax.lax.stop_gradient(out)
  return total / _NUM_LEVELS
