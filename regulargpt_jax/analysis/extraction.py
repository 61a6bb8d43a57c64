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
    centers: Of the clusters, [k, D].
    symbols: The cluster of each symbol alone, [V].
    products: The cluster of what stands for cluster i, then j, [k, k].
    classes: The answer read off each cluster, [k].
  """

  centers: np.ndarray
  symbols: np.ndarray
  products: np.ndarray
  classes: np.ndarray


def compose(
  config: config_lib.RegularGPTConfig,
  params: chex.ArrayTree,
  found: clusters.Clusters,
  symbols_V: np.ndarray,
  max_clusters: int,
) -> Composition:
  """Asks a model for all symbols and for all products of two clusters.

  What falls into no cluster becomes a new one, until there is nothing new.

  Args:
    config: Of the model.
    params: Its parameters.
    found: The clusters to begin with.
    symbols_V: The tokens to ask for.
    max_clusters: Most clusters.

  Raises:
    ValueError: If there are more.
  """
  module = model.RegularGPT(config)
  embedding = np.asarray(module.apply(params, 0, method='tabulate')[0])
  symbol_VxD = level(config, params, embedding[1 + symbols_V, None])
  centers = found.centers
  while True:
    num_centers = len(centers)
    first, second = np.divmod(np.arange(num_centers**2), num_centers)
    product_NxD = level(
      config, params, np.stack([centers[first], centers[second]], axis=1)
    )
    points_NxD = np.concatenate([symbol_VxD, product_NxD])
    new = clusters.outside(centers, found.radius, points_NxD, max_clusters)
    if not len(new):
      break
    centers = np.concatenate([centers, new])
    if len(centers) > max_clusters:
      raise ValueError(
        f'No automaton can be extracted: the {len(found.centers)} clusters'
        ' found do not compose. Their products fall into new clusters, and'
        f' those again, more than max_clusters ({max_clusters}) in all.'
      )
  logits = module.apply(params, centers, method='logits')
  return Composition(
    centers,
    clusters.nearest(centers, symbol_VxD),
    clusters.nearest(centers, product_NxD).reshape(num_centers, -1),
    np.asarray(logits).argmax(-1),
  )


@functools.partial(jax.jit, static_argnums=0)
def _compiled_level(config, params, x_NxCxD, present_NxC):
  x_Nx1xD, _ = model.RegularGPT(config).apply(
    params, x_NxCxD, present_NxC, method='level'
  )
  return x_Nx1xD[:, 0]


def level(config, params, x_NxnxD) -> np.ndarray:
  """Returns the states above chunks, [N, D].

  Args:
    config: Of the model.
    params: Its parameters.
    x_NxnxD: Chunks; if n < C, with `pad` before them.
  """
  missing = config.chunk_size - x_NxnxD.shape[1]
  x_NxCxD = np.pad(x_NxnxD, ((0, 0), (missing, 0), (0, 0)))
  present_C = np.arange(config.chunk_size) >= missing
  outputs = []
  for i in range(0, len(x_NxCxD), _CHUNKS_AT_ONCE):
    x = x_NxCxD[i : i + _CHUNKS_AT_ONCE]
    present = np.broadcast_to(present_C, x.shape[:2])
    outputs.append(_compiled_level(config, params, x, present))
  return np.concatenate(outputs)


def share_composed(
  composition: Composition,
  symbol_BxT: np.ndarray,
  labels: list[np.ndarray],
  chunk_size: int,
) -> float:
  """Returns the share of nodes whose cluster is the product of their children.

  Args:
    composition: Of the clusters.
    symbol_BxT: Right-aligned strings, as indices into `composition.symbols`; -1
      before the start.
    labels: The cluster of each node by level, [B, n]; -1 for those not used.
    chunk_size: C.
  """
  nothing = -1
  symbol_cluster = np.append(composition.symbols, nothing)
  children, num_right, num_used = symbol_cluster[symbol_BxT], 0, 0
  for label_Bxn in labels:
    in_chunks = tree.chunks(children, chunk_size, nothing)
    product = in_chunks[..., 0]
    for c in range(1, chunk_size):
      following = in_chunks[..., c]
      both = composition.products[product, following]
      product = np.where(product == nothing, following, both)
    is_used = label_Bxn != nothing
    num_right += (is_used & (product == label_Bxn)).sum()
    num_used += is_used.sum()
    children = label_Bxn
  return float(num_right / num_used)


def machine(composition: Composition) -> tuple[np.ndarray, int, np.ndarray]:
  """Returns the machine that multiplies by one symbol after the other.

  Returns:
    Transitions [k + 1, V], the start, and each state's class. State i is
    cluster i; the start, k, is the empty string. A model has no answer to it,
    so that its class means nothing.
  """
  after = composition.products[:, composition.symbols]
  transitions = np.concatenate([after, composition.symbols[None]])
  return transitions, len(after), np.append(composition.classes, 0)


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
