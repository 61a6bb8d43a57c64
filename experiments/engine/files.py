"""Files whole or not at all, on a disk or in a bucket.

A folder is on a disk, or in a bucket: `gs://bucket/name`. All that is kept of
an experiment is read and written here, but for Orbax's own files. What a bucket
has not, folders and files that grow, is made up for: a folder is there as soon
as something is in it, and what grows is written whole again.
"""

from collections.abc import Iterator
import contextlib
import functools
import importlib.util
import os
import re
import shutil
import tempfile
from typing import BinaryIO

from etils import epath
import fsspec

from experiments.engine import errors

_BUCKETS = 'gs://'


def in_bucket(path: str) -> bool:
  """Whether a path is one in a bucket."""
  return str(path).startswith(_BUCKETS)


def absolute(path: str) -> str:
  """Returns a path that does not depend on where the process was started.

  Raises:
    ValueError: If it is of a kind that cannot be used, or not UTF-8.
  """
  path = str(path)
  if in_bucket(path):
    _prepare_buckets()
    path = path.rstrip('/')
    if '::' in path:  # Means more than a name to the library below.
      raise ValueError(f'A path in a bucket must have no "::", got {path!r}.')
  elif scheme := re.match(r'([A-Za-z][\w+.-]*)://', path):
    raise ValueError(
      f'{path!r}: a folder is on a disk or in {_BUCKETS}bucket/; nothing else'
      f' takes checkpoints, {scheme[1]}:// neither.'
    )
  else:
    path = os.path.abspath(path)
  try:
    path.encode()
  except UnicodeEncodeError:
    raise ValueError(f'A path must be UTF-8, got {path!r}.') from None
  return path


def check_on_disk(path: str) -> None:
  """Checks a path of what is not kept in buckets.

  Raises:
    ValueError: If it is in one.
  """
  if in_bucket(path):
    raise ValueError(f'{path} must be a folder on a disk.')


@functools.cache
def _prepare_buckets() -> None:
  """Raises ValueError without what is needed for them."""
  if importlib.util.find_spec('gcsfs') is None:
    raise ValueError(f"{_BUCKETS} needs gcsfs: pip install -e '.[gcs]'.")
  # Others write there too: what was listed once is not what is there.
  for name in ('gs', 'gcs'):
    fsspec.config.conf.setdefault(name, {})['use_listings_cache'] = False


def _epath(path: str) -> epath.Path:
  return epath.Path(absolute(path))


class _NamedError(OSError):
  """Says what cannot be done, and with what."""


@contextlib.contextmanager
def _named(doing: str, path: str) -> Iterator[None]:
  """Makes errors of buckets, of many kinds and lines, an OSError of one."""
  try:
    yield
  except Exception as error:
    if isinstance(error, FileNotFoundError) or not in_bucket(path):
      raise
    raise _NamedError(
      f'Cannot {doing} {path}: {errors.first_line(error)}'
    ) from error


@contextlib.contextmanager
def named_errors(path: str) -> Iterator[None]:
  """Says of an error of the system what it is that cannot be written."""
  try:
    with _named('write', path):
      yield
  except _NamedError:
    raise
  except OSError as error:
    reason = error.strerror or errors.first_line(error)
    if in_bucket(path) and isinstance(error, FileNotFoundError):
      reason = 'there is no such bucket'
    raise _NamedError(f'Cannot write {path}: {reason}.') from error


def _system(path: str) -> tuple[fsspec.AbstractFileSystem, str]:
  """Returns the file system of a path, and the path in it."""
  if in_bucket(path):
    return fsspec.url_to_fs(absolute(path))
  # In which `url_to_fs` would read more than a name, as in `a::b`.
  return fsspec.filesystem('file'), absolute(path)


def read(path: str, max_bytes: int | None = None) -> bytes:
  """Returns what is in a file.

  Args:
    path: The file.
    max_bytes: How large it may be; None for any size.

  Raises:
    ValueError: If it is larger; the text has not the path.
    OSError: If it cannot be read: FileNotFoundError if there is none.
  """
  with _named('read', path), _epath(path).open('rb') as f:
    contents = f.read(-1 if max_bytes is None else max_bytes + 1)
  if max_bytes is not None and len(contents) > max_bytes:
    raise ValueError(f'it is larger than {max_bytes:,} bytes.')
  return contents


def opened(path: str) -> BinaryIO:
  """Opens a file to be read in pieces."""
  with _named('read', path):
    return _epath(path).open('rb')


def exists(path: str) -> bool:
  """Whether there is a file, or a folder."""
  with _named('read', path):
    return _epath(path).exists()


def is_folder(path: str) -> bool:
  """Whether there is a folder; in a bucket, one with a file."""
  with _named('read', path):
    return _epath(path).is_dir()


def names(folder: str) -> list[str]:
  """Returns the names of the files and folders in a folder, sorted."""
  with _named('read', folder):
    if in_bucket(folder) and not is_folder(folder):
      return []  # It has nothing in it yet.
    return sorted(path.name for path in _epath(folder).iterdir())


def below(folder: str) -> list[str]:
  """Returns the paths, from a folder, of all files in and below it, sorted."""
  with _named('read', folder):
    system, root = _system(folder)
    return sorted(os.path.relpath(p, root) for p in system.find(root))


def remove(path: str) -> None:
  """Removes a file, or a folder and all that is in it, if it is there."""
  with _named('remove', path):
    path = _epath(path)
    if path.is_dir():
      path.rmtree(missing_ok=True)
    else:
      path.unlink(missing_ok=True)


def free_bytes(folder: str) -> float:
  """Returns how many bytes there is room for; a bucket has no end."""
  if in_bucket(folder):
    return float('inf')
  return shutil.disk_usage(folder).free


def write_atomically(path: str, contents: str | bytes) -> None:
  """Writes a file; a reader, or a crash, sees the old one or the new one.

  Args:
    path: In a folder that exists.
    contents: Text is written as UTF-8.

  Raises:
    OSError: If it cannot be written.
  """
  if isinstance(contents, str):
    contents = contents.encode()
  with named_errors(path):
    if in_bucket(path):
      _epath(path).write_bytes(contents)  # There when it is whole.
      return
    folder, name = os.path.split(absolute(path))
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f'.{name}.')
    try:
      with os.fdopen(descriptor, 'wb') as f:
        f.write(contents)
        f.flush()
        os.fsync(f.fileno())
      os.chmod(temporary, 0o644)
      os.replace(temporary, path)
    except BaseException:
      os.unlink(temporary)
      raise


class _Growing:
  """What a file that is appended to is in a bucket, which has only whole ones.

  `flush` writes all of it again.
  """

  def __init__(self, path: str):
    self._path = path
    self._contents = bytearray()
    self._is_written = False
    with contextlib.suppress(FileNotFoundError):
      self._contents += read(path)

  def write(self, data: bytes) -> None:
    """Adds to what `flush` writes."""
    self._contents += data
    self._is_written = False

  def flush(self) -> None:
    """Writes the file."""
    if not self._is_written:
      write_atomically(self._path, bytes(self._contents))
      self._is_written = True

  def close(self) -> None:
    """Writes what was not flushed."""
    self.flush()


def appending(path: str) -> BinaryIO:
  """Opens a file of bytes to write at its end.

  Raises:
    OSError: If it cannot be read or written.
  """
  if in_bucket(path):
    return _Growing(path)
  return open(path, 'ab')


def make_new(path: str, contents: bytes) -> bool:
  """Makes an object in a bucket if there is none; returns whether it did.

  Of several who try at the same time one succeeds.

  Raises:
    OSError: If it cannot be made.
  """
  with named_errors(path):
    system, name = _system(path)
    try:
      system.pipe_file(name, contents, mode='create')
    except FileExistsError:
      return False
  return True


def make_folder(path: str) -> None:
  """Makes a folder, and those above it, where they do not exist.

  Raises:
    OSError: If it cannot be made.
    ValueError: If its name cannot be one.
  """
  if not path:
    raise OSError('The name of the folder is empty.')
  if in_bucket(absolute(path)):
    return  # It is there as soon as something is in it.
  try:
    os.makedirs(path, exist_ok=True)
  except (FileExistsError, NotADirectoryError):
    raise OSError(
      f'{path} cannot be a folder: a file has its name, or that of one above.'
    ) from None
