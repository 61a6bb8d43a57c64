"""Reading an automaton from a file, whatever its format."""

from collections.abc import Callable
import json
import os
from typing import Any, NamedTuple

from tasks import text_files
from tasks.automata import att, completion, description, dot, fields, jff


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
    text = text_files.text(text_files.content(path))
    if not text.strip():
      raise ValueError('It is empty.')
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
