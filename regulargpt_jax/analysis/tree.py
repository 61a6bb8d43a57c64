"""The nodes of `reduce`: what each stands for, and what the model makes of it.

Only these outputs does an answer use, so only they are trained. Node i of
level l, of n, ends (n - 1 - i) C^(l+1) positions before the string's end, and
stands for the C^(l+1) symbols up to there, or as many as there are.

Letters: B batch, T length, n nodes of a level, D width, H heads, C chunk size.
"""

import functools
from typing import NamedTuple

import chex
import jax
import numpy as np

from regulargpt_jax import chunk_table, depth, model
from regulargpt_jax import config as config_lib


class Trace(NamedTuple):
  """What a model computed, level by level, as arrays of NumPy.

  Attributes:
    outputs: o of section 7.2, which the next level and the readout read: the
      last block's output, behind its residual sum and norm; [B, n, D].
    attention: The last block's weights by the distance j of the position that
      is attended to, [B, n, H, C].
    logits: [B, classes].
  """

  outputs: list[np.ndarray]
  attention: list[np.ndarray]
  logits: np.ndarray


def trace(
  config: config_lib.RegularGPTConfig,
  params: chex.ArrayTree,
  tokens_BxT: np.ndarray,
) -> Trace:
  """Runs a model by 'reduce' on right-aligned strings, and keeps its nodes."""
  logits, outputs, attention = _trace(config, params, tokens_BxT)
  return Trace(
    [np.asarray(x) for x in outputs],
    [np.asarray(x) for x in attention],
    np.asarray(logits),
  )


@functools.partial(jax.jit, static_argnums=0)
def _trace(config, params, tokens_BxT):
  logits, sown = model.RegularGPT(config).apply(
    params, tokens_BxT, mutable='intermediates'
  )
  block = sown['intermediates'][f'block_{config.thickness - 1}']
  return logits, block['output'], block['attention_weights']


def spans(length: int, chunk_size: int) -> list[np.ndarray]:
  """Returns the positions that each node stands for, by level.

  Args:
    length: T.
    chunk_size: C.

  Returns:
    Integers [n, 2]: the first position, and the one after the last.
  """
  levels = []
  for level in range(depth.depth(length, chunk_size)):
    size = chunk_size ** (level + 1)
    ends = np.arange(length, 0, -size)[::-1]
    levels.append(np.stack([np.maximum(ends - size, 0), ends], axis=-1))
  return levels


def used(tokens_BxT: np.ndarray, chunk_size: int) -> list[np.ndarray]:
  """Returns which nodes a string's answer uses, by level, bool [B, n].

  Those of some symbol, at the levels that the string's own length needs.
  """
  length_B = (tokens_BxT >= 0).sum(-1)
  depth_B = np.array([depth.depth(int(t), chunk_size) for t in length_B])
  width = tokens_BxT.shape[1]
  return [
    (span_nx2[:, 1] > width - length_B[:, None]) & (level < depth_B)[:, None]
    for level, span_nx2 in enumerate(spans(width, chunk_size))
  ]


def chunks(x_BxnxF: np.ndarray, chunk_size: int, fill) -> np.ndarray:
  """Returns each node's C children, [B, ceil(n / C), C, F].

  Args:
    x_BxnxF: Of the level below, or of the string's positions.
    chunk_size: C.
    fill: What stands before the first; broadcastable to [F].
  """
  batch, num_children, *rest = x_BxnxF.shape
  missing = -num_children % chunk_size
  before = np.broadcast_to(
    np.asarray(fill, x_BxnxF.dtype), (batch, missing, *rest)
  )
  padded = np.concatenate([before, x_BxnxF], axis=1)
  return padded.reshape(batch, -1, chunk_size, *rest)


def true_maps(
  transitions_QxV: np.ndarray, tokens_BxT: np.ndarray, chunk_size: int
) -> list[np.ndarray]:
  """Returns A(sigma_{a:b}) of each node by level, integers [B, n, Q].

  Entry q is the state that the node's symbols lead to from state q (section
  7.1). Positions before a string change no state.

  Args:
    transitions_QxV: Next state by state and symbol.
    tokens_BxT: Right-aligned strings, -1 before the start.
    chunk_size: C.
  """
  identity_Q = np.arange(len(transitions_QxV))
  # The last row is for the symbol -1.
  maps = np.concatenate([transitions_QxV.T, identity_Q[None]])[tokens_BxT]
  levels = []
  for _ in range(depth.depth(tokens_BxT.shape[1], chunk_size)):
    children = chunks(maps, chunk_size, identity_Q)
    maps = chunk_table.composed(children)
    levels.append(maps)
  return levels
