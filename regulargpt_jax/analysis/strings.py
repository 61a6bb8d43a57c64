"""The states of all short strings, bounded one by one.

Letters: N strings, C chunk size, D width, V symbols.
"""

from collections.abc import Iterator

import numpy as np

from regulargpt_jax import chunk_table
from regulargpt_jax.analysis import bounds, level_map


def _boxes(
  center_NxD: np.ndarray, radius_NxD: np.ndarray, slot: int, num_slots: int
) -> bounds.Form:
  """Returns boxes, of symbols that are those of one child of several."""
  dim = center_NxD.shape[-1]
  gens = np.zeros((*center_NxD.shape, num_slots * dim))
  gens[..., slot * dim : (slot + 1) * dim] = (
    np.eye(dim) * radius_NxD[:, None, :]
  )
  return bounds.Form(center_NxD, gens, np.zeros_like(center_NxD), 1, 0)


def levels(
  w: level_map.Weights, symbols_V: np.ndarray, max_strings: int
) -> Iterator[bounds.Form]:
  """Yields the states after level 1, 2, ... of all strings that have one.

  After level l these are the strings of 1 to C^l symbols, in the order of
  `chunk_table`. Proof: by induction. The state of a string is in the box around
  the center of its form, with the form's radius; children of a chunk are boxes,
  with symbols of their own, and `level_map.level` bounds what it makes of them.

  Args:
    w: Of the model.
    symbols_V: The tokens that strings are made of.
    max_strings: No level of more strings is bounded.
  """
  num_symbols, chunk_size = len(symbols_V), w.bias.shape[1]
  center = np.concatenate([w.pad[None], w.symbols[symbols_V]])
  radius = np.concatenate([0 * w.pad[None], w.symbols_slack[symbols_V]])
  length = 1
  while (
    chunk_table.num_strings(num_symbols, length * chunk_size) <= max_strings
  ):
    parts_NxC = chunk_table.split(num_symbols, length, chunk_size)[1:]
    form = level_map.level(
      [
        _boxes(center[part], radius[part], slot, chunk_size)
        for slot, part in enumerate(parts_NxC.T)
      ],
      w,
    )
    yield form
    center = np.concatenate([w.pad[None], form.center])
    radius = np.concatenate([0 * w.pad[None], bounds.radius(form)])
    length *= chunk_size
