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
# How far inputs are moved, relative to their root mean square.
_SIZE = 0.1
# Of chunks, this share has pads in front.
_PADDED = 0.15
# The worst chunk is what breaks a proof: mean of so high a power.
_POWER = 2


def penalty(
  module: model.RegularGPT, variables: chex.ArrayTree, rng: chex.PRNGKey
) -> jax.Array:
  """Returns the squared gain of a level, about the largest among chunks.

  The mean square by which outputs move, over that by which all inputs do, each
  relative to the mean square of its kind. Chunks are of states of short
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

  def mean_square(x):
    return jnp.mean(jnp.square(x), axis=-1, keepdims=True)

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
    scale = _SIZE * jnp.sqrt(mean_square(x_NxCxD))
    moved = x_NxCxD + scale * jax.random.normal(move, x_NxCxD.shape)
    out = level(x_NxCxD, present)
    gain = mean_square(level(moved, present) - out)[:, 0] / _SIZE**2
    states_NxD = jax.lax.stop_gradient(out)
    gain /= mean_square(states_NxD)[:, 0]
    # The root's derivative is infinite at 0.
    total += jnp.mean((gain + 1e-9) ** _POWER) ** (1 / _POWER)
  return total / _NUM_LEVELS
