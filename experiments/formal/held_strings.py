"""What an experiment holds of files of strings, checked: anyone may write it.

`experiments.formal.strings` makes it, and reads the files.
"""

from collections.abc import Mapping, Sequence
import re
import reprlib
from typing import Any

from tasks import text_files

_OF_TESTS = ('file', 'sha256', 'lengths')
_OF_TRAINING = (*_OF_TESTS, 'alphabet', 'labels')
_CHECKSUM = re.compile('[0-9a-f]{64}')


def check(strings: Mapping[str, Any], tests: Mapping[str, Any]) -> None:
  """Checks what an experiment holds of strings to train and to test on.

  Args:
    strings: As `strings.describe` returns it; empty for none.
    tests: As `strings.describe_tests` returns it.

  Raises:
    ValueError: If it is nothing that these return.
  """
  if strings:
    _check('strings', strings, _OF_TRAINING)
    for name in ('alphabet', 'labels'):
      _check_names(f'strings: {name}', strings[name])
    if len(strings['labels']) < 2:
      raise ValueError('strings: labels must be two or more.')
  for path, held in tests.items():
    _check('test_strings', held, _OF_TESTS)
    if held['file'] != path:
      raise ValueError(f'test_strings: {path!r} is of another file.')


def _check(where: str, held: Any, names: Sequence[str]) -> None:
  if not isinstance(held, Mapping) or {*held} != {*names}:
    raise ValueError(
      f'{where} must be the path of a file, or what was held of it:'
      f' {", ".join(names)}; got {reprlib.repr(held)}.'
    )
  _check_names(f'{where}: file', [held['file']])
  if not _CHECKSUM.fullmatch(str(held['sha256'])):
    raise ValueError(
      f'{where}: sha256 must be 64 digits in base 16, got'
      f' {reprlib.repr(held["sha256"])}.'
    )
  # Rising; and no more than a file can hold, which counts in time and memory.
  last = num_symbols = 0
  for item in _as_list(held['lengths']):
    is_pair = isinstance(item, list | tuple) and len(item) == 2
    if not is_pair or not all(type(x) is int for x in item):
      break
    length, count = item
    if length <= last or count < 1:
      break
    last = length
    num_symbols += length * count
  else:
    if 0 < num_symbols <= text_files.MAX_BYTES:
      return
  raise ValueError(
    f'{where}: lengths must be rising pairs of a length and how many strings'
    f' have it, got {reprlib.repr(held["lengths"])}.'
  )


def _as_list(value: Any) -> Sequence[Any]:
  return value if isinstance(value, list | tuple) else (value,)


def _check_names(where: str, names: Any) -> None:
  names = _as_list(names)
  if (
    not names
    or not all(isinstance(name, str) and name for name in names)
    or len({*names}) < len(names)
  ):
    raise ValueError(
      f'{where} must be distinct texts, got {reprlib.repr(names)}.'
    )
