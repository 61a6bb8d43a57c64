"""Values that users give, checked: their types and their bounds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import functools
import inspect
import numbers
import reprlib
import sys
import types
import typing
from typing import Any

_NAMES = {
  bool: 'true or false',
  int: 'a whole number',
  float: 'a finite number',
  str: 'text',
  dict: 'a JSON object',
  types.NoneType: 'null',
}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def kinds(builder: Callable[..., Any]) -> dict[str, Any]:
  """Returns the annotation of each argument of a function or a class.

  What has none, or one that nobody understands, may be anything.
  """
  function = builder
  while isinstance(function, functools.partial):
    function = function.func
  try:
    signature = inspect.signature(builder)
  except (TypeError, ValueError):  # Python does not know them all.
    return {}
  try:
    hints = typing.get_type_hints(
      function.__init__ if inspect.isclass(function) else function
    )
  except Exception:  # Names that a user's module knows at other times only.
    hints = {}
  return {
    name: hints.get(name, Any)
    for name, parameter in signature.parameters.items()
    if parameter.kind not in _VARIADIC
  }


def check(
  where: str, values: Mapping[str, Any], kinds: Mapping[str, Any]
) -> None:
  """Checks the types of values: true is no whole number, nor is 1.0.

  Args:
    where: Where they are given, as 'task_params'.
    values: By name.
    kinds: What they may be, by name; others are not checked.

  Raises:
    ValueError: If one is of another type, or a number that is not finite.
  """
  for name, value in values.items():
    check_type(f'{where}: {name}', value, kinds.get(name, Any))


def check_names(
  where: str, values: Iterable[str], owner: str, known: Iterable[str]
) -> None:
  """Checks that values are of known names.

  Args:
    where: Where they are given, as 'task_params'.
    values: Their names.
    owner: What takes them.
    known: The names that it has.

  Raises:
    ValueError: If it has not one of them.
  """
  known = sorted(known)
  for name in values:
    if name not in known:
      raise ValueError(
        f'{where}: {owner} has no {name!r}; its arguments are'
        f' {", ".join(known) or "none"}.'
      )


def check_type(name: str, value: Any, kind: Any) -> None:
  """Checks the type of one value, as `check`.

  Raises:
    ValueError: If it is another.
  """
  if not _fits(value, kind):
    raise ValueError(
      f'{name} must be {_named(kind)}, got {reprlib.repr(value)}.'
    )


def check_bounds(
  name: str,
  value: float,
  minimum: float | None = None,
  maximum: float | None = None,
) -> None:
  """Checks that a number is from a minimum to a maximum, both included.

  Raises:
    ValueError: If it is not.
  """
  if minimum is not None and not value >= minimum:
    limit = f'at least {minimum}'
  elif maximum is not None and not value <= maximum:
    limit = f'at most {maximum:,}'
  else:
    return
  raise ValueError(f'{name} must be {limit}, got {reprlib.repr(value)}.')


def _fits(value: Any, kind: Any) -> bool:
  origin, arguments = typing.get_origin(kind), typing.get_args(kind)
  if origin in (typing.Union, types.UnionType):
    return any(_fits(value, argument) for argument in arguments)
  if origin is typing.Literal:
    return any(type(value) is type(x) and value == x for x in arguments)
  if origin in (Sequence, list):
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and all(_fits(item, _item(kind)) for item in value)
  if kind in (bool, str, dict, types.NoneType):
    return isinstance(value, kind)
  if isinstance(value, bool) and kind in (int, float):
    return False
  if kind is int:
    return isinstance(value, numbers.Integral)
  if kind is float:
    is_number = isinstance(value, numbers.Real)
    return is_number and abs(value) <= sys.float_info.max
  return True


def _named(kind: Any) -> str:
  origin, arguments = typing.get_origin(kind), typing.get_args(kind)
  if origin in (typing.Union, types.UnionType):
    return ' or '.join(map(_named, arguments))
  if origin is typing.Literal:
    return ' or '.join(map(repr, arguments))
  if origin in (Sequence, list):
    return f'a list (each of it {_named(_item(kind))})'
  return _NAMES.get(kind, 'a value')


def _item(kind: Any) -> Any:
  """Returns the kind of a list's items; `typing.List` alone has none."""
  return (*typing.get_args(kind), Any)[0]
