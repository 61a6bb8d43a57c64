"""Regions by history: which region a tree's node is in does not depend on how.

What they are compared with remembers whole trees.
"""

import numpy as np
import pytest

from regulargpt_jax.analysis import regions

_PAD = regions.PAD


def _clusters(num, chunk_size, rng):
  """Clusters that compose in some way, each of something."""
  chunks = regions.chunks_of(num, chunk_size)
  while True:
    products = rng.integers(num, size=len(chunks))
    if len(np.unique(products)) == num:
      return regions.Partition(chunks, products, np.arange(num))


def _products(partition):
  chunks = map(tuple, partition.chunks.tolist())
  return dict(zip(chunks, partition.products, strict=True))


def _name(tree, depth, slots):
  """What is remembered of a tree: nested tuples, clusters at the bottom.

  A tree is (cluster, children), children of pads None.
  """
  cluster, children = tree
  if depth == 0 or children is None:
    return cluster
  slot = slots[depth - 1]
  return tuple(
    _PAD
    if child is None
    else _name(child, depth - 1 if slot in (None, number) else 0, slots)
    for number, child in enumerate(children)
  )


@pytest.mark.parametrize(
  'num, chunk_size, slots',
  [
    (2, 2, [None]),
    (3, 2, [None, None]),
    (3, 2, [None, 0]),
    (3, 2, [None, 1, 1]),
    pytest.param(2, 3, [None, 2], marks=pytest.mark.slow),
    (2, 3, [None, 1]),
  ],
)
def test_regions_remember_what_they_are_to_remember(num, chunk_size, slots):
  rng = np.random.default_rng(0)
  clusters = _clusters(num, chunk_size, rng)
  partitions = [clusters]
  for slot in slots:
    before = partitions[-1]
    partitions.append(regions.refined(before, slot))
    expected = regions.finer(before, slot).sum()
    assert len(partitions[-1].cluster) == expected
    chunks = regions.chunks_of(expected, chunk_size)
    np.testing.assert_array_equal(partitions[-1].chunks, chunks)
  last = partitions[-1]
  above, products = _products(last), _products(clusters)
  # A tree, and in which region of the last partition it is. After some levels
  # of any region of a cluster, history is forgotten.
  trees = [
    ((c, None), int(np.flatnonzero(last.cluster == c)[0])) for c in range(num)
  ]
  seen = {}
  for level in range(len(slots) + 3):
    new = []
    for _ in range(60):
      pads = rng.integers(chunk_size)
      below = [trees[i] for i in rng.integers(len(trees), size=chunk_size)]
      below[:pads] = [None] * pads
      region = above[tuple(_PAD if x is None else x[1] for x in below)]
      cluster = products[tuple(_PAD if x is None else x[0][0] for x in below)]
      assert last.cluster[region] == cluster
      children = [None if x is None else x[0] for x in below]
      new.append(((cluster, children), region))
    trees = new
    if level >= len(slots):
      for tree, region in trees:
        name = _name(tree, len(slots), slots)
        assert seen.setdefault(name, region) == region
  # As many names as regions, and no region has two.
  assert len(set(seen.values())) == len(seen)
