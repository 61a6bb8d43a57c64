"""Is a model with closed regions right on every string?

Letters: C chunk size, N strings or chunks, Q states of a machine, V symbols.
"""

import itertools
from typing import NamedTuple

import numpy as np

from regulargpt_jax import chunk_table
from regulargpt_jax.analysis import closure, regions

_CHUNKS_AT_ONCE = 2**20
_MAX_MAPS = 2**32


class Verdict(NamedTuple):
  """What comparing a model with a machine gave.

  Attributes:
    difference: A string that they answer differently, of as few levels as any;
      None if they are equal on every string.
    num_levels: After so many levels, nothing new came.
  """

  difference: list[int] | None
  num_levels: int


class _Strings(NamedTuple):
  """What strings of one level can be.

  Attributes:
    pairs: Of a region and the number of a map of states, see `_pair`; [N].
    below: A chunk of pairs of the level below that gives each, [N, C]; where
      these are full, behind those that are not. Tokens, at the first level.
  """

  pairs: np.ndarray
  below: np.ndarray


def _pair(region_N: np.ndarray, map_N: np.ndarray) -> np.ndarray:
  """Returns pairs as one number each."""
  return region_N.astype(np.int64) * _MAX_MAPS + map_N


def _region(pair_N: np.ndarray) -> np.ndarray:
  return pair_N // _MAX_MAPS  # Rounds down: `PAD` is negative.


class Maps:
  """Numbers maps of states in the order in which they come."""

  def __init__(self):
    self._number = {}

  def numbers(self, maps_NxQ: np.ndarray) -> np.ndarray:
    """Returns the numbers of maps, [N]."""
    rows = np.ascontiguousarray(maps_NxQ, np.int64)
    number = [
      self._number.setdefault(row.tobytes(), len(self._number)) for row in rows
    ]
    return np.array(number, np.int64)

  def maps(self) -> np.ndarray:
    """Returns the maps so far, [M, Q]."""
    rows = [np.frombuffer(row, np.int64) for row in self._number]
    return np.stack(rows)

  def composed(self, one_N: np.ndarray, other_N: np.ndarray) -> np.ndarray:
    """Returns the numbers of maps, one before the other."""
    maps_MxQ = self.maps()
    both, where = np.unique(
      one_N * len(maps_MxQ) + other_N, return_inverse=True
    )
    one, other = np.divmod(both, len(maps_MxQ))
    maps = np.take_along_axis(maps_MxQ[other], maps_MxQ[one], axis=1)
    return self.numbers(maps)[where.reshape(-1)]


def _unique(pairs: np.ndarray, below: np.ndarray) -> _Strings:
  """Returns each pair once."""
  pairs, first = np.unique(pairs, return_index=True)
  return _Strings(pairs, below[first])


def compare(
  closed: closure.Closed,
  machine: tuple[np.ndarray, int, np.ndarray],
  chunk_size: int,
  min_levels: int,
) -> Verdict:
  """Compares the answers to all strings.

  Proof. After level l a state is of at most C^l symbols; it is full if of just
  so many. Which pairs of a region and a map of states occur after a level, in
  full states and in others, follows from which do after the one before: a full
  one is of C full ones, another of pads, one of either kind, and full ones. So
  these two sets are those of every level, and once they are as they were
  before, nothing new comes. An answer is that of a string's last level, which
  no string has left sooner than C^(l - 1) symbols ask for.

  Args:
    closed: What is proved of the model.
    machine: Transitions [Q, V], start, and classes [Q], over its symbols.
    chunk_size: C.
    min_levels: Levels that even the shortest strings go through.
  """
  transitions, start, outputs = machine
  num_symbols = transitions.shape[1]
  maps, length = np.concatenate([[np.arange(len(outputs))], transitions.T]), 1
  tokens = [[], *([v] for v in range(num_symbols))]
  for level in range(1, closed.first_level + 1):
    parts = chunk_table.split(num_symbols, length, chunk_size)
    maps = chunk_table.composed(maps[parts])
    tokens = [
      list(itertools.chain(*(tokens[i] for i in part)))
      for part in parts.tolist()
    ]
    length *= chunk_size
    if level < closed.first_level:
      classes = closed.early[level - 1]
    else:
      classes = closed.classes[closed.start]
    length_N = np.array([len(string) for string in tokens[1:]])
    is_last = _is_last(level, min_levels, length_N > length // chunk_size)
    wrong = is_last & (classes != outputs[maps[1:, start]])
    if wrong.any():
      return Verdict(tokens[1 + int(wrong.argmax())], level)
  numbers = Maps()
  pairs = _pair(closed.start, numbers.numbers(maps[1:]))
  below = np.arange(1, len(maps))[:, None]
  is_full = length_N == length
  part = _unique(pairs[~is_full], below[~is_full])
  full = _unique(pairs[is_full], below[is_full])
  table = np.full((len(closed.classes) + 1,) * chunk_size, -1)
  table[tuple(closed.chunks.T)] = closed.products
  history, seen = [(part, full)], set()
  while True:
    # The same sets lead to the same, once all depths are answered alike.
    key = min(level, min_levels), part.pairs.tobytes(), full.pairs.tobytes()
    if key in seen:
      return Verdict(None, level - 1)
    seen.add(key)
    level += 1
    part, full, last = _next(part, full, table, numbers, level, min_levels)
    right = outputs[numbers.maps()[last.pairs % _MAX_MAPS, start]]
    wrong = closed.classes[_region(last.pairs)] != right
    if wrong.any():
      chunk = last.below[wrong.argmax()]
      return Verdict(_string(chunk, history, tokens), level)
    history.append((part, full))


def _is_last(level: int, min_levels: int, is_long):
  """Returns whether strings are answered after a level."""
  if level < min_levels:
    return False & is_long
  return is_long | (level == min_levels) | (level == 1)


def _next(
  part: _Strings,
  full: _Strings,
  table: np.ndarray,
  numbers: Maps,
  level: int,
  min_levels: int,
) -> tuple[_Strings, _Strings, _Strings]:
  """Returns what is not full, full, and answered, after one level more."""
  chunk_size, num_part = table.ndim, len(part.pairs)
  pairs = np.concatenate([part.pairs, full.pairs])
  region = np.append(_region(pairs), regions.PAD)
  map_number = pairs % _MAX_MAPS
  either = np.arange(len(pairs))
  kinds = {'part': [], 'full': [], 'last': []}
  for pads in range(chunk_size):
    choices = [[regions.PAD]] * pads + [either]
    choices += [either[num_part:]] * (chunk_size - pads - 1)
    chunks = np.stack(np.meshgrid(*choices, indexing='ij'), -1)
    chunks = chunks.reshape(-1, chunk_size)
    for i in range(0, len(chunks), _CHUNKS_AT_ONCE):
      chunk = chunks[i : i + _CHUNKS_AT_ONCE]
      composed_N = map_number[chunk[:, pads]]
      for child in chunk.T[pads + 1 :]:
        composed_N = numbers.composed(composed_N, map_number[child])
      new = _pair(table[tuple(region[chunk].T)], composed_N)
      # A chunk with more than one child needs this level.
      is_long = np.full(len(chunk), pads < chunk_size - 1)
      is_full = (chunk[:, 0] >= num_part) & (pads == 0)
      for kind, which in (
        ('part', ~is_full),
        ('full', is_full),
        ('last', _is_last(level, min_levels, is_long)),
      ):
        if which.any():
          kinds[kind].append(_unique(new[which], chunk[which]))

  def joined(found):
    if not found:
      return _Strings(pairs[:0], np.zeros((0, chunk_size), int))
    return _unique(*map(np.concatenate, zip(*found, strict=True)))

  return tuple(joined(found) for found in kinds.values())


def _string(chunk, history, tokens) -> list[int]:
  """Returns a string of a chunk of the last level in `history`."""
  result, (part, full) = [], history[-1]
  below = np.concatenate([part.below, full.below])
  for child in chunk:
    if child == regions.PAD:
      continue
    if len(history) == 1:
      result += tokens[below[child, 0]]
    else:
      result += _string(below[child], history[:-1], tokens)
  return result
