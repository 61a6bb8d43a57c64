"""JSON that others may have written: read, or refused in one line."""

import json
import os
from typing import Any

from experiments.engine import files

# None of our files comes near these. What is nested deeper exhausts the stack
# of whoever walks through it; greater integers overflow sooner or later.
_MAX_DEPTH = 64
# An automaton of two million transitions, the most allowed, takes half of it.
_MAX_BYTES = 2**27
_MAX_DIGITS = 18


def read(path: str | os.PathLike) -> Any:
  """Returns the value that a file of JSON holds.

  Raises:
    ValueError: If it is no JSON, or too large; the text has not the path.
    OSError: If it cannot be read.
  """
  contents = files.read(path, _MAX_BYTES)
  try:
    text = contents.decode()
  except UnicodeDecodeError:
    raise ValueError('it is not text in UTF-8.') from None
  return parse(text)


def parse(text: str) -> Any:
  """Returns the value that a text of JSON means.

  Raises:
    ValueError: If it is no JSON, has a key twice, is nested more than 64 deep,
      or has an integer of more than 18 digits or half a surrogate pair.
  """
  try:
    value = json.loads(
      text, object_pairs_hook=_distinct_keys, parse_int=_integer
    )
  except json.JSONDecodeError as error:
    raise ValueError(f'it is not JSON: {error}.') from None
  except RecursionError:
    value = None
    is_too_deep = True
  else:
    is_too_deep = _depth_exceeds(value, _MAX_DEPTH)
  if is_too_deep:
    raise ValueError(f'it is nested more than {_MAX_DEPTH} deep.')
  # Only an escape can make one, and no file could be written with it.
  if '\\ud' in text.lower():
    try:
      json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
      raise ValueError('it has half a surrogate pair.') from None
  return value


def _integer(digits: str) -> int:
  if len(digits.lstrip('-')) > _MAX_DIGITS:
    raise ValueError(
      f'the number {digits[:12]}... has more than {_MAX_DIGITS} digits.'
    )
  return int(digits)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  """Builds a JSON object; by default the last of equal keys would win."""
  built = {}
  for key, value in pairs:
    if key in built:
      raise ValueError(f'the key {key!r} is given twice.')
    built[key] = value
  return built


def _depth_exceeds(value: Any, depth: int) -> bool:
  level = [value]
  for _ in range(depth + 1):
    if not level:
      return False
    level = [
      child
      for parent in level
      if isinstance(parent, (dict, list))
      for child in (parent.values() if isinstance(parent, dict) else parent)
    ]
  return bool(level)
