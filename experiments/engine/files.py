"""Files whole or not at all, folders for one user at a time."""

from collections.abc import Iterator
import contextlib
import fcntl
import glob
import os
import tempfile

from experiments.engine import devices


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
  folder, name = os.path.split(os.path.abspath(path))
  with named_errors(path):
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


@contextlib.contextmanager
def named_errors(path: str) -> Iterator[None]:
  """Says of an error of the system what it is that cannot be written."""
  try:
    yield
  except OSError as error:
    raise OSError(f'Cannot write {path}: {error.strerror}.') from error


def make_folder(path: str) -> None:
  """Makes a folder, and those above it, where they do not exist.

  Raises:
    OSError: If it cannot be made.
  """
  if not path:
    raise OSError('The name of the folder is empty.')
  try:
    os.makedirs(path, exist_ok=True)
  except (FileExistsError, NotADirectoryError):
    raise OSError(
      f'{path} cannot be a folder: a file has its name, or that of one above.'
    ) from None


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
  """Makes a folder and keeps others out of it, as long as this one lives.

  Raises:
    OSError: If another is using it, or it cannot be made.
    ValueError: If it is not shared by all processes that work together, or its
      path reads as a pattern.
  """
  descriptors = []

  def lock():
    if glob.has_magic(os.path.abspath(folder)):
      # Orbax would take the name for a pattern, and not find what it wrote.
      raise ValueError(f'The path of a folder must have none of *?[: {folder}')
    make_folder(folder)
    descriptors.append(os.open(folder, os.O_RDONLY))
    try:
      fcntl.flock(descriptors[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      raise OSError(f'Another process is using {folder}.') from None

  try:
    devices.from_main(lock)
    devices.check_shared(folder)
    yield
  finally:
    for descriptor in descriptors:
      os.close(descriptor)
