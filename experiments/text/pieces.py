"""Pieces of a split text: what workers make of blocks of the raw files.

A piece is a file, written whole or not at all, under a name that says what it
is of. So after a kill, only those that are missing are made.
"""

import collections
from collections.abc import Iterator, Sequence
from concurrent import futures
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import signal
import threading

import numpy as np

from experiments.engine import files, progress
from experiments.text import documents, tokenizers

SPLITS = ('train', 'validation', 'test')
# Blocks that wait for a worker, per worker.
_BLOCKS_AHEAD = 3


def make_pieces(
  paths: Sequence[str],
  work: str,
  tokenizer_args: tuple[str, str],
  heldout: float,
  num_workers: int,
) -> list[str]:
  """Makes the pieces that are missing.

  Args:
    paths: Of the raw files.
    work: Folder for the pieces; made if it does not exist.
    tokenizer_args: Of `tokenizers.make_tokenizer`.
    heldout: See `split_of`.
    num_workers: Processes.

  Returns:
    The paths of all pieces, in order: .npz files with the tokens [N] of each of
    `SPLITS`, every document followed by end-of-text, `counts` [3, 2], the
    numbers of documents and of tokens in each, and `digest` of all, uint8 [32].

  Raises:
    ValueError: If a file is not as it should be.
    OSError: If something cannot be read or written, or a worker is killed.
  """
  bar = progress.bar(sum(map(os.path.getsize, paths)), 0, 'Tokens', 'B')
  bar.unit_scale = True
  pieces = []
  pending = collections.deque()
  with bar, _workers(num_workers) as pool:

    def finish_first():
      position, future = pending.popleft()
      future.result()
      bar.update(position - bar.n)

    start = 0
    for path in paths:
      folder = os.path.join(work, _key(path, tokenizer_args[0], heldout))
      files.make_folder(folder)
      for block in documents.blocks(path):
        piece = os.path.join(folder, f'{block.number:06d}.npz')
        pieces.append(piece)
        if not os.path.exists(piece):
          with _no_interrupt():
            future = pool.submit(
              _make_piece, block, piece, tokenizer_args, heldout
            )
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


def _key(path: str, tokenizer_name: str, heldout: float) -> str:
  """Returns a name that changes with whatever a file's pieces depend on."""
  status = os.stat(path)
  parts = (
    os.path.realpath(path),
    status.st_size,
    status.st_mtime_ns,
    tokenizer_name,
    heldout,
  )
  return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _make_piece(
  block: documents.Block,
  path: str,
  tokenizer_args: tuple[str, str],
  heldout: float,
) -> None:
  """Writes a block's tokens, by split; runs in a worker."""
  tokenizer = tokenizers.make_tokenizer(*tokenizer_args)
  end_of_text = np.array([tokenizer.end_of_text], tokenizers.TOKEN_DTYPE)
  tokens = {split: [end_of_text[:0]] for split in SPLITS}
  num_documents = dict.fromkeys(SPLITS, 0)
  for document in documents.documents(block):
    split = split_of(document, heldout)
    tokens[split] += [tokenizer.encode(document), end_of_text]
    num_documents[split] += 1
  tokens = {split: np.concatenate(parts) for split, parts in tokens.items()}
  counts = [(num_documents[s], len(tokens[s])) for s in SPLITS]
  counts = np.array(counts, np.int64)
  digest = hashlib.sha256(counts.tobytes())  # Where one split ends, too.
  for split in SPLITS:
    digest.update(tokens[split].tobytes())
  digest = np.frombuffer(digest.digest(), np.uint8)
  contents = io.BytesIO()
  np.savez(contents, counts=counts, digest=digest, **tokens)
  files.write_atomically(path, contents.getvalue())


def split_of(document: str, heldout: float) -> str:
  """Returns the split that a document is in, from its hash."""
  digest = hashlib.blake2b(document.encode(), digest_size=8).digest()
  place = int.from_bytes(digest, 'big') / 2**64
  if place < heldout:
    return 'test'
  return 'validation' if place < 2 * heldout else 'train'


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
