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
  """Yields boxes that hold the states after level 1, 2, ... of all strings.

  After level l these are the strings of 1 to C^l symbols, in the order of
  `chunk_table`. Proof: by induction. Children of a chunk are in boxes, with
  symbols of their own, `level_map.level` bounds what it makes of them, and a
  form lies in the box around its center with its radius.

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
    boxes = []
    for part_NxC in level_map.blocks(parts_NxC, w):
      form = level_map.level(
        [
          _boxes(center[part], radius[part], slot, chunk_size)
          for slot, part in enumerate(part_NxC.T)
        ],
        w,
      )
      boxes.append((form.center, bounds.radius(form)))
    centers, radii = map(np.concatenate, zip(*boxes, strict=True))
    yield bounds.Form(centers, np.zeros((*centers.shape, 0)), radii, 1, 0)
    center = np.concatenate([w.pad[None], centers])
    radius = np.concatenate([0 * w.pad[None], radii])
    length *= chunk_size
