"""A loss on every node of the tree, for tasks that an automaton solves.

A string leads an automaton from each of its states to some state; the map that
this is, is all that the automaton can tell of the string (it is an element of
the automaton's transition monoid). RegularGPT's nodes stand for substrings, and
a level has to compose the maps of C of them. From one answer a string, that is
a needle in a haystack where there are many maps; here each node has to tell its
own map. In training only: the readout is not used at test.

Letters: B batch, T length, n nodes of a level, C chunk size, Q states, V
symbols, S rows of a table.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax

from regulargpt_jax import chunk_table


def loss(
  node_logits: Sequence[jax.Array],
  num_levels_B: jax.Array,
  tokens_BxT: jax.Array,
  transitions_QxV: np.ndarray,
  chunk_size: int,
) -> jax.Array:
  """Returns the mean cross-entropy of the state that a node leads to, in nats.

  A mean over the states from which it may lead, over the nodes of a level that
  have a symbol, and over the levels that are not empty.

  Args:
    node_logits: As `RegularGPT.nodes` returns them, with Q^2 outputs: those of
      the first state from which, of the second, and so on.
    num_levels_B: Levels of each string; nodes above are not counted.
    tokens_BxT: Right-aligned, -1 before the start.
    transitions_QxV: The next state, by state and symbol.
    chunk_size: C.
  """
  num_states, vocab_size = transitions_QxV.shape
  # Row r is the map of the string that `chunk_table` numbers r.
  identity = np.arange(num_states)
  maps = np.concatenate([identity[None], transitions_QxV.T])
  number_Bxn = tokens_BxT + 1
  is_table = True
  total = num_counted = 0.0
  for level, logits in enumerate(node_logits):
    present_Bxn = chunk_table.in_chunks(number_Bxn > 0, chunk_size)[..., -1]
    if logits.ndim == 2:
      length = chunk_size**level
      parts = chunk_table.split(vocab_size, length, chunk_size)
      maps = chunk_table.composed(maps[parts])
      number_Bxn = chunk_table.join(
        chunk_table.in_chunks(number_Bxn, chunk_size), vocab_size, length
      )
    else:
      if is_table:
        maps = jnp.asarray(maps, jnp.int32)[number_Bxn]
        is_table = False
      number_Bxn = present_Bxn.astype(jnp.int32)
      # What is put in front is 0: then it is the identity.
      moves = chunk_table.in_chunks(maps - identity, chunk_size)
      maps = chunk_table.composed(moves + identity)
    logits = logits.reshape(*maps.shape, num_states)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, maps)
    losses = losses.mean(-1)
    counted_Bxn = present_Bxn & (level < num_levels_B)[:, None]
    if losses.ndim == 1:
      weights = jnp.zeros(len(losses)).at[number_Bxn].add(counted_Bxn)
    else:
      weights = counted_Bxn.astype(jnp.float32)
    num_nodes = weights.sum()
    total += (losses * weights).sum() / jnp.maximum(num_nodes, 1)
    num_counted += num_nodes > 0
  return total / jnp.maximum(num_counted, 1)
