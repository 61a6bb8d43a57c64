"""Up to which depth is a model proved right, where no regions are closed?

Letters: N strings or chunks, C chunk size, D width, k regions, Q states of a
machine, V symbols.
"""

from collections.abc import Callable, Iterator
import functools

import numpy as np

from regulargpt_jax import chunk_table
from regulargpt_jax.analysis import (
  bounds,
  closure,
  ellipsoids,
  equivalence,
  level_map,
  regions,
  strings,
)

_MAX_LEVELS = 24
# Attempts at ellipsoids that hold a level's states, and their room.
_ATTEMPTS, _ROOM = 4, 1.001


def right_levels(
  w: level_map.Weights,
  machine: tuple[np.ndarray, int, np.ndarray],
  symbols_V: np.ndarray,
  min_levels: int,
  max_chunks: int,
) -> int:
  """Returns l such that all strings of up to C^l symbols are proved right.

  The states after the first levels are bounded string by string, then in
  regions; see `followed`.

  Args:
    w: Of the model.
    machine: Transitions [Q, V], start, and answers [Q], over its symbols.
    symbols_V: The tokens that strings are made of.
    min_levels: Levels that even the shortest strings go through.
    max_chunks: No level of more chunks of regions is bounded.

  Returns:
    l, up to 24; 0 if no such depth is proved.
  """
  transitions, start, outputs = machine
  num_symbols, chunk_size = len(symbols_V), w.bias.shape[1]
  maps = np.concatenate([[np.arange(len(outputs))], transitions.T])
  level, length, form = 0, 1, None
  for form in strings.levels(w, symbols_V, closure.MAX_STRINGS):
    parts = chunk_table.split(num_symbols, length, chunk_size)
    below, maps = maps, chunk_table.composed(maps[parts])
    right = _is_right(form, outputs[maps[1:, start]], w)
    # Shorter strings have been answered before.
    shortest = chunk_table.num_strings(num_symbols, length)
    if not right[0 if level < min_levels else shortest - 1 :].all():
      return level if level >= min_levels else 0
    level, length = level + 1, length * chunk_size
  if form is None:
    return 0
  held = followed(w, form, maps, below, parts, max_chunks)
  for of_level, maps_kxQ in held:
    right = _is_right(
      ellipsoids.as_form(of_level, 0, 1), outputs[maps_kxQ[:, start]], w
    )
    if level == _MAX_LEVELS or not right.all():
      break
    level += 1
  return level if level >= min_levels else 0


def _is_right(form: bounds.Form, right_N: np.ndarray, w) -> np.ndarray:
  answer_N, margin_N = closure.answers(form, w)
  return (answer_N == right_N) & (margin_N > 0)


def followed(
  w: level_map.Weights,
  form: bounds.Form,
  maps_NxQ: np.ndarray,
  below_MxQ: np.ndarray,
  parts_NxC: np.ndarray,
  max_chunks: int,
) -> Iterator[tuple[ellipsoids.Ellipsoids, np.ndarray]]:
  """Yields regions that hold all states after each further level.

  Proof. The states of strings lie in regions, one for each map of a machine's
  states; or one for each chunk of maps, if there are not too many. Given
  regions that hold the states after a level, what is above all chunks of these
  lies in the regions of the next, by `ellipsoids.needed`. Which region is said
  by the maps, and so is the right answer there.

  Args:
    w: Of the model.
    form: The states of all strings of up to some length.
    maps_NxQ: Where each string sends the machine's states. Row 0 is of the
      empty string, which `form` leaves out.
    below_MxQ: The same of their parts.
    parts_NxC: The parts of each string, 0 before it.
    max_chunks: No level of more chunks of regions is bounded.

  Yields:
    Regions, and the map of each.
  """
  numbers = equivalence.Maps()
  label_N = numbers.numbers(maps_NxQ[1:])
  partition = _composition(numbers, parts_NxC.shape[1], max_chunks)
  if partition is None:
    return
  maps_kxQ, (chunks, products, _) = numbers.maps(), partition
  if regions.num_chunks(len(chunks), chunks.shape[1]) <= max_chunks:
    number = {tuple(chunk): i for i, chunk in enumerate(chunks.tolist())}
    below_M = np.append(numbers.numbers(below_MxQ[1:]), regions.PAD)
    parts = below_M[parts_NxC[1:] - 1]  # Part 0 reads the last entry.
    label_N = np.array([number[tuple(chunk)] for chunk in parts.tolist()])
    maps_kxQ = maps_kxQ[products]
    chunks, products, _ = regions.refined(partition)
  num_regions, dim = len(maps_kxQ), form.center.shape[-1]
  unit = np.tile(np.eye(dim), (num_regions, 1, 1))
  held = ellipsoids.make(np.zeros((num_regions, dim)), unit)
  held = _holding(
    lambda new: ellipsoids.image(form, new.at(label_N)), label_N, held
  )
  while held is not None:
    # Some regions may be of no string yet. Index PAD is the last entry.
    there = np.append(np.isin(np.arange(num_regions), label_N), True)
    is_there = there[chunks].all(-1)
    label_N = products[is_there]
    above = functools.partial(
      regions.images, held, chunks[is_there], label_N, w
    )
    held = _holding(above, label_N, held)
    if held is not None:
      those = np.unique(label_N)
      yield held.at(those), maps_kxQ[those]


def _composition(
  numbers: equivalence.Maps, chunk_size: int, max_chunks: int
) -> regions.Partition | None:
  """Returns all chunks of maps and the numbers of their products.

  Products that are new are numbered, until there are none; None if there are
  too many chunks.
  """
  while True:
    num_maps = len(numbers.maps())
    if regions.num_chunks(num_maps, chunk_size) > max_chunks:
      return None
    chunks = regions.chunks_of(num_maps, chunk_size)
    products = chunks[:, -1].copy()
    for child in chunks.T[-2::-1]:
      there = child != regions.PAD
      products[there] = numbers.composed(child[there], products[there])
    if len(numbers.maps()) == num_maps:
      return regions.Partition(chunks, products, np.arange(num_maps))


def _holding(
  images: Callable[[ellipsoids.Ellipsoids], ellipsoids.Image],
  label_N: np.ndarray,
  guess: ellipsoids.Ellipsoids,
) -> ellipsoids.Ellipsoids | None:
  """Returns regions that are proved to hold forms, if any are found.

  Args:
    images: The forms, as each its own region of those given shows them.
    label_N: The region that is to hold each form. Others are kept.
    guess: What regions may be like.
  """
  held = guess
  with np.errstate(all='ignore'):  # What overflows is no proof.
    for attempt in range(_ATTEMPTS):
      seen = images(held)
      needed = ellipsoids.needed(seen, held.at(label_N))
      if not np.isfinite(needed).all():
        return None
      if attempt == 0:
        held = regions.enclosing(seen, label_N, held)
        continue
      if needed.max() <= 1:
        return held
      grow_k = np.ones(len(held.center))
      np.maximum.at(grow_k, label_N, _ROOM * needed)
      held = ellipsoids.make(held.center, held.shape * grow_k[:, None, None])
  return None
