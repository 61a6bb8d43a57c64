"""What the quick tests leave out of a product of many cases."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def unless(is_quick: Callable[..., bool], cases: Sequence[Any]) -> list[Any]:
  """Returns cases for `parametrize`, marked slow where they are not quick.

  Args:
    is_quick: Of a case, or of its parts if it is a tuple.
    cases: All of them.
  """
  parts = [case if isinstance(case, tuple) else (case,) for case in cases]
  return [
    pytest.param(*part, marks=[] if is_quick(*part) else [pytest.mark.slow])
    for part in parts
  ]
