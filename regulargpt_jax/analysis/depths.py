"""Up to which depth is a model proved right, where no regions are closed?

Letters: N strings or chunks, C chunk size, D width, k regions, Q states of a
machine, V symbols.
"""

from collections.abc import Callable

import numpy as np

from regulargpt_jax import chunk_table
from regulargpt_jax.analysis import (
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

  Proof. The states after the first levels are bounded string by string. Those
  of the last of them lie in regions, one for each map of the machine's states
  that a string can be; or for each chunk of maps, if there are not too many.
  Given regions that hold the states after a level, what is above all chunks of
  these lies in the regions of the next, by `ellipsoids.needed`; which region
  is said by the maps, and so is the right answer there.

  Args:
    w: Of the model.
    machine: Transitions [Q, V], start, and answers [Q], over its symbols.
    symbols_V: The tokens that strings are made of.
    min_levels: Levels that even the shortest strings go through.
    max_chunks: No level of more chunks of regions is bounded.
  """
  transitions, start, outputs = machine
  num_symbols, chunk_size = len(symbols_V), w.bias.shape[1]
  maps = np.concatenate([[np.arange(len(outputs))], transitions.T])
  level, length = 0, 1
  for form in strings.levels(w, symbols_V, closure.MAX_STRINGS):
    parts = chunk_table.split(num_symbols, length, chunk_size)
    below, maps = maps, equivalence.composed([maps[part] for part in parts.T])
    right = _is_right(form, outputs[maps[1:, start]], w)
    # Shorter strings have been answered before.
    shortest = chunk_table.num_strings(num_symbols, length)
    if not right[0 if level < min_levels else shortest - 1 :].all():
      return level if level >= min_levels else 0
    level, length = level + 1, length * chunk_size
  if not level:
    return 0
  numbers = equivalence.Maps()
  number = numbers.numbers(maps[1:])
  chunks, products = _composition(numbers, chunk_size, max_chunks)
  if chunks is None:
    return level
  answers = outputs[numbers.maps()[:, start]]
  label = number
  if regions.num_chunks(len(chunks), chunk_size) <= max_chunks:
    answers = answers[products]
    below = np.append(numbers.numbers(below[1:]), regions.PAD)
    chunk_number = {tuple(x): i for i, x in enumerate(chunks.tolist())}
    label = [chunk_number[tuple(x)] for x in below[parts[1:] - 1].tolist()]
    label = np.array(label)
    chunks, products = regions.refined(chunks, products)
  return _further(w, form, label, chunks, products, answers, level, min_levels)


def _is_right(form, right_N, w) -> np.ndarray:
  answer_N, margin_N = closure.answers(form, w)
  return (answer_N == right_N) & (margin_N > 0)


def _composition(numbers, chunk_size, max_chunks):
  """Returns all chunks of maps and the numbers of their products.

  Products that are new are numbered, until there are none; (None, None) if
  there are too many chunks.
  """
  while True:
    num_maps = len(numbers.maps())
    if regions.num_chunks(num_maps, chunk_size) > max_chunks:
      return None, None
    chunks = regions.chunks_of(num_maps, chunk_size)
    products = chunks[:, -1]
    for child in chunks.T[-2::-1]:
      there = child != regions.PAD
      before = products[there]
      products = products.copy()
      products[there] = numbers.composed(child[there], before)
    if len(numbers.maps()) == num_maps:
      return chunks, products


def _further(w, form, label, chunks, products, answers, level, min_levels):
  """Returns how many levels are right, some of which are bounded by strings."""
  num_regions, dim = len(answers), form.center.shape[-1]
  guess = ellipsoids.make(
    np.zeros((num_regions, dim)), np.tile(np.eye(dim), (num_regions, 1, 1))
  )

  def of_strings(targets):
    return ellipsoids.image(form, targets.at(label))

  held = _holding(of_strings, label, guess)
  while held is not None and level < _MAX_LEVELS:
    there = np.isin(np.arange(num_regions), label)
    there = np.append(there, True)  # Pads are; their index is the last.
    chunk = chunks[there[chunks].all(-1)]
    label = products[there[chunks].all(-1)]

    def of_chunks(targets, held=held, chunk=chunk, label=label):
      return regions.images(held, chunk, label, w, targets)

    held = _holding(of_chunks, label, held)
    if held is None:
      break
    those = np.unique(label)
    bounded = ellipsoids.as_form(held.at(those), 0, 1)
    if not _is_right(bounded, answers[those], w).all():
      break
    level += 1
  return level if level >= min_levels else 0


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
