"""Folders for one user at a time."""

from collections.abc import Iterator
import contextlib
import fcntl
import glob
import itertools
import os
import secrets
import socket
import threading
import time

import jax

from experiments.engine import devices, files, progress

_LOCK = '.lock'
# Seconds between two signs of life of whoever holds a lock in a bucket, and
# those after which one without counts as dead.
_BEAT_S = 4.0
_EXPIRES_S = 20.0


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
  """Makes a folder and keeps others out of it, as long as this one lives.

  In a bucket a lock is an object that is made only if there is none, and that
  its owner writes again every few seconds. One who finds it unchanged for
  twenty takes it over; its owner, should it live after all, then ends.

  Raises:
    OSError: If another is using it, or it cannot be made.
    ValueError: If it is not shared by all processes that work together, or its
      path reads as a pattern.
  """
  with contextlib.ExitStack() as stack:

    def lock():
      if glob.has_magic(files.absolute(folder)):
        # Orbax would take the name for a pattern, and not find what it wrote.
        raise ValueError(
          f'The path of a folder must have none of *?[: {folder}'
        )
      files.make_folder(folder)
      kind = _locked_in_bucket if files.in_bucket(folder) else _locked_on_disk
      stack.enter_context(kind(folder))

    devices.from_main(lock)
    _check_shared(folder)
    yield


@contextlib.contextmanager
def _locked_on_disk(folder: str) -> Iterator[None]:
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      raise OSError(f'Another process is using {folder}.') from None
    yield
  finally:
    os.close(descriptor)


@contextlib.contextmanager
def _locked_in_bucket(folder: str) -> Iterator[None]:
  path = os.path.join(folder, _LOCK)
  who = f'{socket.gethostname()} {os.getpid()} {secrets.token_hex(8)}'
  owner = who.encode()
  beats = (owner + b' %d' % i for i in itertools.count())
  _make_lock(path, owner, next(beats))
  # What is written there while a checkpoint is saved goes elsewhere.
  stderr = os.dup(2)
  is_over = threading.Event()

  def beat():
    while not is_over.wait(_BEAT_S):
      with contextlib.suppress(OSError):  # Out of reach; the next may do.
        if not _contents(path).startswith(owner):
          devices.end(  # Two would write into it.
            f'Error: Another process has taken {folder}: this one was silent'
            f' for more than {_EXPIRES_S:.0f} seconds.',
            stderr=stderr,
          )
        files.write_atomically(path, next(beats))

  thread = threading.Thread(target=beat, daemon=True)
  thread.start()
  try:
    yield
  finally:
    is_over.set()
    thread.join()
    os.close(stderr)
    with contextlib.suppress(OSError):  # It ends by itself.
      if _contents(path).startswith(owner):
        files.remove(path)


def _contents(path: str) -> bytes:
  """Returns what is in a file, b'' if there is none."""
  try:
    return files.read(path)
  except FileNotFoundError:
    return b''


def _make_lock(path: str, owner: bytes, contents: bytes) -> None:
  """Makes the object that is a lock, or takes over that of a dead process.

  Raises:
    OSError: If there is one of a process that is alive, or none can be made.
  """
  if files.make_new(path, contents):
    return
  folder = os.path.dirname(path)
  progress.say(f'Finding out whether another process is using {folder} ...')
  found = _contents(path)
  deadline = time.monotonic() + _EXPIRES_S
  while (now := _contents(path)) == found and time.monotonic() < deadline:
    time.sleep(_BEAT_S / 4)
  if now == found:
    files.remove(path)
  if now in (found, b'') and files.make_new(path, contents):
    # Another one who waited may have removed this lock, not the dead one's.
    time.sleep(_BEAT_S / 4)
    if _contents(path).startswith(owner):
      return
  raise OSError(f'Another process is using {folder}.')


def _check_shared(folder: str) -> None:
  """Checks that all processes see the same folder.

  Raises:
    ValueError: On all processes, if one of them does not.
  """
  if jax.process_count() == 1:
    return
  path = os.path.join(folder, '.seen_by_all')

  def write():
    token = secrets.randbelow(2**31)
    files.write_atomically(path, str(token))
    return token

  token = devices.from_main(write)
  try:
    sees = files.read(path) == str(token).encode()
  except OSError:
    sees = False
  blind = devices.largest(-1 if sees else jax.process_index())
  if blind >= 0:
    raise ValueError(
      f'Process {blind} does not see what process 0 writes into {folder}:'
      ' all processes must share the folder.'
    )
