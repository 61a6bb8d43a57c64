"""Streams of tokens without files."""

import numpy as np

from experiments.text import builder, loading


class _Records(list):
  """Records as TFDS gives them."""

  def __getitems__(self, numbers):
    assert all(i >= 0 for i in numbers)
    return [self[i] for i in numbers]


def make(tokens):
  """Returns tokens as a stream, whose last record is filled up with ones."""
  size = builder.RECORD_TOKENS
  num_records = -(-(len(tokens) - 1) // size)
  filled = np.ones(num_records * size + 1, np.uint16)
  filled[: len(tokens)] = tokens
  records = [
    {'tokens': filled[i * size : (i + 1) * size + 1]}
    for i in range(num_records)
  ]
  return loading.Stream(_Records(records), len(tokens))
