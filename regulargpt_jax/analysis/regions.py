"""Regions that a model's level maps into each other, if they can be found.

The guess is by history: a region for each way in which clusters (as of
`analysis.clusters`) come of C clusters or pads. Where the level contracts,
states with the same last levels are close, whatever lies below. Then ellipsoids
are grown until each holds what is to lie in it. How they are found proves
nothing; that no factor of `grown` is above 1 does.

Letters: N chunks, C chunk size, D width, k regions, S samples of a region, V
symbols.
"""

from collections.abc import Iterator
import itertools
from typing import NamedTuple

import numpy as np

from regulargpt_jax.analysis import (
  bounds,
  ellipsoids,
  extraction,
  level_map,
)

# In place of a region's number: `pad`.
PAD = -1
NUM_SAMPLES = 48
# Rounds of sampling, and of growing.
_SETTLING, _GROWING = 5, 25
_MARGIN = 0.05
# Ellipsoids are at first at least so wide, relative to their length; and so
# wide, where all samples are one point.
_LEAST_WIDTH, _LEAST_LENGTH = 0.03, 1e-4
# No hope beyond.
_MAX_NEEDED = 1e3


def chunks_of(num_regions: int, chunk_size: int) -> np.ndarray:
  """Returns all chunks of regions, [N, C], those with fewer pads first."""

  def generate() -> Iterator[tuple[int, ...]]:
    for pads in range(chunk_size):
      for rest in itertools.product(
        range(num_regions), repeat=chunk_size - pads
      ):
        yield (PAD,) * pads + rest

  return np.array(list(generate()))


def num_chunks(num_regions: int, chunk_size: int) -> int:
  """Returns how many chunks of regions there are."""
  return sum(num_regions**n for n in range(1, chunk_size + 1))


class Partition(NamedTuple):
  """Regions by the history of what they hold.

  Attributes:
    chunks: All chunks of regions, [N, C].
    products: The region that is to hold what is above each, [N].
    cluster: That each region is of, [k].
  """

  chunks: np.ndarray
  products: np.ndarray
  cluster: np.ndarray


def finer(partition: Partition, slot: int | None) -> np.ndarray:
  """Returns which chunks become regions in `refined`, bool [N]."""
  return (partition.chunks == _seen(partition, slot)).all(1)


def _seen(partition: Partition, slot: int | None, chunks_NxC=None):
  """Returns chunks in which what is to be forgotten is replaced."""
  chunks_NxC = partition.chunks if chunks_NxC is None else chunks_NxC
  if slot is None:
    return chunks_NxC
  first = np.unique(partition.cluster, return_index=True)[1]
  # Index PAD is the last entry.
  alike = np.append(first[partition.cluster], PAD)[chunks_NxC]
  alike[:, slot] = chunks_NxC[:, slot]
  return alike


def refined(partition: Partition, slot: int | None = None) -> Partition:
  """Returns regions that remember one level more.

  Each chunk of the regions before is a region now. What it stands for is their
  product, so a chunk of new regions is in the region of that chunk of products.

  With a slot, a region remembers the clusters of its other children only: it is
  a chunk in which these are the first regions of their clusters. So the
  products of the regions before must depend on no more of these children; they
  do if all refinements but the first name the same slot.

  Args:
    partition: The regions before.
    slot: The child whose history is to be remembered; None for all.
  """
  is_region = finer(partition, slot)
  made, products = partition.chunks[is_region], partition.products[is_region]
  number = {tuple(chunk): i for i, chunk in enumerate(made.tolist())}
  chunks = chunks_of(len(made), made.shape[1])
  below = _seen(partition, slot, np.append(products, PAD)[chunks])
  above = np.array([number[tuple(chunk)] for chunk in below.tolist()])
  return Partition(chunks, above, partition.cluster[products])


def _drawn(samples_kxSxD, chunks_NxC: np.ndarray, pad_D, rng) -> np.ndarray:
  """Returns chunks of states drawn from regions' samples, [N, C, D]."""
  size = samples_kxSxD.shape[1]
  number = rng.integers(size, size=chunks_NxC.shape)
  states = samples_kxSxD[np.maximum(chunks_NxC, 0), number]
  return np.where((chunks_NxC == PAD)[..., None], pad_D, states)


def sampled(config, params, samples_kxSxD, chunks_NxSxC, rng) -> np.ndarray:
  """Returns samples of what is above S chunks for each region, [N, S, D]."""
  flat = chunks_NxSxC.reshape(-1, chunks_NxSxC.shape[-1])
  pad_D = np.asarray(params['params']['pad'])
  states = _drawn(samples_kxSxD, flat, pad_D, rng)
  out = extraction.level(config, params, states.astype(np.float32))
  return out.reshape(*chunks_NxSxC.shape[:2], -1)


def settled(config, params, partition: Partition, samples_kxSxD, rng):
  """Returns samples of what regions hold after some levels more."""
  chunks, products, _ = partition
  by_region = [np.flatnonzero(products == i) for i in range(max(products) + 1)]
  for _ in range(_SETTLING):
    drawn = np.stack([rng.choice(n, NUM_SAMPLES) for n in by_region])
    samples_kxSxD = sampled(config, params, samples_kxSxD, chunks[drawn], rng)
  return samples_kxSxD


def around(samples_kxSxD: np.ndarray) -> ellipsoids.Ellipsoids:
  """Returns ellipsoids about as large as their samples."""
  samples = samples_kxSxD.astype(np.float64)
  center = samples.mean(1)
  away = samples - center[:, None]
  values, vectors = np.linalg.eigh(away.swapaxes(1, 2) @ away / NUM_SAMPLES)
  length = np.sqrt(np.maximum(values, 0.0))
  least = np.maximum(_LEAST_WIDTH * length[:, -1:], _LEAST_LENGTH)
  length = 1.5 * np.maximum(length, least)
  shape = (vectors * length[:, None]) @ vectors.swapaxes(1, 2)
  return ellipsoids.make(center, shape)


def _above(
  regions: ellipsoids.Ellipsoids, chunks_NxC: np.ndarray, w: level_map.Weights
) -> bounds.Form:
  """Returns the states above chunks with equally many pads."""
  chunk_size = chunks_NxC.shape[1]
  children = []
  for slot, region in enumerate(chunks_NxC.T):
    if region[0] == PAD:
      center = np.tile(w.pad, (len(region), 1))
      none = ellipsoids.as_form(regions.at(region), slot, chunk_size)
      children.append(none._replace(center=center, gens=0.0 * none.gens))
    else:
      children.append(ellipsoids.as_form(regions.at(region), slot, chunk_size))
  return level_map.level(children, w)


def _blocks(chunks_NxC: np.ndarray, w) -> Iterator[np.ndarray]:
  """Yields which chunks to bound at a time: with equally many pads."""
  num_pads = (chunks_NxC == PAD).sum(1)
  for pads in np.unique(num_pads):
    yield from level_map.blocks(np.flatnonzero(num_pads == pads), w)


def images(
  regions, chunks_NxC, products_N, w, targets=None
) -> ellipsoids.Image:
  """Returns the states above all chunks, as their regions show them.

  Args:
    regions: Which chunks are made of.
    chunks_NxC: The chunks.
    products_N: The region above each.
    w: Of the model.
    targets: Regions that are above, if others.
  """
  targets = regions if targets is None else targets
  parts, order = [], []
  with np.errstate(all='ignore'):  # What overflows is no proof; see `needed`.
    for block in _blocks(chunks_NxC, w):
      form = _above(regions, chunks_NxC[block], w)
      parts.append(ellipsoids.image(form, targets.at(products_N[block])))
      order.append(block)
  back = np.argsort(np.concatenate(order))
  return ellipsoids.Image(
    *(np.concatenate(x)[back] for x in zip(*parts, strict=True))
  )


def _joined(*seen: ellipsoids.Image) -> ellipsoids.Image:
  return ellipsoids.Image(*map(np.concatenate, zip(*seen, strict=True)))


def grown(regions, chunks, products, w, early=None):
  """Grows regions until they are closed, and hold what they are to hold.

  Args:
    regions: To begin with.
    chunks: All chunks of them.
    products: The region that is to hold what is above each chunk.
    w: Of the model.
    early: A form, and the region that is to hold each of its entries.

  Returns:
    The regions, and by what factor they would have to grow for each chunk and
    each early state; it is done if no factor is above 1. If it is never done,
    those that came nearest.
  """
  best = None
  for _ in range(_GROWING):
    seen, targets = images(regions, chunks, products, w), products
    if early is not None:
      form, start = early
      seen = _joined(seen, ellipsoids.image(form, regions.at(start)))
      targets = np.concatenate([products, start])
    needed = ellipsoids.needed(seen, regions.at(targets))
    if best is None or needed.max() < best[1].max():
      best = regions, needed
    if needed.max() <= 1 or not needed.max() < _MAX_NEEDED:
      break
    regions = enclosing(seen, targets, regions)
  return best


def enclosing(seen: ellipsoids.Image, label_N, regions: ellipsoids.Ellipsoids):
  """Returns regions that may hold forms, with some room.

  Args:
    seen: N forms, as regions show them.
    label_N: These regions; others are kept as they are.
    regions: All of them.
  """
  center, shape = regions.center.copy(), regions.shape.copy()
  for i in np.unique(label_N):
    those = np.flatnonzero(label_N == i)
    of_region = ellipsoids.Image(*(x[those] for x in seen))
    center[i], shape[i] = ellipsoids.enclosing(
      of_region, regions.at(i), _MARGIN
    )
  return ellipsoids.make(center, shape)


def nearest(regions: ellipsoids.Ellipsoids, center_NxD) -> np.ndarray:
  """Returns the region whose center is nearest, in its own norm, [N]."""
  away = center_NxD[:, None] - regions.center
  away = np.einsum('kij,Nkj->Nki', regions.inverse, away, optimize=True)
  return np.linalg.norm(away, axis=-1).argmin(-1)
