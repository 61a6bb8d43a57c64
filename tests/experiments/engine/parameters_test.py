"""Users' parameters are of the types that their takers say."""

from collections.abc import Sequence
import functools
import typing
from typing import Any

import pytest

from experiments.engine import parameters


def _builder(
  size: int,
  rate: float = 1.0,
  is_on: bool = False,
  name: str | None = None,
  sizes: Sequence[int] = (),
  side: typing.Literal['left', 'right'] = 'left',
  anything=None,
  strange: 'NoSuchType' = None,  # noqa: F821
  **others,
):
  """Takes everything."""


class _Own:
  """A kind that no message knows."""


def _known(size: int, rate: float, is_on: bool, name: str | None):
  """Whose annotations can all be resolved."""


_KINDS = {
  'size': int,
  'rate': float,
  'is_on': bool,
  'name': str | None,
  'sizes': Sequence[int],
  'side': typing.Literal['left', 'right'],
}


def test_kinds():
  partial = functools.partial(_known, size=3)
  assert parameters.kinds(partial) == {k: _KINDS[k] for k in list(_KINDS)[:4]}
  # One that nobody understands lets everything pass, and `others` is no name.
  assert list(parameters.kinds(_builder)) == [*_KINDS, 'anything', 'strange']


@pytest.mark.parametrize(
  ('name', 'value', 'what'),
  [
    ('size', True, 'a whole number, got True'),
    ('side', 'up', "'left' or 'right', got 'up'"),
    ('side', ['left'], r"'left' or 'right', got \['left'\]"),
    ('size', 3.0, 'a whole number'),
    ('size', None, 'a whole number'),
    ('rate', '0.5', "a finite number, got '0.5'"),
    ('rate', float('inf'), 'a finite number'),
    ('rate', float('nan'), 'a finite number'),
    ('rate', 10**400, 'a finite number'),
    ('rate', False, 'a finite number'),
    ('is_on', 3, 'true or false, got 3'),
    ('is_on', 'true', 'true or false'),
    ('name', 5, 'text or null'),
    ('sizes', 5, r'a list \(each of it a whole number\)'),
    ('sizes', [1, True], 'a list'),
    ('sizes', '12', 'a list'),
  ],
)
def test_other_types_are_refused(name, value, what):
  with pytest.raises(ValueError, match=f'^where: {name} must be {what}'):
    parameters.check('where', {name: value}, _KINDS)


def test_lists_of_a_users_own_kinds():
  kinds = {'a': list[Any], 'b': Sequence[_Own], 'c': typing.List}  # noqa: UP006
  parameters.check('where', {name: [1] for name in kinds}, kinds)
  for name in kinds:
    with pytest.raises(
      ValueError, match=r'must be a list \(each of it a value'
    ):
      parameters.check('where', {name: 5}, kinds)


def test_unknown_names_are_refused():
  parameters.check_names('where', ['b'], 'f', {'b': 1, 'a': 2})
  for known, message in (
    ({'b', 'a'}, "^where: f has no 'c'; its arguments are a, b.$"),
    ((), "^where: f has no 'c'; its arguments are none.$"),
  ):
    with pytest.raises(ValueError, match=message):
      parameters.check_names('where', ['c'], 'f', known)


def test_right_types_pass():
  for name, value in (
    ('size', 10**30),
    ('rate', 1),
    ('is_on', False),
    ('name', None),
    ('name', ''),
    ('sizes', [1, 2]),
    ('sizes', ()),
    ('side', 'right'),
    ('unknown', object()),
  ):
    parameters.check('where', {name: value}, _KINDS)
