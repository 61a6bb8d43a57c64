"""What was measured, as files: each whole, and each measured once."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import json
import os
from typing import Any, TypeVar

from experiments.engine import devices, environment, files, json_reading
from experiments.engine import experiment as experiment_lib

# Folder of the results, in a workdir.
FOLDER = 'results'

_T = TypeVar('_T')


def origin(experiment: experiment_lib.BaseExperiment) -> dict[str, Any]:
  """Returns what a result of an experiment depends on, for JSON."""
  return {
    'experiment': dataclasses.asdict(experiment),
    'environment': environment.current(),
  }


def load(path: str, take: Callable[[Any], _T]) -> _T:
  """Reads a result.

  Args:
    path: Of a JSON file.
    take: From what is in it to the result; may raise what looking into
      something of another shape raises.

  Raises:
    ValueError: If it cannot be read, or is no result.
  """
  try:
    return take(json_reading.read(path))
  except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
    reason = f'it has no {error}.' if isinstance(error, KeyError) else error
    raise ValueError(f'Cannot read the result {path}: {reason}') from error


def save(path: str, text: str) -> None:
  """Writes a result, whole or not at all; makes the folder.

  Raises:
    OSError: If it cannot be written.
  """
  files.make_folder(os.path.dirname(files.absolute(path)))
  files.write_atomically(path, text)


def save_json(path: str, contents: Mapping[str, Any]) -> None:
  """Writes what people may read too; otherwise as `save`."""
  save(path, json.dumps(contents, indent=2, ensure_ascii=False) + '\n')


def is_measured(path: str, differences: Callable[[], Sequence[str]]) -> bool:
  """Whether there is a result, the same on all processes.

  Args:
    path: Where it would be.
    differences: Says how the one that is there was made otherwise than the one
      that is wanted.

  Raises:
    ValueError: If it is that of another experiment.
  """

  def look():
    if not files.exists(path):
      return False
    if differing := differences():
      raise ValueError(
        f'{path} is of another experiment: {"; ".join(differing)}. Choose'
        ' another folder for the results.'
      )
    return True

  return bool(devices.from_main(look))
