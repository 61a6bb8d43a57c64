"""Batches of a prepared text, each a pure function of its number.

The position in the data is therefore the number of the step, which a
checkpoint holds anyway.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import os
from typing import Any

from google.protobuf import json_format
import grain
import numpy as np

from experiments.engine import errors, files, json_reading
from experiments.text import builder, splits

# Without end; grain's own endless length overflows in batches of one.
_EPOCHS = 2**31
_READ_THREADS = 4
_BATCHES_AHEAD = 8
# What `preparation` stores beside the tokens.
_METADATA = (
  'tokenizer',
  'vocab_size',
  'end_of_text',
  'heldout',
  'files',
  'num_documents',
  'num_tokens',
  'fingerprint',
  'key',
  'splits',
  'num_skipped',
  'num_copies',
)


@dataclasses.dataclass(frozen=True)
class Text:
  """A prepared text.

  Attributes:
    folder: Of its files.
    metadata: `tokenizer` (its name), `vocab_size`, `end_of_text`, `heldout`,
      `files` (name to bytes), `key` (of the text in them), `splits` (a key of
      `splits.RULES`), `num_documents` and `num_tokens` (by split),
      `num_skipped` (records without text), `num_copies` (left out) and
      `fingerprint`, which is the same where all tokens are.
    streams: The tokens, by split: train, validation, test.
  """

  folder: str
  metadata: dict[str, Any]
  streams: dict[str, 'Stream']


class Stream:
  """All tokens of a split: end-of-text, then each document and end-of-text."""

  def __init__(
    self,
    records: Sequence[dict[str, np.ndarray]],
    num_tokens: int,
  ):
    """Initializes.

    Args:
      records: What `builder` wrote, as TFDS reads it.
      num_tokens: Length of the stream, without what fills the last record.
    """
    self._records = records
    self._num_tokens = num_tokens

  def __len__(self) -> int:
    """Returns the number of tokens."""
    return self._num_tokens

  def read(self, starts: Sequence[int], length: int) -> np.ndarray:
    """Returns parts of the stream.

    Args:
      starts: Positions, at least 0; B.
      length: Of each part, N, at least 1.

    Returns:
      int32 [B, N]; -1 after the stream's end.

    Raises:
      OSError: If the files are damaged.
    """
    size = builder.RECORD_TOKENS
    first = np.asarray(starts, np.int64) // size
    # The last token of a record is also the first of the next.
    last = np.maximum(first, (np.asarray(starts) + length - 2) // size)
    last = np.minimum(last, len(self._records) - 1)
    numbers = [
      i
      for a, b in zip(first.tolist(), last.tolist(), strict=True)
      for i in range(a, b + 1)
    ]
    # All at once, which is several times faster than one by one.
    try:
      records = iter(self._records.__getitems__(numbers))
    except RuntimeError as error:  # Of array_record.
      raise OSError(f'Cannot read the tokens: {error}.') from error
    tokens = np.full((len(first), length), -1, np.int32)
    for row, start, a, b in zip(tokens, starts, first, last, strict=True):
      for i in range(a, b + 1):
        record = next(records)['tokens']
        offset = i * size - start  # Of the record in the row.
        part = record[max(0, -offset) : length - offset]
        row[max(0, offset) : max(0, offset) + len(part)] = part
      row[max(0, self._num_tokens - start) :] = -1  # Not text.
    return tokens


def load(data_dir: str, tokenizer: str = '') -> Text:
  """Returns a prepared text.

  Args:
    data_dir: Where it was prepared.
    tokenizer: Name of the one that the model has, or is to have; '' for that of
      the data.

  Raises:
    ValueError: If the data's tokenizer is another, or there are several and
      none is named.
    OSError: If there is no prepared text, or a file of it is missing or
      damaged.
  """
  files.check_on_disk(data_dir)
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
  try:
    return _open(data_dir, tokenizer)
  except (OSError, ImportError, MemoryError):
    raise
  except Exception as error:  # TFDS raises many kinds.
    raise OSError(
      f'{folder} is damaged ({errors.first_line(error)}); remove it and prepare'
      ' again.'
    ) from error


def _open(data_dir: str, tokenizer: str) -> Text:
  """Opens a dataset whose files say nothing that is run.

  A builder that TFDS makes of the folder alone imports whatever module its
  features.json names; ours has its features from the code.
  """
  folder = builder.folder(data_dir, tokenizer)
  for name in ('dataset_info.json', 'features.json'):
    if not os.path.isfile(os.path.join(folder, name)):
      raise ValueError(f'it has no {name}')
  dataset = builder.TextTokens(data_dir=data_dir, config=tokenizer)
  features = json_format.MessageToDict(dataset.info.features.to_proto())
  if json_reading.read(os.path.join(folder, 'features.json')) != features:
    raise ValueError('its features.json is not as prepare_text writes it')
  stored = dataset.info.metadata or {}
  missing = [name for name in _METADATA if name not in stored]
  if missing:
    raise ValueError(f'its metadata.json has no {missing[0]}')
  metadata = {name: stored[name] for name in _METADATA}
  if metadata['splits'] not in splits.RULES:
    raise ValueError(f'its splits are {metadata["splits"]!r}')
  if metadata['tokenizer'] != tokenizer:
    raise ValueError(f'its tokenizer is {metadata["tokenizer"]!r}')
  for split in splits.SPLITS:
    for path in dataset.info.splits[split].filepaths:
      if not path.exists():
        raise OSError(f'{path} is missing; remove {folder} and prepare again.')
    number = metadata['num_tokens'][split]
    num_records = dataset.info.splits[split].num_examples
    if (
      not isinstance(number, int)
      or builder.num_windows(number, builder.RECORD_TOKENS) != num_records
    ):
      raise ValueError(f'its {num_records} records are not of {number} tokens')
  streams = {
    split: Stream(dataset.as_data_source(split), metadata['num_tokens'][split])
    for split in splits.SPLITS
  }
  return Text(folder, metadata, streams)


def num_windows(stream: Stream, length: int) -> int:
  """Returns how many windows [T + 1] predict every token once.

  Inputs are [:-1] of them, targets [1:]; -1 fills the last one up.
  """
  return builder.num_windows(len(stream), _positive(length, 'length'))


def _positive(number: int, what: str) -> int:
  if number < 1:
    raise ValueError(f'The {what} must be positive, not {number}.')
  return number


def training_batches(
  stream: Stream,
  length: int,
  batch_size: int,
  seed: int,
  process_index: int = 0,
  process_count: int = 1,
) -> grain.MapDataset:
  """Returns the batch of every step, in an order that is the seed's.

  The windows that predict every token once are shuffled, anew in every epoch,
  and cut into batches without regard to where epochs end.

  Args:
    stream: What to train on.
    length: Of a model's input, T.
    batch_size: Of all processes together, B.
    seed: Of the order.
    process_index: Which part of every batch to return.
    process_count: How many parts there are, P. Joined in order, they are the
      batch that one process alone would get.

  Returns:
    Item s is step s's batch, int32 [B / P, T + 1]; -1 after the stream's end.

  Raises:
    ValueError: If the length or the batch size is not positive, or the batch
      cannot be divided among the processes.
  """
  if _positive(batch_size, 'batch size') % process_count:
    raise ValueError(
      f'A batch of {batch_size} cannot be divided among {process_count}'
      ' processes.'
    )
  # grain shuffles epoch e with seed + e: without mixing, one seed's second
  # epoch would be the next seed's first.
  mixed = int(np.random.SeedSequence(seed).generate_state(1)[0])
  stop = num_windows(stream, length) * length
  return (
    grain.MapDataset.range(0, stop, length)
    .shuffle(mixed)
    .repeat(_EPOCHS)
    .batch(batch_size // process_count)[process_index::process_count]
    .map(lambda starts: stream.read(starts, length + 1))
  )


def evaluation_batches(
  stream: Stream,
  length: int,
  max_length: int,
  num_sequences: int,
  batch_size: int,
) -> grain.MapDataset:
  """Returns sequences whose last tokens are the same at every length.

  Args:
    stream: What to evaluate on.
    length: Of a model's input, T, at most `max_length`.
    max_length: The longest of the lengths that are compared.
    num_sequences: How many, N.
    batch_size: B.

  Returns:
    Batches of N windows, int32 [B, T + 1], the last of them perhaps smaller;
    the last token of every window is to be predicted from all before it. Those
    last tokens are spread evenly over the stream; they depend on `max_length`
    and N, not on T.

  Raises:
    ValueError: If the stream is too short, or the length is impossible.
  """
  if not 1 <= length <= max_length:
    raise ValueError(f'A length must be in 1..{max_length}, not {length}.')
  check_long_enough(stream, max_length, num_sequences)
  num_ends = len(stream) - max_length
  middle = 2 * np.arange(num_sequences, dtype=np.int64) + 1
  ends = max_length + middle * num_ends // (2 * num_sequences)
  return (
    grain.MapDataset.source(ends)
    .batch(_positive(batch_size, 'batch size'))
    .map(lambda ends: stream.read(ends - length, length + 1))
  )


def check_long_enough(
  stream: Stream, max_length: int, num_sequences: int
) -> None:
  """Checks that `evaluation_batches` finds what it needs.

  Raises:
    ValueError: If not.
  """
  needed = max_length + num_sequences
  if len(stream) < needed:
    raise ValueError(
      f'{num_sequences} sequences that end after {max_length} tokens need'
      f' {needed} tokens; the split has {len(stream)}. Prepare more text, or a'
      ' larger --heldout.'
    )


def prefetched(
  dataset: grain.MapDataset, first_step: int = 0
) -> Iterator[np.ndarray]:
  """Yields a dataset's items from one on; threads read ahead."""
  options = grain.ReadOptions(
    num_threads=_READ_THREADS, prefetch_buffer_size=_BATCHES_AHEAD
  )
  return iter(dataset[first_step:].to_iter_dataset(options))
