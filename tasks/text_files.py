"""Reading text files of users, in bounded memory."""

import errno
import os
import stat

MAX_BYTES = 64_000_000
_BINARY_FST = b'\xd6\xfd\xb2\x7e'  # OpenFst's own automata, which are no text.


def content(path: str | os.PathLike) -> bytes:
  """Returns what a file holds.

  Raises:
    OSError: If it cannot be read, or is no regular file: a pipe would be waited
      for.
    ValueError: If it is larger than `MAX_BYTES`.
  """
  if not stat.S_ISREG(os.stat(path).st_mode):
    raise OSError(errno.EINVAL, 'it is no regular file', os.fspath(path))
  with open(path, 'rb') as file:
    found = file.read(MAX_BYTES + 1)
  if len(found) > MAX_BYTES:
    raise ValueError(
      f'It is larger than {MAX_BYTES // 10**6} MB, the most allowed.'
    )
  return found


def text(found: bytes) -> str:
  r"""Returns the text of a file's content, its lines ended by \n.

  Raises:
    ValueError: If it is no text in UTF-8, with the line.
  """
  if found.startswith(_BINARY_FST):
    raise ValueError(
      "It is in OpenFst's binary format; print it as text, with fstprint."
    )
  try:
    decoded = found.decode('utf-8-sig')
  except UnicodeDecodeError as error:
    line = found.count(b'\n', 0, error.start) + 1
    raise ValueError(f'line {line}: it is not text in UTF-8.') from None
  if '\0' in decoded:
    line = decoded.count('\n', 0, decoded.index('\0')) + 1
    raise ValueError(f'line {line}: it is not text: it has a zero byte.')
  return decoded.replace('\r\n', '\n')
