"""Comparing at all lengths, against all strings of a few lengths."""

import itertools

import numpy as np
import pytest

from regulargpt_jax import chunk_table, depth
from regulargpt_jax.analysis import closure, equivalence, regions
from tests.regulargpt_jax.construction import tables

_PAD = regions.PAD


def _closed(rng, chunk_size, num_regions, first_level, num_classes):
  """Regions with random products, as if they had been proved."""
  chunks = regions.chunks_of(num_regions, chunk_size)
  numbers = [
    chunk_table.num_strings(2, chunk_size**level) - 1
    for level in range(1, first_level + 1)
  ]
  return closure.Closed(
    first_level,
    [rng.integers(num_classes, size=n) for n in numbers[:-1]],
    rng.integers(num_regions, size=numbers[-1]),
    chunks,
    rng.integers(num_regions, size=len(chunks)),
    rng.integers(num_classes, size=num_regions),
    1.0,
    1.0,
    [],
    np.zeros((num_regions, 1)),
    None,
  )


def _number(string):
  number = 0
  for symbol in string:
    number = 2 * number + symbol + 1
  return number - 1


def _region(closed, string, level, chunk_size):
  """The region of a string after a level, by recursion."""
  if not string:
    return _PAD
  if level == closed.first_level:
    return closed.start[_number(string)]
  size = chunk_size ** (level - 1)
  ends = [len(string) - size * i for i in range(chunk_size)][::-1]
  chunk = [
    _region(
      closed, string[max(end - size, 0) : max(end, 0)], level - 1, chunk_size
    )
    for end in ends
  ]
  where = (closed.chunks == chunk).all(1)
  return closed.products[where][0]


def _answer(closed, string, chunk_size, min_levels):
  level = max(depth.depth(len(string), chunk_size), min_levels)
  if level < closed.first_level:
    return closed.early[level - 1][_number(string)]
  return closed.classes[_region(closed, string, level, chunk_size)]


@pytest.mark.parametrize(
  ('chunk_size', 'first_level', 'min_levels', 'max_length'),
  [(2, 1, 1, 7), (2, 2, 1, 7), (2, 1, 3, 7), (3, 1, 1, 7), (3, 1, 2, 7)],
)
def test_it_finds_what_all_short_strings_show(
  chunk_size, first_level, min_levels, max_length
):
  num_equal = 0
  for seed in range(12):
    rng = np.random.default_rng(seed)
    # Half of the machines have one answer, as a quarter of the regions have.
    closed = _closed(rng, chunk_size, 2, first_level, 1 + (seed % 4 > 0))
    machine = tables.random_automaton(rng, 2, num_classes=1 + seed % 2)
    verdict = equivalence.compare(closed, machine, chunk_size, min_levels)
    wrong = {}
    for length in range(1, max_length + 1):
      level = max(depth.depth(length, chunk_size), min_levels)
      for string in itertools.product(range(2), repeat=length):
        answer = _answer(closed, string, chunk_size, min_levels)
        state = tables.states(machine[0], machine[1], np.array([string]))[0, -1]
        if answer != machine[2][state]:
          wrong.setdefault(level, []).append(list(string))
    if verdict.difference is None:
      num_equal += 1
      assert not wrong
    elif len(verdict.difference) <= max_length:
      assert min(wrong) == verdict.num_levels
      assert verdict.difference in wrong[verdict.num_levels]
  assert 0 < num_equal < 12
