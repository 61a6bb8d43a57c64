"""Raw text files, read as blocks of whole documents, and blocks as documents.

A block is small enough to be a worker's piece of work and large enough that
there are few; where it ends depends on nothing but the file.
"""

from collections.abc import Iterator
import dataclasses
import glob
import json
import os
import re
from typing import BinaryIO

import zstandard

_SUFFIXES = ('.jsonl.zst', '.jsonl', '.txt')
_BLOCK_BYTES = 4 * 2**20
# A text file has no documents. It is cut into some, or all of it would fall to
# one split.
_TXT_DOCUMENT_BYTES = 64 * 2**10
_CHUNK_BYTES = 128 * 2**10


@dataclasses.dataclass(frozen=True)
class Block:
  """Whole documents of one file.

  Attributes:
    path: The file.
    number: Of the block in the file, from 0.
    first_line: Number of its first line, from 1.
    data: As in the file, decompressed.
    position: Where reading is in the file, in bytes: what progress is made.
  """

  path: str
  number: int
  first_line: int
  data: bytes
  position: int


def find_files(pattern: str) -> list[str]:
  """Returns the files that match a glob pattern, sorted.

  Raises:
    ValueError: If there are none, or one is empty or of a kind that is not
      read.
  """
  paths = sorted(glob.glob(pattern, recursive=True))
  if not paths:
    raise ValueError(f'No file matches {pattern!r}.')
  for path in paths:
    if not path.endswith(_SUFFIXES):
      raise ValueError(
        f'{path}: can read {", ".join(_SUFFIXES)}; narrow the pattern.'
      )
    if not os.path.getsize(path):
      raise ValueError(f'{path} is empty.')
  return paths


def _decompressed(path: str, file: BinaryIO) -> Iterator[bytes]:
  """Yields the contents of a file of zstd frames, one after another."""
  decompressor = zstandard.ZstdDecompressor()
  frame = None
  try:
    while data := file.read(_CHUNK_BYTES):
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


def _plain(path: str, file: BinaryIO) -> Iterator[bytes]:
  """Yields the contents of a file."""
  del path
  while data := file.read(_CHUNK_BYTES):
    yield data


def _separator(path: str) -> re.Pattern[bytes]:
  """Returns what a block or document of the file may end with."""
  return re.compile(rb'[ \n]' if path.endswith('.txt') else rb'\n')


def blocks(path: str) -> Iterator[Block]:
  """Yields a file's blocks, each of 4 MiB and the rest of its last line.

  Raises:
    ValueError: If a `.zst` file is not zstd, or is damaged or cut short.
  """
  separator = _separator(path)
  read = _decompressed if path.endswith('.zst') else _plain
  number, first_line = 0, 1
  pending = bytearray()
  searched = _BLOCK_BYTES - 1  # Nothing before this may end the block.
  with open(path, 'rb') as file:
    for data in read(path, file):
      pending += data
      while end := separator.search(pending, searched):
        block = bytes(pending[: end.end()])
        yield Block(path, number, first_line, block, file.tell())
        del pending[: end.end()]
        number, first_line = number + 1, first_line + block.count(b'\n')
        searched = _BLOCK_BYTES - 1
      searched = max(searched, len(pending))
    if pending:
      yield Block(path, number, first_line, bytes(pending), file.tell())


def documents(block: Block) -> Iterator[str]:
  """Yields a block's documents; those without any text are left out.

  Raises:
    ValueError: With file and line, if a line is not an object of JSON with a
      string `text`, or a text file is not UTF-8.
  """
  if block.path.endswith('.txt'):
    yield from _txt_documents(block)
    return
  for line_number, line in enumerate(block.data.split(b'\n'), block.first_line):
    if not line.strip():
      continue
    where = f'{block.path}, line {line_number}'
    try:
      document = json.loads(line)
    except (ValueError, RecursionError) as error:
      reason = getattr(error, 'msg', error)  # Its own line number is always 1.
      raise ValueError(f'{where}: not JSON: {reason}.') from error
    text = document.get('text') if isinstance(document, dict) else None
    if not isinstance(text, str):
      raise ValueError(f'{where}: not an object with a string "text".')
    if text:
      yield _valid(text)


def _txt_documents(block: Block) -> Iterator[str]:
  separator = _separator(block.path)
  start = 0
  while start < len(block.data):
    found = separator.search(block.data, start + _TXT_DOCUMENT_BYTES - 1)
    stop = found.end() if found else len(block.data)
    try:
      yield block.data[start:stop].decode()
    except UnicodeDecodeError as error:
      before = block.data[: start + error.start]
      line = block.first_line + before.count(b'\n')
      raise ValueError(f'{block.path}, line {line}: {error}.') from error
    start = stop


def _valid(text: str) -> str:
  """Replaces halves of surrogate pairs, which JSON can write and UTF-8 not."""
  try:
    text.encode()
  except UnicodeEncodeError:
    return text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')
  return text
