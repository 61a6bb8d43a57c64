"""What bad input must lead to."""

from collections.abc import Iterator
import contextlib

import pytest


@contextlib.contextmanager
def one_line(
  message: str, kind: type[Exception] = ValueError
) -> Iterator[pytest.ExceptionInfo]:
  """Expects an error that says in one line what is wrong.

  Args:
    message: A regular expression that occurs in it.
    kind: Of the error.
  """
  with pytest.raises(kind, match=message) as caught:
    yield caught
  assert len(str(caught.value).splitlines()) == 1
