"""Raw text files, read as blocks of whole documents, and blocks as documents.

A block is small enough to be a worker's piece of work and large enough that
there are few; where it ends depends on nothing but the file.
"""

from collections.abc import Iterator
import dataclasses
import glob
import gzip
import json
import os
import re
from typing import BinaryIO
import zlib

import zstandard

from experiments.engine import progress

KEY = 'text'  # Of a document in a line of JSON.
_KINDS = ('.jsonl', '.txt')
# Compressed data is read so little at a time: zstd makes 128 KiB of 4 bytes,
# so this gives 32 MiB at most.
_ZSTD_CHUNK_BYTES = 2**10
_CHUNK_BYTES = 128 * 2**10
_BLOCK_BYTES = 4 * 2**20
# How far a block may go on to the end of its last line.
_LINE_BYTES = 16 * 2**20
# A text file has no documents. It is cut into some, or all of it would fall to
# one split: at the first blank after so many bytes, or, in a text without
# blanks, after twice as many.
_TXT_DOCUMENT_BYTES = 64 * 2**10
_BOM = b'\xef\xbb\xbf'
_CHARACTER_BYTES = 4  # At most, in UTF-8.


@dataclasses.dataclass(frozen=True)
class Block:
  """Whole documents of one file.

  Attributes:
    path: The file.
    number: Of the block in the file, from 0.
    start: Bytes before it in the file, decompressed.
    first_line: Number of its first line, from 1.
    data: As in the file, decompressed.
    position: Where reading is in the file, in bytes: what progress is made.
  """

  path: str
  number: int
  start: int
  first_line: int
  data: bytes
  position: int


def find_files(pattern: str) -> list[str]:
  """Returns the files that match a glob pattern, or have its name, sorted.

  Of several paths to a file one is kept; empty files are left out.

  Raises:
    ValueError: If there are none, all are empty, or one is of a kind that is
      not read.
  """
  named = [pattern] if os.path.isfile(pattern) else []
  paths = sorted(named or glob.glob(pattern, recursive=True))
  if not paths:
    raise ValueError(f'No file matches {pattern!r}.')
  path_of = {}
  for path in paths:
    path_of.setdefault(os.path.realpath(path), path)
  if num_others := len(paths) - len(path_of):
    progress.say(f'{num_others:,} links to other files are left out.')
  paths = list(path_of.values())
  for path in paths:
    if not _uncompressed(path).endswith(_KINDS):
      raise ValueError(
        f'{path}: can read {" and ".join(_KINDS)}, each also with'
        f' {" or ".join(_READERS)} after it; narrow the pattern.'
      )
    if not os.path.isfile(path):
      raise ValueError(f'{path} is no file; narrow the pattern.')
  empty = {path for path in paths if not os.path.getsize(path)}
  if len(empty) == len(paths):
    raise ValueError(f'All files that match {pattern!r} are empty.')
  if empty:
    progress.say(
      f'Empty files are left out: {len(empty):,}, first {min(empty)}.'
    )
  return [path for path in paths if path not in empty]


def is_txt(path: str) -> bool:
  """Returns whether a file is text, which has no documents of its own."""
  return _uncompressed(path).endswith('.txt')


def _uncompressed(path: str) -> str:
  """Returns a file's name without that of its compression."""
  stem, suffix = os.path.splitext(path)
  return stem if suffix in _READERS else path


def _read_zst(path: str, file: BinaryIO) -> Iterator[bytes]:
  """Yields the contents of a file of zstd frames, one after another."""
  decompressor = zstandard.ZstdDecompressor()
  frame = None
  try:
    while data := file.read(_ZSTD_CHUNK_BYTES):
      while data:
        frame = frame or decompressor.decompressobj()
        yield frame.decompress(data)
        data = b''
        if frame.eof:
          data, frame = frame.unused_data, None
  except zstandard.ZstdError as error:
    raise ValueError(f'{path} is not zstd, or is damaged: {error}.') from error
  if frame is not None:
    raise ValueError(f'{path} is cut short: its last zstd frame does not end.')


def _read_gz(path: str, file: BinaryIO) -> Iterator[bytes]:
  """Yields the contents of a file of gzip members, one after another."""
  try:
    with gzip.GzipFile(fileobj=file) as members:
      yield from _read_plain(path, members)
  except (gzip.BadGzipFile, zlib.error) as error:
    raise ValueError(f'{path} is not gzip, or is damaged: {error}.') from error
  except EOFError as error:
    raise ValueError(
      f'{path} is cut short: its last gzip member does not end.'
    ) from error


def _read_plain(path: str, file: BinaryIO) -> Iterator[bytes]:
  """Yields the contents of a file."""
  del path
  while data := file.read(_CHUNK_BYTES):
    yield data


_READERS = {'.zst': _read_zst, '.gz': _read_gz}


def _separator(path: str) -> re.Pattern[bytes]:
  """Returns what a block or document of the file may end with."""
  return re.compile(rb'[ \n]' if is_txt(path) else rb'\n')


def blocks(path: str) -> Iterator[Block]:
  """Yields a file's blocks, each of 4 MiB and the rest of its last line.

  Raises:
    ValueError: If a compressed file is not what its name says, or is damaged or
      cut short, or a line of JSON is longer than 16 MiB.
  """
  separator = _separator(path)
  read = _READERS.get(os.path.splitext(path)[1], _read_plain)
  rest = _TXT_DOCUMENT_BYTES if is_txt(path) else _LINE_BYTES
  number, start, first_line = 0, 0, 1
  pending = bytearray()
  searched = _BLOCK_BYTES - 1  # Nothing before this may end the block.
  with open(path, 'rb') as file:
    for data in read(path, file):
      pending += data
      while stop := _stop(pending, separator, searched, _BLOCK_BYTES + rest):
        block = bytes(pending[:stop])
        if not is_txt(path) and not block.endswith(b'\n'):
          line = first_line + block.count(b'\n')
          raise ValueError(
            f'{path}, line {line}: longer than {_LINE_BYTES:,} bytes; cut it'
            ' into documents, a line each.'
          )
        yield Block(path, number, start, first_line, block, file.tell())
        del pending[:stop]
        number, start = number + 1, start + stop
        first_line += block.count(b'\n')
        searched = _BLOCK_BYTES - 1
      searched = max(searched, len(pending))
    if pending:
      yield Block(path, number, start, first_line, bytes(pending), file.tell())


def _stop(
  data: bytes | bytearray,
  separator: re.Pattern[bytes],
  start: int,
  max_bytes: int,
) -> int:
  """Returns where a part of the data ends, 0 if more is needed to say.

  Args:
    data: What there is.
    separator: What a part may end with.
    start: Where to begin to look for it.
    max_bytes: Where to cut if there is none before, or after the character
      that is there.
  """
  if found := separator.search(data, start, max_bytes):
    return found.end()
  if len(data) < max_bytes + _CHARACTER_BYTES:
    return 0
  stop = max_bytes
  while data[stop] & 0xC0 == 0x80 and stop < max_bytes + _CHARACTER_BYTES - 1:
    stop += 1
  return stop


def documents(block: Block, key: str = KEY) -> Iterator[str]:
  """Yields a block's documents; '' for a record without any text.

  Args:
    block: Of any file.
    key: Of the text in a line of JSON.

  Raises:
    ValueError: With file and line, if a line is not an object of JSON, or the
      text in it not a string, or a text file is not UTF-8.
  """
  if is_txt(block.path):
    yield from _txt_documents(block)
    return
  start = block.start
  for line_number, line in enumerate(block.data.split(b'\n'), block.first_line):
    yield from _line_document(
      line, f'{block.path}, line {line_number}', start, key
    )
    start += len(line) + 1


def _line_document(
  line: bytes, where: str, start: int, key: str
) -> Iterator[str]:
  """Yields the document of a line, if there is one."""
  try:
    # Halves of surrogate pairs are mended below; a BOM may begin any of several
    # files that were joined.
    decoded = line.decode('utf-8-sig', 'surrogatepass')
    if not decoded.strip():
      return
    record = json.loads(decoded)
  except UnicodeDecodeError as error:
    raise _not_utf8(error, where, start) from error
  except json.JSONDecodeError as error:  # Its own line number is always 1.
    raise ValueError(
      f'{where}: not JSON: {error.msg} at character {error.pos + 1}.'
    ) from error
  except (ValueError, RecursionError) as error:
    raise ValueError(f'{where}: not JSON: {error}.') from error
  if not isinstance(record, dict):
    raise ValueError(f'{where}: not an object of JSON.')
  text = record.get(key)
  if not isinstance(text, str | None):
    raise ValueError(
      f'{where}: {json.dumps(key)} must be a string or null, not'
      f' {json.dumps(text)[:40]}.'
    )
  yield _valid(text or '')


def _txt_documents(block: Block) -> Iterator[str]:
  """Yields parts of a text that join to the whole."""
  separator = _separator(block.path)
  data, line_number = block.data, block.first_line
  start = len(_BOM) if not block.number and data.startswith(_BOM) else 0
  while start < len(data):
    part = data[start : start + 2 * _TXT_DOCUMENT_BYTES + _CHARACTER_BYTES]
    stop = _stop(
      part, separator, _TXT_DOCUMENT_BYTES - 1, 2 * _TXT_DOCUMENT_BYTES
    )
    part = part[: stop or None]
    try:
      yield part.decode()
    except UnicodeDecodeError as error:
      line_number += part.count(b'\n', 0, error.start)
      raise _not_utf8(
        error, f'{block.path}, line {line_number}', block.start + start
      ) from error
    start += len(part)
    line_number += part.count(b'\n')


def _not_utf8(error: UnicodeDecodeError, where: str, start: int) -> ValueError:
  """Returns an error that counts from the beginning of the file."""
  return ValueError(
    f'{where}: not UTF-8: byte {start + error.start} of the text is'
    f' 0x{error.object[error.start]:02x} ({error.reason}).'
  )


def _valid(text: str) -> str:
  """Replaces halves of surrogate pairs, which JSON can write and UTF-8 not."""
  try:
    text.encode()
  except UnicodeEncodeError:
    return text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')
  return text
