"""Writing files whole or not at all."""

import os
import tempfile


def write_atomically(path: str, contents: str | bytes) -> None:
  """Writes a file; a reader, or a crash, sees the old one or the new one.

  Args:
    path: In a folder that exists.
    contents: Text is written as UTF-8.
  """
  if isinstance(contents, str):
    contents = contents.encode()
  folder, name = os.path.split(os.path.abspath(path))
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
