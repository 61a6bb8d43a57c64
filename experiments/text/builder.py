"""Tokens as a TFDS dataset in array_record files, without TensorFlow.

The documents of a split are one stream of tokens: end-of-text, then each
document and end-of-text. Record i holds its positions 512 i .. 512 i + 512, so
a record is a training sequence of the paper (section 5: 512 tokens, and the one
to predict after the last), every token is predicted in exactly one, and
consecutive records overlap by one token and join to a context of any length.
The last record is filled up with end-of-text.
"""

from collections.abc import Iterator, Sequence
import functools
import math
import os
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
import tqdm

from experiments.text import splits, tokenizers

RECORD_TOKENS = 512
_RECORDS_PER_SHARD = 2**17  # 128 MiB.


class _Info(tfds.core.DatasetInfo):
  """What TFDS keeps of a dataset."""

  def initialize_from_bucket(self) -> None:
    """Asks nobody: TFDS's own bucket has no such dataset.

    TFDS itself does not ask either, but leaves a temporary folder behind.
    """


class TextTokens(tfds.core.ShardBasedBuilder):
  """OpenWebText2, or other text, as tokens; a config is a tokenizer."""

  VERSION = tfds.core.Version('1.0.0')
  BUILDER_CONFIGS = [  # noqa: RUF012
    tfds.core.BuilderConfig(name=name) for name in tokenizers.TOKENIZERS
  ]

  def __init__(
    self,
    *,
    data_dir: str,
    config: str,
    pieces: Sequence[str] = (),
    metadata: dict[str, Any] | None = None,
    bar: tqdm.tqdm | None = None,
  ):
    """Initializes.

    Args:
      data_dir: The folder that holds the dataset's own.
      config: Name of the tokenizer.
      pieces: To prepare: see `pieces.make_pieces`.
      metadata: To prepare: what to store beside the tokens; `end_of_text`, and
        `num_tokens` of the streams, by split, are needed.
      bar: To prepare: told of every record.
    """
    self._pieces = pieces
    self._stored = metadata
    self._bar = bar
    super().__init__(
      data_dir=data_dir, config=config, file_format='array_record'
    )

  def _info(self) -> tfds.core.DatasetInfo:
    tokens = tfds.features.Tensor(
      shape=(RECORD_TOKENS + 1,),
      dtype=tokenizers.TOKEN_DTYPE,
      # A third of the time to write, less space, than a list of integers.
      encoding=tfds.features.Encoding.BYTES,
    )
    return _Info(
      builder=self,
      description='Documents joined by end-of-text, in overlapping records.',
      features=tfds.features.FeaturesDict({'tokens': tokens}),
      metadata=tfds.core.MetadataDict(self._stored or {}),
      disable_shuffling=True,
    )

  def _shard_iterators_per_split(self, dl_manager):
    del dl_manager
    shards = {}
    for split in splits.SPLITS:
      num_records = num_windows(
        self._stored['num_tokens'][split], RECORD_TOKENS
      )
      num_shards = math.ceil(num_records / _RECORDS_PER_SHARD)
      records = self._records(split)
      bounds = [num_records * i // num_shards for i in range(num_shards + 1)]
      shards[split] = [
        functools.partial(self._examples, records, *bounds[i : i + 2])
        for i in range(num_shards)
      ]
    return shards

  def _examples(self, records, start, stop):
    """Yields the next examples of a stream; shards are written in order."""
    for i in range(start, stop):
      yield i, {'tokens': next(records)}
      if self._bar is not None:
        self._bar.update()

  def _records(self, split: str) -> Iterator[np.ndarray]:
    """Yields the records of a split, [RECORD_TOKENS + 1]."""
    end_of_text = self._stored['end_of_text']
    rest = np.array([end_of_text], tokenizers.TOKEN_DTYPE)
    for path in self._pieces:
      with np.load(path) as piece:
        rest = np.concatenate([rest, piece[split]])
      num_whole = (len(rest) - 1) // RECORD_TOKENS
      for i in range(num_whole):
        start = i * RECORD_TOKENS
        yield rest[start : start + RECORD_TOKENS + 1]
      rest = rest[num_whole * RECORD_TOKENS :]
    if len(rest) > 1:
      fill = RECORD_TOKENS + 1 - len(rest)
      yield np.pad(rest, (0, fill), constant_values=end_of_text)


def num_windows(num_tokens: int, length: int) -> int:
  """Returns how many windows of a length predict all of a stream's tokens."""
  return math.ceil((num_tokens - 1) / length)


def folder(data_dir: str, tokenizer: str = '') -> str:
  """Returns where the dataset of a tokenizer is, or of all of them."""
  if not tokenizer:
    return os.path.join(data_dir, TextTokens.name)
  return os.path.join(
    data_dir, TextTokens.name, tokenizer, str(TextTokens.VERSION)
  )
