"""From raw text files to a dataset of tokens.

First, workers make the pieces that are missing; then the pieces are written as
the dataset, and removed. The dataset depends on the files, the key of their
text, the tokenizer and the held-out fraction alone. While the pieces are there
too, it takes twice its space.
"""

from collections.abc import Sequence
import contextlib
import glob
import hashlib
import io
import json
import os
import shutil
from typing import Any

import tensorflow_datasets as tfds

from experiments.engine import files, locks, parameters, progress
from experiments.text import builder, documents, loading, splits, tokenizers
from experiments.text import pieces as pieces_lib


def prepare(
  pattern: str,
  data_dir: str,
  tokenizer_name: str = '',
  vocabulary_dir: str = '',
  heldout: float = 0.01,
  num_workers: int = 0,
  key: str = documents.KEY,
) -> loading.Text:
  """Prepares text files as a dataset; goes on where a killed call stopped.

  Args:
    pattern: Glob pattern of .jsonl or .txt files, or such as .gz or .zst.
    data_dir: Folder for the dataset; made if it does not exist.
    tokenizer_name: A key of `tokenizers.TOKENIZERS`; '' for
      `tokenizers.default_name`.
    vocabulary_dir: See `tokenizers.make_tokenizer`.
    heldout: Fraction of the text in the validation split, and in the test
      split; see `splits` for which part it is.
    num_workers: Processes; 0 for one per core.
    key: Of the text in a line of JSON.

  Returns:
    The dataset.

  Raises:
    ValueError: If a file is not as it should be, there is too little text, or
      the folder holds a dataset of other files.
    OSError: If something cannot be read or written, or another process is
      using the folder.
  """
  if not 0 < heldout < 0.5:
    raise ValueError(f'heldout must be above 0 and below 0.5, not {heldout}.')
  parameters.check_bounds('num_workers', num_workers, 0, 2**10)
  why = ''
  if not tokenizer_name:
    tokenizer_name = tokenizers.default_name(vocabulary_dir)
    if tokenizer_name == 'byte':
      why = ", for GPT-2's vocabulary is not on this machine"
  files.check_on_disk(data_dir)
  tokenizer = tokenizers.make_tokenizer(tokenizer_name, vocabulary_dir)
  paths = documents.find_files(pattern)
  if key != documents.KEY and all(map(documents.is_txt, paths)):
    raise ValueError(f'--key={key} is for .jsonl files, and there are none.')
  metadata = {
    'tokenizer': tokenizer.name,
    'vocab_size': tokenizer.vocab_size,
    'end_of_text': tokenizer.end_of_text,
    'heldout': heldout,
    'key': key,
    'files': {
      os.path.relpath(path, os.path.dirname(paths[0])): os.path.getsize(path)
      for path in paths
    },
  }
  work = os.path.join(data_dir, f'.pieces-{tokenizer.name}')
  with locks.locked(data_dir):
    if os.path.exists(builder.folder(data_dir, tokenizer.name)):
      text = loading.load(data_dir, tokenizer.name)
      if metadata.items() <= text.metadata.items():
        progress.say('Already prepared, from files of these names and sizes.')
        if newer := _newer(paths, text.folder):
          progress.say(
            f'{newer} was changed after that: to prepare it as it is now,'
            f' remove {text.folder}.'
          )
        shutil.rmtree(work, ignore_errors=True)  # What a kill left.
        return text
      raise ValueError(
        f'{text.folder} holds tokens of other files, or of another --heldout or'
        ' --key. Remove it, or give another --data_dir.'
      )
    progress.say(f'Tokenizer: {tokenizer.name}{why}.')
    pieces, rule = pieces_lib.make_pieces(
      pieces_lib.Source(paths, (tokenizer.name, vocabulary_dir), key, heldout),
      work,
      num_workers or _num_cores(),
    )
    metadata |= _measure(pieces, key) | {'splits': rule.kind}
    _write_dataset(data_dir, work, pieces, metadata)
    shutil.rmtree(work)
  return loading.load(data_dir, tokenizer.name)


def _newer(paths: Sequence[str], folder: str) -> str | None:
  """Returns the first file that is newer than the dataset in a folder."""
  prepared = os.path.getmtime(os.path.join(folder, 'dataset_info.json'))
  return next((x for x in paths if os.path.getmtime(x) > prepared), None)


def _num_cores() -> int:
  """Returns how many cores this process may use."""
  if hasattr(os, 'sched_getaffinity'):  # Not on macOS.
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


def _measure(pieces: Sequence[str], key: str) -> dict[str, Any]:
  """Returns numbers of documents and tokens, by split, and a fingerprint.

  Raises:
    ValueError: If there is no document.
  """
  total = sum(pieces_lib.read(pieces, 'counts'))
  num_skipped, num_copies = (
    int(sum(pieces_lib.read(pieces, name)))
    for name in ('num_skipped', 'num_copies')
  )
  if not total.any():
    why = f': {_skipped(num_skipped, key)}; is it another --key?'
    raise ValueError(
      f'There is no text in any of the files{why if num_skipped else "."}'
    )
  fingerprint = hashlib.sha256()
  for digest in pieces_lib.read(pieces, 'digest'):
    fingerprint.update(digest.tobytes())
  # A stream starts with an end-of-text of its own.
  num_tokens = (total[:, 1] + 1).tolist()
  return {
    'num_documents': dict(
      zip(splits.SPLITS, total[:, 0].tolist(), strict=True)
    ),
    'num_tokens': dict(zip(splits.SPLITS, num_tokens, strict=True)),
    'num_skipped': num_skipped,
    'num_copies': num_copies,
    'fingerprint': fingerprint.hexdigest(),
  }


def _skipped(number: int, key: str) -> str:
  return f'{number:,} records have no {json.dumps(key)}, or an empty one'


def _write_dataset(
  data_dir: str, work: str, pieces: Sequence[str], metadata: dict
) -> None:
  """Writes the pieces as a TFDS dataset."""
  name = metadata['tokenizer']
  folder = builder.folder(data_dir, name)
  # What a killed process left.
  for old in glob.glob(os.path.join(os.path.dirname(folder), 'incomplete.*')):
    shutil.rmtree(old)
  num_records = sum(
    builder.num_windows(n, builder.RECORD_TOKENS)
    for n in metadata['num_tokens'].values()
  )
  tfds.disable_progress_bar()
  with progress.bar(num_records, 0, 'Dataset', 'record') as bar:
    dataset = builder.TextTokens(
      data_dir=data_dir, config=name, pieces=pieces, metadata=metadata, bar=bar
    )
    try:
      with contextlib.redirect_stdout(io.StringIO()):  # It speaks of downloads.
        dataset.download_and_prepare(download_dir=work)
    except RuntimeError as error:  # Of array_record, of a full disk too.
      raise OSError(f'Cannot write {folder}: {error}.') from error


def summary(text: loading.Text) -> str:
  """Returns a table of a dataset's splits, and what was not as usual."""
  metadata = text.metadata
  lines = [f'{"split":<12}{"documents":>14}{"tokens":>18}{"share":>9}']
  total = sum(metadata['num_tokens'].values())
  for split in splits.SPLITS:
    number = metadata['num_tokens'][split]
    lines.append(
      f'{split:<12}{metadata["num_documents"][split]:>14,}{number:>18,}'
      f'{number / total:>9.2%}'
    )
  if metadata['splits'] != 'hash':
    lines.append(f'splits: {splits.RULES[metadata["splits"]]}')
  if number := metadata['num_copies']:
    lines.append(f'left out: {number:,} documents that are copies of others')
  if metadata['num_skipped']:
    skipped = _skipped(metadata['num_skipped'], metadata['key'])
    lines.append(f'skipped: {skipped}')
  return '\n'.join(lines)
