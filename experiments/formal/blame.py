"""What goes wrong in a user's own code, as one line that says where."""

from collections.abc import Iterator
import contextlib

from tasks import task as task_lib


class TaskError(ValueError):
  """A task does not do what it says; the message is one line."""


@contextlib.contextmanager
def blamed(where: str) -> Iterator[None]:
  """Turns any error, and `sys.exit`, into one line.

  Args:
    where: Stands before what the error says.

  Raises:
    TaskError: If what is done within fails.
  """
  try:
    yield
  except TaskError:  # Of what was called from there.
    raise
  except (Exception, SystemExit) as error:  # A user's code may raise anything.
    raise TaskError(f'{where}: {one_line(error)}') from error


def one_line(error: BaseException) -> str:
  """Returns an error's class and the first line that it says."""
  lines = str(error).strip().splitlines()
  return ': '.join([type(error).__name__, *lines[:1]])


def method(
  task: task_lib.GeneralizationTask, name: str, length: int | None = None
) -> str:
  """Returns how errors name a task's method, at a length where it has one."""
  where = f'{type(task).__name__}.{name}'
  return where if length is None else f'{where}, length {length}'
