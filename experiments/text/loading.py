"""Batches of a prepared text, each a pure function of its number.

The position in the data is therefore the number of the step, which a
checkpoint holds anyway.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import os
from typing import Any, SupportsIndex

import grain
import numpy as np
import tensorflow_datasets as tfds

from experiments.text import builder, pieces

# Without end; grain's own endless length overflows in batches of one.
_EPOCHS = 2**31
_READ_THREADS = 4
_BATCHES_AHEAD = 8


@dataclasses.dataclass(frozen=True)
class Text:
  """A prepared text.

  Attributes:
    folder: Of its files.
    metadata: `tokenizer` (its name), `vocab_size`, `end_of_text`, `heldout`,
      `files` (name to bytes), `num_documents` and `num_tokens` (by split). Two
      runs saw the same data if this is the same.
    streams: The tokens, by split: train, validation, test.
  """

  folder: str
  metadata: dict[str, Any]
  streams: dict[str, 'Stream']


class Stream:
  """All tokens of a split: end-of-text, then each document and end-of-text."""

  def __init__(self, records: Sequence[Any], num_tokens: int, end_of_text: int):
    """Initializes.

    Args:
      records: What `builder` wrote.
      num_tokens: Length of the stream, without what fills the last record.
      end_of_text: What follows the stream.
    """
    self._records = records
    self._num_tokens = num_tokens
    self._end_of_text = end_of_text

  def __len__(self) -> int:
    """Returns the number of tokens."""
    return self._num_tokens

  def read(self, start: int, stop: int) -> np.ndarray:
    """Returns the tokens from one position to before another.

    Args:
      start: At least 0.
      stop: Above `start`; beyond the end, end-of-text follows.

    Returns:
      int32 [stop - start].
    """
    size = builder.RECORD_TOKENS
    first = start // size
    # The last token of a record is also the first of the next.
    last = min(max(first, (stop - 2) // size), len(self._records) - 1)
    records = [self._records[i]['tokens'] for i in range(first, last + 1)]
    parts = [record[:size] for record in records[:-1]] + records[-1:]
    tokens = np.concatenate(parts)[start - first * size : stop - first * size]
    missing = stop - start - len(tokens)
    return np.pad(
      tokens.astype(np.int32),
      (0, missing),
      constant_values=self._end_of_text,
    )


def load(data_dir: str, tokenizer: str = '') -> Text:
  """Returns a prepared text.

  Args:
    data_dir: Where it was prepared.
    tokenizer: Name of the one that the model has, or is to have; '' for that of
      the data.

  Raises:
    ValueError: If the data's tokenizer is another, or there are several and
      none is named.
    OSError: If there is no prepared text.
  """
  everywhere = builder.folder(data_dir)
  names = sorted(os.listdir(everywhere)) if os.path.isdir(everywhere) else []
  names = [n for n in names if os.path.isdir(builder.folder(data_dir, n))]
  if not names:
    raise OSError(
      f'{data_dir} holds no prepared text; see python -m launch.prepare_text'
      ' --help.'
    )
  if not tokenizer and len(names) > 1:
    raise ValueError(
      f'{data_dir} holds tokens of {" and of ".join(names)}; say which'
      ' --tokenizer.'
    )
  tokenizer = tokenizer or names[0]
  if tokenizer not in names:
    raise ValueError(
      f'{data_dir} holds tokens of {" and of ".join(names)}, not of'
      f' {tokenizer}.'
    )
  folder = builder.folder(data_dir, tokenizer)
  dataset = tfds.builder_from_directory(folder)
  metadata = dict(dataset.info.metadata.items())
  streams = {
    split: Stream(
      dataset.as_data_source(split),
      metadata['num_tokens'][split],
      metadata['end_of_text'],
    )
    for split in pieces.SPLITS
  }
  return Text(folder, metadata, streams)


@dataclasses.dataclass(frozen=True)
class _Windows:
  """Windows of a stream, by number; what grain reads from."""

  stream: Stream
  ends: Sequence[int]
  length: int

  def __len__(self) -> int:
    return len(self.ends)

  def __getitem__(self, index: SupportsIndex) -> np.ndarray:
    end = int(self.ends[index])
    return self.stream.read(end - self.length, end + 1)


def windows(stream: Stream, length: int) -> grain.MapDataset:
  """Returns a stream as windows, in order.

  Args:
    stream: Of L tokens.
    length: Of a model's input, T.

  Returns:
    ceil((L - 1) / T) windows, each int32 [T + 1]: inputs are [:-1], targets
    [1:]. Every token but the stream's first is a target exactly once; the last
    window is filled up with end-of-text.

  Raises:
    ValueError: If the length is not positive.
  """
  if length < 1:
    raise ValueError(f'The length must be positive, not {length}.')
  number = builder.num_windows(len(stream), length)
  ends = range(length, length * number + 1, length)
  return grain.MapDataset.source(_Windows(stream, ends, length))


def training_batches(
  stream: Stream,
  length: int,
  batch_size: int,
  seed: int,
  process_index: int = 0,
  process_count: int = 1,
) -> grain.MapDataset:
  """Returns the batch of every step, in an order that is the seed's.

  All windows are shuffled, anew in every epoch, and cut into batches without
  regard to where epochs end.

  Args:
    stream: What to train on.
    length: Of a model's input, T.
    batch_size: Of all processes together, B.
    seed: Of the order.
    process_index: Which part of every batch to return.
    process_count: How many parts there are, P. Joined in order, they are the
      batch that one process alone would get.

  Returns:
    Item s is step s's batch, int32 [B / P, T + 1].

  Raises:
    ValueError: If the batch cannot be divided among the processes.
  """
  if batch_size < 1 or batch_size % process_count:
    raise ValueError(
      f'A batch of {batch_size} cannot be divided among {process_count}'
      ' processes.'
    )
  # grain shuffles epoch e with seed + e: without mixing, one seed's second
  # epoch would be the next seed's first.
  mixed = int(np.random.SeedSequence(seed).generate_state(1)[0])
  return (
    windows(stream, length)
    .shuffle(mixed)
    .repeat(_EPOCHS)
    .batch(batch_size // process_count)[process_index::process_count]
  )


def evaluation_windows(
  stream: Stream, length: int, max_length: int, num_sequences: int
) -> grain.MapDataset:
  """Returns sequences whose last tokens are the same at every length.

  Args:
    stream: What to evaluate on.
    length: Of a model's input, T, at most `max_length`.
    max_length: The longest of the lengths that are compared.
    num_sequences: How many, N.

  Returns:
    N windows, each int32 [T + 1], the last token of which is to be predicted.
    Those last tokens are spread evenly over the stream; they depend on
    `max_length` and N, not on T.

  Raises:
    ValueError: If the stream is too short, or the length too long.
  """
  if not 1 <= length <= max_length:
    raise ValueError(f'A length must be in 1..{max_length}, not {length}.')
  num_ends = len(stream) - max_length
  if num_ends < num_sequences:
    raise ValueError(
      f'{num_sequences} sequences that end after {max_length} tokens need'
      f' {max_length + num_sequences} tokens; the split has {len(stream)}.'
      ' Prepare more text, or a larger --heldout.'
    )
  middle = 2 * np.arange(num_sequences, dtype=np.int64) + 1
  ends = max_length + middle * num_ends // (2 * num_sequences)
  return grain.MapDataset.source(_Windows(stream, ends, length))


def prefetched(
  dataset: grain.MapDataset, first_step: int = 0
) -> Iterator[np.ndarray]:
  """Yields a dataset's items from one on; threads read ahead."""
  options = grain.ReadOptions(
    num_threads=_READ_THREADS, prefetch_buffer_size=_BATCHES_AHEAD
  )
  return iter(dataset[first_step:].to_iter_dataset(options))
