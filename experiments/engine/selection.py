"""Which part of a sweep a user asks for, and where it goes by default."""

from collections.abc import Mapping, Sequence
import os
from typing import Any

from experiments.engine import results
from experiments.engine import workdir as workdir_lib


def check_lists(**given: Sequence[Any] | None) -> None:
  """Checks lists of names or numbers, None where there is none.

  Raises:
    ValueError: If one is empty, or has something twice.
  """
  for name, values in given.items():
    if values is not None and not values:
      raise ValueError(f'{name} must not be empty.')
    if values is not None and len(set(values)) < len(values):
      raise ValueError(f'{name} must differ, got {list(values)}.')


def chosen(
  kind: str, wanted: Sequence[str] | None, known: Mapping[str, Any]
) -> dict[str, Any]:
  """Returns what there is by some names; by default all.

  Args:
    kind: What they name, as 'task'.
    wanted: The names.
    known: What there is.

  Raises:
    ValueError: If a name is unknown.
  """
  for name in wanted or ():
    if name not in known:
      raise ValueError(
        f'There is no {kind} {name!r} here, but {", ".join(known)}.'
      )
  return {name: known[name] for name in wanted or known}


def folders(
  name: str, workdir: str | None, results_dir: str | None
) -> tuple[str, str]:
  """Returns a sweep's workdir and its folder of results.

  Args:
    name: Of the preset.
    workdir: As given; by default `runs/` and the preset's name.
    results_dir: As given; by default `results` in the workdir.

  Raises:
    ValueError: If the workdir is that of a trained run.
  """
  workdir = workdir or os.path.join('runs', name)
  workdir_lib.check_no_run(workdir, 'another --workdir')
  return workdir, results_dir or os.path.join(workdir, results.FOLDER)
