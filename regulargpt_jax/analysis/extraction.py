"""An automaton out of a model: its clusters are the maps, and it composes them.

Letters: N chunks, C chunk size, D width, V symbols, k clusters, Q states.
"""

import functools
from typing import NamedTuple

import chex
import jax
import numpy as np

from regulargpt_jax import config as config_lib
from regulargpt_jax import model
from regulargpt_jax.analysis import clusters, tree

_CHUNKS_AT_ONCE = 2**12


class Composition(NamedTuple):
  """What a model does to clusters.

  Attributes:
    symbol_V: The cluster of each symbol alone.
    product_kxk: The cluster of what stands for cluster i, then cluster j.
    class_k: The answer read off each cluster.
  """

  symbol_V: np.ndarray
  product_kxk: np.ndarray
  class_k: np.ndarray


def compose(
  config: config_lib.RegularGPTConfig,
  params: chex.ArrayTree,
  centers_kxD: np.ndarray,
) -> Composition:
  """Asks a model for all symbols and for all products of two clusters."""
  module = model.RegularGPT(config)
  embedding = np.asarray(module.apply(params, 0, method='tabulate')[0])
  num_centers = len(centers_kxD)
  first, second = np.divmod(np.arange(num_centers**2), num_centers)
  pairs_Nx2xD = np.stack([centers_kxD[first], centers_kxD[second]], axis=1)
  outputs = _level(config, params, embedding[1:, None])
  products = _level(config, params, pairs_Nx2xD)
  logits = module.apply(params, centers_kxD, method='logits')
  return Composition(
    clusters.nearest(centers_kxD, outputs),
    clusters.nearest(centers_kxD, products).reshape(num_centers, -1),
    np.asarray(logits).argmax(-1),
  )


@functools.partial(jax.jit, static_argnums=0)
def _compiled_level(config, params, x_NxCxD, present_NxC):
  x_Nx1xD, _ = model.RegularGPT(config).apply(
    params, x_NxCxD, present_NxC, method='level'
  )
  return x_Nx1xD[:, 0]


def _level(config, params, x_NxnxD) -> np.ndarray:
  """Returns the outputs of chunks with `pad` before their n <= C entries."""
  missing = config.chunk_size - x_NxnxD.shape[1]
  x_NxCxD = np.pad(x_NxnxD, ((0, 0), (missing, 0), (0, 0)))
  present_C = np.arange(config.chunk_size) >= missing
  outputs = []
  for i in range(0, len(x_NxCxD), _CHUNKS_AT_ONCE):
    x = x_NxCxD[i : i + _CHUNKS_AT_ONCE]
    present = np.broadcast_to(present_C, x.shape[:2])
    outputs.append(np.asarray(_compiled_level(config, params, x, present)))
  return np.concatenate(outputs)


def share_composed(
  composition: Composition,
  tokens_BxT: np.ndarray,
  labels: list[np.ndarray],
  chunk_size: int,
) -> float:
  """Returns the share of nodes whose cluster is the product of their children.

  Args:
    composition: Of the clusters.
    tokens_BxT: Strings of one length.
    labels: The cluster of each node by level, [B, n].
    chunk_size: C.
  """
  nothing = -1
  children, num_right = composition.symbol_V[tokens_BxT], 0
  for label_Bxn in labels:
    in_chunks = tree.chunks(children, chunk_size, nothing)
    product = in_chunks[..., 0]
    for c in range(1, chunk_size):
      following = in_chunks[..., c]
      both = composition.product_kxk[product, following]
      product = np.where(product == nothing, following, both)
    num_right += (product == label_Bxn).sum()
    children = label_Bxn
  return float(num_right / sum(label.size for label in labels))


def machine(composition: Composition) -> tuple[np.ndarray, int, np.ndarray]:
  """Returns the machine that multiplies by one symbol after the other.

  Returns:
    Transitions [k + 1, V], the start, and each state's class. State i is
    cluster i; the start, k, is the empty string. A model has no answer to it,
    so that its class means nothing.
  """
  symbol_V = composition.symbol_V
  after = composition.product_kxk[:, symbol_V]
  transitions = np.concatenate([after, symbol_V[None]])
  return transitions, len(after), np.append(composition.class_k, 0)


def shortest_difference(
  one: tuple[np.ndarray, int, np.ndarray],
  other: tuple[np.ndarray, int, np.ndarray],
) -> list[int] | None:
  """Returns a shortest string of at least one symbol with two answers.

  Args:
    one: Transitions [Q, V], start and classes [Q] of a machine.
    other: Of another, over the same symbols.

  Returns:
    Its symbols; None if the machines are equivalent.
  """
  strings = {(one[1], other[1]): []}
  reached = list(strings)
  for pair in reached:  # Grows while new pairs are met: breadth first.
    for symbol in range(one[0].shape[1]):
      after = (int(one[0][pair[0], symbol]), int(other[0][pair[1], symbol]))
      string = [*strings[pair], symbol]
      if one[2][after[0]] != other[2][after[1]]:
        return string
      if after not in strings:
        strings[after] = string
        reached.append(after)
  return None
