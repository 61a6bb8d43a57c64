"""Strings as people write them, and where an answer goes wrong."""

import json

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from experiments.analysis import attention, subject
from regulargpt_jax.analysis import tree


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 4))
def test_the_first_wrong_is_the_deepest_that_wrong_nodes_lead_to(
  seed, length, chunk_size
):
  rng = np.random.default_rng(seed)
  spans = tree.spans(length, chunk_size)
  is_wrong = [rng.random(len(span)) < 0.6 for span in spans]

  def deepest(level, node):
    """Returns the lowest level that wrong nodes lead to from one."""
    first, end = spans[level][node]
    ends = [level]
    for below in range(len(spans[level - 1]) if level else 0):
      start, stop = spans[level - 1][below]
      if first <= start and stop <= end and is_wrong[level - 1][below]:
        ends.append(deepest(level - 1, below))
    return min(ends)

  found = attention.find_first_wrong(is_wrong, chunk_size)
  if not is_wrong[-1][0]:
    assert found.level is None
    return
  assert found.level == deepest(len(spans) - 1, 0)
  first, end = spans[found.level][found.node]
  for level in range(found.level, len(spans)):
    # All nodes above it, up to the root, are wrong.
    for above, span in zip(is_wrong[level], spans[level], strict=True):
      if span[0] <= first and end <= span[1]:
        assert above


@given(
  st.lists(st.text('a b0$\n', min_size=1, max_size=2), min_size=1, unique=True),
  st.data(),
)
def test_strings_are_read_as_they_are_written(symbols, data):
  alphabet = subject.Subject(*[None] * 4, symbols, None, '')
  tokens = data.draw(st.lists(st.integers(0, len(symbols) - 1), max_size=8))
  string = subject.written(alphabet, tokens)
  if max(map(len, symbols)) > 1 and any(set(s) & {' ', '\n'} for s in symbols):
    assert json.loads(string) == [symbols[t] for t in tokens]
    with pytest.raises(ValueError, match='cannot be written'):
      subject.parse(alphabet, string)
  else:
    assert subject.parse(alphabet, string).tolist() == tokens
