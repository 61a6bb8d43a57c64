"""What goes wrong in a user's own code, as one line that says where."""

from collections.abc import Iterator
import contextlib

from experiments.engine import errors
from tasks import task as task_lib


class UserCodeError(ValueError):
  """A user's task or model does not do what it must, said in one line."""


@contextlib.contextmanager
def blamed(where: str) -> Iterator[None]:
  """Turns any error, and `sys.exit`, into one line.

  Args:
    where: Stands before what the error says.

  Raises:
    UserCodeError: If what is done within fails.
  """
  try:
    yield
  except UserCodeError:  # Of what was called from there.
    raise
  except (Exception, SystemExit) as error:  # A user's code may raise anything.
    raise UserCodeError(f'{where}: {_named(error)}') from error


def _named(error: BaseException) -> str:
  """Returns an error's class, and the first line if it says anything."""
  name, line = type(error).__name__, errors.first_line(error)
  return name if line == name else f'{name}: {line}'


def method(
  task: task_lib.GeneralizationTask, name: str, length: int | None = None
) -> str:
  """Returns how errors name a task's method, at a length where it has one."""
  where = f'{type(task).__name__}.{name}'
  return where if length is None else f'{where}, length {length}'
