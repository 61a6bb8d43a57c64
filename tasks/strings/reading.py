"""Reading labelled strings from a file, whatever its format.

MLRegTest's (van der Poel et al., 2023): a string, a tabulator and a label a
line. Abbadingo's (Lang et al., 1998): a header, then a label, a length and the
symbols a line. FLaRe's (Butoi et al., 2025): `main.tok`, a string a line, and
`labels.txt` beside it.
"""

from collections.abc import Iterator, Sequence
import hashlib
import os
import re
from typing import NamedTuple

from tasks import text_files

_TOKENS, _LABELS = '.tok', 'labels.txt'
_HEADER = re.compile(r'\d{1,12} +\d{1,12}')
_FORMATS = (
  'a string, a tabulator and a label a line, as MLRegTest has it; or a header'
  ' `strings symbols`, then `label length symbols` a line, as Abbadingo has it;'
  ' or a file main.tok beside a file labels.txt, as FLaRe has it'
)


class Strings(NamedTuple):
  """What a file holds.

  Attributes:
    strings: Each a sequence of symbols; none is empty.
    labels: Their names, one a string.
    lines: The line of each.
    notes: One line for each thing that was left out or cannot be learned.
    checksum: SHA-256 of the file, and of that of its labels.
  """

  strings: list[Sequence[str]]
  labels: list[str]
  lines: list[int]
  notes: list[str]
  checksum: str


def read(path: str | os.PathLike) -> Strings:
  """Returns the labelled strings of a file.

  The symbols of MLRegTest's strings are characters, or, where there are spaces
  between them, what these separate. Empty strings are left out.

  Args:
    path: Of the file; `main.tok` has its labels in `labels.txt` beside it.

  Raises:
    ValueError: If it cannot be read, or holds no labelled strings.
  """
  place = os.fspath(path)
  digest = hashlib.sha256()
  try:
    text = _text(place, digest)
    if place.lower().endswith(_TOKENS):
      labels = os.path.join(os.path.dirname(place), _LABELS)
      rows = _flare(text, _text(labels, digest), labels)
    else:
      rows = _rows(text)
    found = list(rows)
  except OSError as error:
    where = error.filename or place
    raise ValueError(
      f'Cannot read {where}: {error.strerror or error}.'
    ) from error
  except ValueError as error:
    raise ValueError(f'{place}: {error}') from error
  if any(' ' in string for _, string, _ in found if isinstance(string, str)):
    found = [(line, string.split(), label) for line, string, label in found]
  # One object a symbol: there may be millions of each.
  symbols: dict[str, str] = {}
  found = [
    (line, string, label)
    if isinstance(string, str)
    else (line, tuple(symbols.setdefault(s, s) for s in string), label)
    for line, string, label in found
  ]
  kept = [row for row in found if row[1]]
  if not kept:
    raise ValueError(f'{place}: It has no string of one symbol or more.')
  notes = []
  if num_empty := len(found) - len(kept):
    strings = 'string is' if num_empty == 1 else 'strings are'
    notes.append(f'{place}: {num_empty:,} empty {strings} left out.')
  first: dict[Sequence[str], tuple[int, str]] = {}
  torn: dict[Sequence[str], int] = {}
  for line, string, label in kept:
    if first.setdefault(string, (line, label))[1] != label:
      torn.setdefault(string, line)
  if torn:
    string, line = next(iter(torn.items()))
    notes.append(
      f'{place}: {len(torn):,} of {len(first):,} distinct strings have several'
      f' labels, as that of lines {first[string][0]} and {line}: no answer to'
      ' them is always right.'
    )
  lines, strings, labels = map(list, zip(*kept, strict=True))
  return Strings(strings, labels, lines, notes, digest.hexdigest())


def _text(path: str, digest) -> str:
  content = text_files.content(path)
  digest.update(content)
  return text_files.text(content)


# A line's number, its string, its label.
_Row = tuple[int, str | list[str], str]


def _lines(text: str) -> list[str]:
  """Returns lines without the empty ones at the end."""
  return text.rstrip('\n').split('\n')


def _rows(text: str) -> Iterator[_Row]:
  if not text.strip():
    raise ValueError('It is empty.')
  lines = _lines(text)
  if '\t' in lines[0]:
    return _mlregtest(lines)
  if _HEADER.fullmatch(lines[0].strip(' ')):
    return _abbadingo(lines)
  raise ValueError(f'line 1: expected {_FORMATS}, got {_shown(lines[0])}.')


def _shown(line: str) -> str:
  return ascii(line if len(line) <= 60 else f'{line[:60]}...')


def _mlregtest(lines: Sequence[str]) -> Iterator[_Row]:
  for number, line in enumerate(lines, 1):
    columns = line.split('\t')
    if len(columns) != 2 or not columns[1].strip():
      raise ValueError(
        f'line {number}: expected a string, a tabulator and a label, got'
        f' {_shown(line)}.'
      )
    yield number, columns[0].strip(' '), columns[1].strip()


def _abbadingo(lines: Sequence[str]) -> Iterator[_Row]:
  num_strings, num_symbols = map(int, lines[0].split())
  if num_strings != len(lines) - 1:
    raise ValueError(
      f'line 1: it says {num_strings:,} strings, but {len(lines) - 1:,} lines'
      ' follow.'
    )
  symbols = set()
  for number, line in enumerate(lines[1:], 2):
    columns = line.split()
    is_whole = len(columns) > 1 and columns[1].isascii()
    if not is_whole or columns[1] != str(len(columns) - 2):
      raise ValueError(
        f'line {number}: expected a label, a length and so many symbols, got'
        f' {_shown(line)}.'
      )
    if columns[0] == '-1':
      raise ValueError(f'line {number}: its label is -1, unknown.')
    symbols.update(columns[2:])
    if len(symbols) > num_symbols:
      raise ValueError(
        f'line {number}: this is the symbol {num_symbols + 1:,}, but line 1'
        f' says {num_symbols:,}.'
      )
    yield number, columns[2:], columns[0]


def _flare(text: str, labels_text: str, labels_path: str) -> Iterator[_Row]:
  # An empty line is an empty string, the last one too.
  lines = text.removesuffix('\n').split('\n')
  labels = labels_text.removesuffix('\n').split('\n')
  if len(lines) != len(labels):
    raise ValueError(
      f'It has {len(lines):,} lines, but {labels_path} {len(labels):,}.'
    )
  for number, (line, label) in enumerate(zip(lines, labels, strict=True), 1):
    if len(label.split()) != 1:
      raise ValueError(
        f'line {number} of {labels_path}: expected a label, got'
        f' {_shown(label)}.'
      )
    yield number, line.split(), label.strip()
