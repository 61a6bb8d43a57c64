"""Pieces of a split text: what workers make of blocks of the raw files.

A piece is a file, written whole or not at all, under a name that says what it
is of. So after a kill, only those that are missing are made.
"""

import collections
from collections.abc import Iterator, Sequence
from concurrent import futures
import contextlib
import dataclasses
import hashlib
import io
import json
import multiprocessing
import os
import signal
import threading

import numpy as np

from experiments.engine import files, progress
from experiments.text import documents, splits, tokenizers

# Blocks that wait for a worker, per worker.
_BLOCKS_AHEAD = 3


@dataclasses.dataclass(frozen=True)
class Source:
  """What pieces are made of, and how.

  Attributes:
    paths: Of the raw files.
    tokenizer_args: Of `tokenizers.make_tokenizer`.
    key: See `documents.documents`.
    heldout: See `splits.by_hash`.
  """

  paths: Sequence[str]
  tokenizer_args: tuple[str, str]
  key: str
  heldout: float


def make_pieces(
  source: Source, work: str, num_workers: int
) -> tuple[list[str], splits.Rule]:
  """Makes the pieces that are missing.

  Where hashes do not serve, all are made once more.

  Args:
    source: What to make them of.
    work: Folder for the pieces; made if it does not exist.
    num_workers: Processes.

  Returns:
    The paths of all pieces, in order, and how their documents are split. A
    piece is a .npz file with the tokens [N] of each of `splits.SPLITS`, every
    document followed by end-of-text; `counts` [3, 2], the numbers of documents
    and of tokens in each; `digest` of all, uint8 [32]; `places` and `lengths`
    (characters) of the D documents [D]; and `num_skipped` and `num_copies`, the
    numbers of records without text, and of those left out as copies.

  Raises:
    ValueError: If a file is not as it should be, or there is too little text.
    OSError: If something cannot be read or written, or a worker is killed.
  """
  with _workers(num_workers) as pool:
    rule = splits.by_hash(source.heldout)
    pieces = _make_all(source, work, rule, [], pool, num_workers)
    if not pieces:
      raise ValueError('There is no text in any of the files.')
    counts = sum(read(pieces, 'counts'))
    if not counts.any() or splits.hash_serves(counts, source.heldout):
      return pieces, rule
    progress.say(
      'Documents are too few to be split by their hashes: the text is cut into'
      ' its splits, and read once more.'
    )
    places, lengths = (list(read(pieces, n)) for n in ('places', 'lengths'))
    rule, before_end = splits.by_cut(
      np.concatenate(places), np.concatenate(lengths), source.heldout
    )
    stops = np.cumsum(list(map(len, places)))
    by_piece = np.split(before_end, stops[:-1])
    return _make_all(source, work, rule, by_piece, pool, num_workers), rule


def read(pieces: Sequence[str], name: str) -> Iterator[np.ndarray]:
  """Yields an array of every piece."""
  for path in pieces:
    with np.load(path) as piece:
      yield piece[name]


def _make_all(
  source: Source,
  work: str,
  rule: splits.Rule,
  before_end: Sequence[np.ndarray],
  pool: futures.Executor,
  num_workers: int,
) -> list[str]:
  """Makes the pieces of a rule that are missing; returns all.

  Args:
    source: See `make_pieces`.
    work: See `make_pieces`.
    rule: Of the text.
    before_end: For a cut, what `splits.by_cut` returned, by piece.
    pool: Of workers.
    num_workers: In it.
  """
  paths = source.paths
  digest = hashlib.sha256(b''.join(x.tobytes() for x in before_end)).hexdigest()
  bar = progress.bar(sum(map(os.path.getsize, paths)), 0, 'Tokens', 'B')
  bar.unit_scale = True
  pieces = []
  pending = collections.deque()
  with bar:

    def finish_first():
      position, future = pending.popleft()
      future.result()
      bar.update(position - bar.n)

    start = 0
    for path in paths:
      folder = os.path.join(work, _key(path, source, rule, digest))
      files.make_folder(folder)
      for block in documents.blocks(path):
        piece = os.path.join(folder, f'{block.number:06d}.npz')
        where = before_end[len(pieces)] if before_end else None
        pieces.append(piece)
        if not os.path.exists(piece):
          with _no_interrupt():
            future = pool.submit(_make_piece, block, piece, source, rule, where)
          pending.append((start + block.position, future))
        elif not pending:
          bar.update(start + block.position - bar.n)
        if len(pending) > _BLOCKS_AHEAD * num_workers:
          finish_first()
      start += os.path.getsize(path)
    while pending:
      finish_first()
    bar.update(bar.total - bar.n)
  return pieces


def _key(path: str, source: Source, rule: splits.Rule, digest: str) -> str:
  """Returns a name that changes with whatever a file's pieces depend on."""
  status = os.stat(path)
  parts = (
    os.path.realpath(path),
    status.st_size,
    status.st_mtime_ns,
    source.tokenizer_args[0],
    source.key,
    dataclasses.astuple(rule),
    digest,  # Where a text is cut, depends on all its files.
  )
  return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _make_piece(
  block: documents.Block,
  path: str,
  source: Source,
  rule: splits.Rule,
  before_end: np.ndarray | None,
) -> None:
  """Writes a block's tokens, by split; runs in a worker."""
  tokenizer = tokenizers.make_tokenizer(*source.tokenizer_args)
  end_of_text = np.array([tokenizer.end_of_text], tokenizers.TOKEN_DTYPE)
  tokens = {split: [end_of_text[:0]] for split in splits.SPLITS}
  num_documents = dict.fromkeys(splits.SPLITS, 0)
  places, lengths = [], []
  num_skipped = num_copies = 0
  for document in documents.documents(block, source.key):
    if not document:
      num_skipped += 1
      continue
    where = place = splits.place_of(document)
    if before_end is not None:
      where = int(before_end[len(places)])
      num_copies += where == splits.COPY
    places.append(place)
    lengths.append(len(document))
    for split, part in splits.parts(document, where, rule):
      tokens[split] += [tokenizer.encode(part), end_of_text]
      num_documents[split] += 1
  tokens = {split: np.concatenate(parts) for split, parts in tokens.items()}
  counts = [(num_documents[s], len(tokens[s])) for s in splits.SPLITS]
  counts = np.array(counts, np.int64)
  digest = hashlib.sha256(counts.tobytes())  # Where one split ends, too.
  for split in splits.SPLITS:
    digest.update(tokens[split].tobytes())
  contents = io.BytesIO()
  np.savez(
    contents,
    counts=counts,
    digest=np.frombuffer(digest.digest(), np.uint8),
    places=np.array(places, np.float64),
    lengths=np.array(lengths, np.int64),
    num_skipped=np.array(num_skipped, np.int64),
    num_copies=np.array(num_copies, np.int64),
    **tokens,
  )
  files.write_atomically(path, contents.getvalue())


@contextlib.contextmanager
def _workers(number: int) -> Iterator[futures.Executor]:
  """Yields processes, which end when this one does, however that is."""
  pool = futures.ProcessPoolExecutor(
    number,
    # A fork of a process with JAX's threads may hang.
    mp_context=multiprocessing.get_context('spawn'),
    initializer=_start_worker,
  )
  try:
    yield pool
  except futures.process.BrokenProcessPool as error:
    raise OSError('A worker was killed; is there enough memory?') from error
  finally:
    pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
  """Lets Ctrl-C wait; workers that start here never hear of it."""
  old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _start_worker() -> None:
  """Sees that a worker does not outlive the main process."""

  def end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)

  threading.Thread(target=end_with_parent, daemon=True).start()
