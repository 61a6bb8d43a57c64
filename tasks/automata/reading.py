"""Reading an automaton from a file, whatever its format."""

from collections.abc import Callable
import json
import os
from typing import Any, NamedTuple

from tasks.automata import att, completion, description, dot, fields, jff

_MAX_BYTES = 64_000_000
_BINARY_FST = b'\xd6\xfd\xb2\x7e'  # OpenFst's own, which is no text.


class Automaton(NamedTuple):
  """What a file holds.

  Attributes:
    fields: The JSON object of a complete deterministic automaton, see `fields`.
    notes: One line for each thing that was done to what was found.
  """

  fields: dict[str, Any]
  notes: list[str]


# By the ending of a file's name; JSON is read by who asks.
FORMATS: dict[str, Callable[[str], description.Description]] = {
  '.att': att.read,
  '.dot': dot.read,
  '.gv': dot.read,
  '.jff': jff.read,
}


def read(
  path: str | os.PathLike, parse_json: Callable[[str], Any] = json.loads
) -> Automaton:
  """Returns the automaton of a file.

  Its format is that of its name, or what it looks like: JSON as in `fields`,
  AT&T's text, graphviz, or JFLAP's XML. Missing transitions lead to a sink; an
  automaton with choices is determinized and minimised.

  Args:
    path: Of the file.
    parse_json: From JSON to what it means; may be stricter than Python's.

  Raises:
    ValueError: If it cannot be read, or holds no automaton.
  """
  try:
    text = _text(path)
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in ('.json', *FORMATS):
      ending = _looks_like(text)
    if ending == '.json':
      found = fields.describe(fields.parse(text, parse_json))
    else:
      found = FORMATS[ending](text)
    made, notes = completion.complete(found)
  except OSError as error:
    raise ValueError(
      f'Cannot read {path}: {error.strerror or error}.'
    ) from error
  except ValueError as error:
    raise ValueError(f'{path}: {_one_line(error)}') from error
  return Automaton(made, [f'{path}: {note}' for note in notes])


def _one_line(error: ValueError) -> str:
  line = ' '.join(str(error).splitlines())
  return line if len(line) < 500 else f'{line[:500]} ...'


def _text(path: str | os.PathLike) -> str:
  with open(path, 'rb') as file:
    content = file.read(_MAX_BYTES + 1)
  if len(content) > _MAX_BYTES:
    raise ValueError(
      f'It is larger than {_MAX_BYTES // 10**6} MB, the most allowed.'
    )
  if content.startswith(_BINARY_FST):
    raise ValueError(
      "It is in OpenFst's binary format; print it as text, with fstprint."
    )
  try:
    text = content.decode('utf-8-sig')
  except UnicodeDecodeError as error:
    line = content.count(b'\n', 0, error.start) + 1
    raise ValueError(f'line {line}: it is not text in UTF-8.') from None
  if '\0' in text:
    line = text.count('\n', 0, text.index('\0')) + 1
    raise ValueError(f'line {line}: it is not text: it has a zero byte.')
  if not text.strip():
    raise ValueError('It is empty.')
  return text.replace('\r\n', '\n')


def _looks_like(text: str) -> str:
  """Returns the ending of the format that a text begins like."""
  beginning = text.lstrip()[:20]
  if beginning.startswith(('{', '[')):
    return '.json'
  if beginning.startswith('<'):
    return '.jff'
  if beginning.startswith(('digraph', 'strict', 'graph', '//', '/*', '#')):
    return '.dot'
  return '.att'
