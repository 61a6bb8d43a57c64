"""Fields of an experiment, checked, that a launcher turns into flags."""

from collections.abc import Mapping
import dataclasses
import reprlib
from typing import Any

from experiments.engine import parameters

# Of whole numbers that have no maximum of their own: steps and sizes are int32
# in JAX.
MAX_INT = 2**31 - 1


def option(default: Any, help_text: str, **metadata) -> Any:
  """Returns a dataclass field.

  Args:
    default: Its default.
    help_text: Its documentation, and its flag's.
    **metadata: What `check` goes by, `minimum`, `maximum` and `choices`;
      `may_change`, whether a workdir accepts another value; `if_other`, what to
      say of another value that would mean nothing to its reader; and what else
      whoever makes flags of the fields goes by.
  """
  metadata['help'] = help_text
  if isinstance(default, dict):
    return dataclasses.field(
      default_factory=lambda: dict(default), metadata=metadata
    )
  return dataclasses.field(default=default, metadata=metadata)


def with_default(
  base: type, name: str, default: Any, help_text: str = ''
) -> Any:
  """Returns a base class's field for a subclass, with another default.

  Args:
    base: A dataclass of such fields.
    name: Of the field.
    default: For the subclass.
    help_text: In place of the field's own.
  """
  metadata = dict(base.__dataclass_fields__[name].metadata)
  return option(default, help_text or metadata.pop('help'), **metadata)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the fields that are given: None stands for what is not."""
  return {name: value for name, value in values.items() if value is not None}


def check(experiment: Any) -> None:
  """Checks the fields of a frozen dataclass; turns whole numbers into floats.

  Raises:
    ValueError: If one has a bad type or value.
  """
  for field in dataclasses.fields(experiment):
    value = getattr(experiment, field.name)
    parameters.check_type(field.name, value, field.type)
    if field.type in (int, float):
      value = field.type(value)
      object.__setattr__(experiment, field.name, value)
    parameters.check_bounds(
      field.name,
      value,
      field.metadata.get('minimum'),
      field.metadata.get('maximum', MAX_INT if field.type is int else None),
    )
    choices = field.metadata.get('choices')
    if choices and value not in choices:
      raise ValueError(
        f'{field.name} must be one of {", ".join(choices)}, got'
        f' {reprlib.repr(value)}.'
      )
