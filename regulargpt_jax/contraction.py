"""How far a level's output moves when its inputs do: a penalty in training.

A model whose level contracts forgets small errors of its states, so that depths
that were never trained are like those that were. And it can be certified, see
`analysis.closure`. Where an automaton says what a state means, all states of
one meaning can be drawn together as well.

Letters: N chunks, C chunk size, D width, S rows of a table, Q states of an
automaton, V symbols.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from regulargpt_jax import chunk_table, model

# Chunks, and levels above the tables of short strings' states.
_NUM_CHUNKS, _NUM_LEVELS = 128, 2
# Rows of such a table, at most, and symbols that ask for as many.
_MAX_ROWS, _NUM_SYMBOLS = 2**10, 2**20
# How far inputs are moved, relative to the deviation among states.
_SIZE = 0.1
# States that are all alike have a deviation of 0, and so they may along a
# direction: this share of the mean variance is added to that of each.
_LEAST_SQUARE = 1e-6
_LEAST_SHARE = 0.03
# Of chunks, this share has pads in front.
_PADDED = 0.15
# The worst chunk is what breaks a proof: mean of so high a power.
_POWER = 2


def penalty(
  module: model.RegularGPT,
  variables: chex.ArrayTree,
  rng: chex.PRNGKey,
  transitions_QxV: np.ndarray | None = None,
) -> jax.Array:
  """Returns the squared gain of a level, about the largest among chunks.

  The mean square by which outputs move, over that by which all inputs do, each
  coordinate relative to its own variance among chunks. (The mean square would
  do for inputs, but outputs' could be enlarged by a bias; it has to have a
  gradient, or all outputs would be made small; and of the mean variance, one
  coordinate could be made most.) Chunks are of states of short strings, and of
  what the level makes of those.

  Args:
    module: Of thickness 1.
    variables: Its parameters, {'params': ...}; states have no gradient.
    rng: For the chunks, and the moves.
    transitions_QxV: The next state by state and symbol of an automaton. With
      it, what is measured is not how far a moved chunk's output is from that
      of the chunk, but from the mean of all outputs and inputs that are the
      same map of the automaton's states: the spread within clusters that are
      where they were a level before. It is relative to the covariance, so
      that all that tells maps apart counts, not just what most does.
  """
  chunk_size = module.config.chunk_size
  tables = module.apply(
    variables, _NUM_SYMBOLS, max_rows=_MAX_ROWS, method='tabulate'
  )
  states_NxD = jax.lax.stop_gradient(tables[-1][1:])
  if transitions_QxV is not None:
    maps_NxQ = _maps(transitions_QxV, chunk_size, len(tables) - 1)

  def level(x_NxCxD, present_NxC):
    out, _ = module.apply(variables, x_NxCxD, present_NxC, method='level')
    return out[:, 0]

  def units(x_NxD):
    """Returns [D, D], a root of the covariance, or of its diagonal."""
    cov_DxD = jnp.cov(x_NxD, rowvar=False, bias=True)
    if transitions_QxV is None:
      cov_DxD = jnp.diag(jnp.diag(cov_DxD))
    least = _LEAST_SHARE * jnp.mean(jnp.diag(cov_DxD)) + _LEAST_SQUARE
    return jnp.linalg.cholesky(cov_DxD + least * jnp.eye(len(cov_DxD)))

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
    noise = jax.random.normal(move, x_NxCxD.shape)
    moved = x_NxCxD + _SIZE * noise @ units(states_NxD).T
    out = level(x_NxCxD, present)
    middle = out
    if transitions_QxV is not None:
      identity = np.arange(len(transitions_QxV))
      maps = jnp.where(present[..., None], maps_NxQ[chosen], identity)
      above_NxQ = chunk_table.composed(maps)
      # Of outputs alone, levels could each shrink all distances.
      middle = _means(
        jnp.concatenate([out, states_NxD]),
        jnp.concatenate([above_NxQ, maps_NxQ]),
      )[: len(out)]
      maps_NxQ = above_NxQ
    away = level(moved, present) - middle
    away = jax.scipy.linalg.solve_triangular(units(out), away.T, lower=True)
    gain = jnp.mean(jnp.square(away), axis=0) / _SIZE**2
    # The root's derivative is infinite at 0.
    total += jnp.mean((gain + 1e-9) ** _POWER) ** (1 / _POWER)
    states_NxD = jax.lax.stop_gradient(out)
  return total / _NUM_LEVELS


def _maps(transitions_QxV, chunk_size: int, num_levels: int) -> jax.Array:
  """Returns the maps of the strings that a table has states of, [S - 1, Q]."""
  num_states, vocab_size = transitions_QxV.shape
  identity = np.arange(num_states)[None]
  maps = np.concatenate([identity, transitions_QxV.T])
  for level in range(num_levels):
    parts = chunk_table.split(vocab_size, chunk_size**level, chunk_size)
    maps = chunk_table.composed(maps[parts])
  return jnp.asarray(maps[1:])


def _means(states_NxD, maps_NxQ) -> jax.Array:
  """Returns for each state the mean of those of the same map."""
  is_same = (maps_NxQ[:, None] == maps_NxQ).all(-1).astype(states_NxD.dtype)
  return is_same @ states_NxD / is_same.sum(-1, keepdims=True)
