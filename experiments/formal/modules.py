"""Modules of users' own, named on the command line: what is in them."""

from collections.abc import Callable, Mapping
import importlib
import importlib.util
import sys
import types
from typing import Any

from experiments.formal import blame
import tasks
from tasks import task as task_lib


def _alias_benchmark() -> None:
  """Lets a task's import of the benchmark's base class find ours.

  So that a file written for DeepMind's benchmark needs no change; where the
  benchmark itself is installed, it is used.
  """
  name = 'neural_networks_chomsky_hierarchy'
  if name in sys.modules or importlib.util.find_spec(name) is not None:
    return
  package = types.ModuleType(name)
  package.__path__ = []
  sys.modules |= {
    name: package,
    f'{name}.tasks': tasks,
    f'{name}.tasks.task': task_lib,
  }


def find(
  flag: str, module_name: str, what: str, is_one: Callable[[Any], bool]
) -> Mapping[str, Any]:
  """Imports a module, and returns what it defines of a kind, by name.

  Args:
    flag: That named it.
    module_name: Of the module, as my_package.my_task.
    what: The kind, for the error.
    is_one: Whether a thing is of the kind.

  Raises:
    ValueError: If it cannot be imported, or has nothing of the kind.
  """
  _alias_benchmark()
  with blame.blamed(f'Cannot import {flag} {module_name}'):
    module = importlib.import_module(module_name)
  found = {
    name: value
    for name, value in vars(module).items()
    if not name.startswith('_')
    and getattr(value, '__module__', None) == module.__name__
    and is_one(value)
  }
  if not found:
    raise ValueError(f'{module_name} defines no {what}.')
  return found
