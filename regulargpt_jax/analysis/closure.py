"""Proves that a model's states stay in finitely many regions.

Letters: N chunks or strings, C chunk size, D width, k regions, V symbols.
"""

import collections
from collections.abc import Callable
import heapq
from typing import NamedTuple

import chex
import numpy as np

from regulargpt_jax import chunk_table
from regulargpt_jax import config as config_lib
from regulargpt_jax.analysis import (
  bounds,
  clusters,
  ellipsoids,
  level_map,
  strings,
)
from regulargpt_jax.analysis import regions as regions_lib

# Strings whose states are bounded one by one.
MAX_STRINGS = 2**13


class Closed(NamedTuple):
  """What is proved of a model; see docs/certify.md.

  Attributes:
    first_level: l, after which every state lies in a region.
    early: For levels 1 to l - 1, the answer to each string, by the numbers of
      `chunk_table` less one.
    start: The region of each string after level l, likewise.
    chunks: All chunks of regions, [N, C], with pads in front.
    products: The region that holds the state above each chunk, [N].
    classes: The answer in each region, [k].
    worst: The largest share of its region, as a factor of the radius, that what
      is above a chunk needs, at most 1.
    margin: How much larger the answer's logit is than any other, at least.
    worst_chunk: The chunk of regions of which that is.
    centers: Of the regions, [k, D].
    shapes: Of the regions, see `ellipsoids.Ellipsoids`, [k, D, D]; None if they
      are points.
  """

  first_level: int
  early: list[np.ndarray]
  start: np.ndarray
  chunks: np.ndarray
  products: np.ndarray
  classes: np.ndarray
  worst: float
  margin: float
  worst_chunk: list[int]
  centers: np.ndarray
  shapes: np.ndarray | None


def of_points(start, chunks, products, classes, margin, centers) -> Closed:
  """Returns `Closed` of regions that are points, of the first level on."""
  return Closed(
    first_level=1,
    early=[],
    start=start,
    chunks=chunks,
    products=products,
    classes=classes,
    worst=0.0,
    margin=margin,
    worst_chunk=[],
    centers=centers,
    shapes=None,
  )


class Leak(NamedTuple):
  """Where the best attempt failed.

  Attributes:
    reason: In words.
    needed: How many times as large a region had to be, or NaN.
    num_regions: How many there were.
  """

  reason: str
  needed: float
  num_regions: int


def contents(
  closed: Closed, w: level_map.Weights, region: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns ellipsoids that hold what is above the chunks of a region.

  Returns:
    Centers [n, D], and squares of shapes, r r', [n, D, D].
  """
  regions = ellipsoids.make(closed.centers, closed.shapes)
  those = np.flatnonzero(closed.products == region)
  seen = regions_lib.images(
    regions, closed.chunks[those], closed.products[those], w
  )
  shape = closed.shapes[region]
  centers = closed.centers[region] + seen.offset @ shape.T
  return centers, shape @ seen.square @ shape.T


def answers(
  form: bounds.Form, w: level_map.Weights
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the answer in each region, and by how much its logit is largest.

  Where the margin is positive, every point's computed logits have their maximum
  there: forms hold the computed logits, and their difference is then exact.
  """
  logits = bounds.linear(form, *w.readout, w.arithmetic.unit)
  answer_N = logits.center.argmax(-1)
  margin_N = np.full(len(answer_N), np.inf)
  for other in range(logits.center.shape[-1]):
    differences = np.eye(logits.center.shape[-1])
    differences[other] -= 1.0  # Column a: logit a less the other.
    form_of = bounds.linear(logits, differences)
    least = form_of.center - bounds.radius(form_of)
    least_N = np.take_along_axis(least, answer_N[:, None], 1)[:, 0]
    least_N = np.where(answer_N == other, np.inf, least_N)
    margin_N = np.minimum(margin_N, least_N)
  return answer_N, margin_N


def close(
  config: config_lib.RegularGPTConfig,
  params: chex.ArrayTree,
  states_NxD: np.ndarray,
  label_N: np.ndarray,
  symbols_V: np.ndarray,
  max_chunks: int,
  on_attempt: Callable[[int, int], None] = lambda regions, chunks: None,
) -> Closed | Leak:
  """Looks for regions and proves that they are closed.

  Args:
    config: Of the model.
    params: Its parameters.
    states_NxD: States from many levels.
    label_N: Their clusters, from 0 and each with some: only a guess.
    symbols_V: The tokens that strings are made of.
    max_chunks: Regions are refined until there are more chunks of them.
    on_attempt: Called with the numbers of regions and of their chunks before
      these are grown.

  Raises:
    ValueError: If such models are not enclosed; see `level_map.weights`.
  """
  w = level_map.weights(config, params)
  rng = np.random.default_rng(0)
  num_labels, chunk_size = int(label_N.max()) + 1, config.chunk_size
  samples = np.stack(
    [
      states_NxD[
        rng.choice(np.flatnonzero(label_N == i), regions_lib.NUM_SAMPLES)
      ]
      for i in range(num_labels)
    ]
  )
  centers = samples.mean(1)
  chunks = regions_lib.chunks_of(num_labels, chunk_size)
  above = regions_lib.sampled(
    config, params, centers[:, None], chunks[:, None], rng
  )
  products = clusters.nearest(centers, above[:, 0])
  # A cluster that nothing comes into is none.
  best = Leak('Clusters do not compose.', np.inf, num_labels)
  if len(np.unique(products)) < num_labels:
    return best
  partition = regions_lib.Partition(chunks, products, np.arange(num_labels))
  # Chunks that there will be, and the children whose history is remembered.
  waiting, number = [(len(chunks), 0, (), partition, samples)], 0
  while waiting:
    _, _, slots, partition, samples = heapq.heappop(waiting)
    if slots:
      made = partition.chunks[regions_lib.finer(partition, slots[-1])]
      every = np.repeat(made[:, None], regions_lib.NUM_SAMPLES, axis=1)
      samples = regions_lib.sampled(config, params, samples, every, rng)
      partition = regions_lib.refined(partition, slots[-1])
    samples = regions_lib.settled(config, params, partition, samples, rng)
    on_attempt(len(samples), len(partition.chunks))
    found = _attempt(samples, partition, w, symbols_V, config.min_levels)
    if isinstance(found, Closed):
      return found
    # Closed regions with several answers in one need no growth.
    best = min(found, best, key=lambda x: np.nan_to_num(x.needed, nan=1.0))
    choices = {0: [None], 1: [None, *range(chunk_size)]}
    for slot in choices.get(len(slots), slots[-1:]):
      new = regions_lib.finer(partition, slot).sum()
      size = regions_lib.num_chunks(int(new), chunk_size)
      if size <= max_chunks:
        number += 1
        following = size, number, (*slots, slot), partition, samples
        heapq.heappush(waiting, following)
  return best


def _attempt(samples, partition, w, symbols_V, min_levels) -> Closed | Leak:
  """Grows regions from samples, and proves the rest."""
  chunks, products, _ = partition
  regions, needed = regions_lib.grown(
    regions_lib.around(samples), chunks, products, w
  )
  if needed.max() <= 1:
    result = _closed(
      regions, chunks, products, needed, w, symbols_V, min_levels
    )
    if isinstance(result, Closed):
      return result
    forms = collections.deque(strings.levels(w, symbols_V, MAX_STRINGS), 1)
    if not forms:
      return result
    form = forms[-1]
    early = form, regions_lib.nearest(regions, form.center)
    regions, needed = regions_lib.grown(regions, chunks, products, w, early)
    if needed.max() <= 1:
      needed = needed[: len(chunks)]
      return _closed(
        regions, chunks, products, needed, w, symbols_V, min_levels
      )
  worst = needed[: len(chunks)].argmax()
  if needed[worst] <= 1:
    return Leak(
      'Regions that are closed do not hold the states of all short strings;'
      f' one would need to be {needed.max():.3g} times as large.',
      float(needed.max()),
      len(regions.center),
    )
  return Leak(
    f'What the level makes of regions {_named(chunks[worst])} is not in'
    f' region {products[worst]}, which it would need to be'
    f' {needed[worst]:.3g} times as large.',
    float(needed[worst]),
    len(regions.center),
  )


def _named(chunk: np.ndarray) -> str:
  """Returns how a chunk of regions is written."""
  return ', '.join('pad' if i == regions_lib.PAD else str(i) for i in chunk)


def _closed(
  regions, chunks, products, needed, w, symbols_V, min_levels
) -> Closed | Leak:
  """Proves the rest: where strings begin, and what is answered.

  `needed`, of all chunks, is at most 1.
  """
  num_regions = len(regions.center)
  middle = ellipsoids.as_form(regions, 0, 1)
  classes, margins = answers(middle, w)
  margin = margins.min()
  if not margin > 0:
    return Leak(
      f'The answer is not the same everywhere in region {margins.argmin()}.',
      np.nan,
      num_regions,
    )
  early, worst, length, level = [], needed.max(), 1, 0
  for level, form in enumerate(strings.levels(w, symbols_V, MAX_STRINGS), 1):
    start = regions_lib.nearest(regions, form.center)
    targets = regions.at(start)
    needed_here = ellipsoids.needed(ellipsoids.image(form, targets), targets)
    if needed_here.max() <= 1:
      return Closed(
        level,
        early,
        start,
        chunks,
        products,
        classes,
        float(max(worst, needed_here.max())),
        float(margin),
        chunks[needed.argmax()].tolist(),
        regions.center,
        regions.shape,
      )
    answer_N, margin_N = answers(form, w)
    # No string is answered sooner than its length asks for.
    shortest = chunk_table.num_strings(len(symbols_V), length)
    first = 0 if level <= min_levels else shortest - 1
    is_answer = np.arange(len(answer_N)) >= first
    margin = min(margin, margin_N[is_answer].min())
    if not margin > 0:
      return Leak(
        f'The answer to a string of {length * w.bias.shape[1]} symbols or less'
        ' is not certain.',
        np.nan,
        num_regions,
      )
    early.append(answer_N)
    length *= w.bias.shape[1]
  return Leak(
    f'States after {level} levels are not in the regions yet, and there are too'
    ' many strings to bound those after one more.',
    float(needed_here.max()) if level else np.nan,
    num_regions,
  )
