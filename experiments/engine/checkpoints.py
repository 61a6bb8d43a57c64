"""Checkpoints that are whole or do not count.

Orbax writes a checkpoint; when it is complete on disk, a list of the SHA-256
of its files is written beside it, and only then does it count. A checkpoint
whose files do not match the list is passed over, and the one before is used.
"""

import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
import time

import chex
import jax
import orbax.checkpoint as ocp

from experiments.engine import devices, errors, files, json_reading, progress

_MAX_TO_KEEP = 3
# Seconds in which the threads of what failed may still print tracebacks.
_LAST_WORDS_S = 3.0
# How Orbax marks a folder that it is still writing.
_UNFINISHED = '.orbax-checkpoint-tmp'
# How a checkpoint's list is called, behind its step.
_LIST = '.sha256.json'
_NONE = -1  # In place of a step.


class Checkpoints:
  """The checkpoints of one workdir."""

  def __init__(self, workdir: str):
    """Initializes.

    Args:
      workdir: The run's folder; checkpoints go into `checkpoints/` in it.
    """
    self._folder = _folder(workdir)
    devices.from_main(lambda: files.make_folder(self._folder))
    self._manager = ocp.CheckpointManager(
      self._folder,
      options=ocp.CheckpointManagerOptions(
        max_to_keep=_MAX_TO_KEEP, enable_async_checkpointing=False
      ),
    )

  def save(self, step: int, state: chex.ArrayTree) -> None:
    """Writes a checkpoint; returns when it is safe.

    Args:
      step: Its number.
      state: A tree of arrays.

    Raises:
      OSError: If it cannot be written; those before it are untouched.
    """
    size = sum(x.nbytes for x in jax.tree.leaves(state))
    devices.from_main(lambda: self._make_room(step, size))
    try:
      self._manager.reload()
      with _errors_once():
        self._manager.save(step, args=ocp.args.PyTreeSave(state), force=True)
        self._manager.wait_until_finished()
      devices.from_main(lambda: self._finish(step))
    except jax.errors.JaxRuntimeError:
      raise  # Not of the disk: another process is gone.
    except Exception as error:  # Orbax and tensorstore raise many kinds.
      self._remove_unfinished()
      raise OSError(
        f'Cannot save step {step} in {self._folder}: {errors.first_line(error)}'
      ) from error

  def _remove_unfinished(self) -> None:
    with contextlib.suppress(OSError):
      for name in files.names(self._folder):
        if name.endswith(_UNFINISHED):
          files.remove(os.path.join(self._folder, name))

  def _make_room(self, step: int, size: int) -> None:
    needed = 1.2 * size + 2**20
    free = files.free_bytes(self._folder)
    if free < needed:
      raise OSError(
        f'Cannot save step {step} in {self._folder}: no space left (needs'
        f' {needed / 1e6:.1f} MB, {free / 1e6:.1f} MB are free).'
      )
    # A checkpoint of this step that does not count is in the way.
    files.remove(os.path.join(self._folder, str(step)))

  def _finish(self, step: int) -> None:
    """Lets a checkpoint count."""
    sums = json.dumps(self._checksums(step))
    files.write_atomically(self._list_path(step), sums)
    self._remove_lists_without_checkpoint()

  def restore(
    self, like: chex.ArrayTree, partial: bool = False
  ) -> tuple[int, chex.ArrayTree] | None:
    """Returns the newest good checkpoint's step and state, None without any.

    Args:
      like: A tree of arrays, or of what has their shapes, types and shardings.
      partial: Whether it is only a part of the state, under the same names.

    Raises:
      OSError: If there are checkpoints and none of them is good.
    """
    step = devices.from_main(self._newest_good)
    return None if step == _NONE else (step, self._read(step, like, partial))

  def resume(
    self, state: chex.ArrayTree, training_steps: int
  ) -> tuple[int, chex.ArrayTree]:
    """Returns where training goes on, and says so: a step and its state.

    Args:
      state: That before the first step, which is where it starts otherwise.
      training_steps: Of the whole training.

    Raises:
      OSError: As `restore`.
    """
    restored = self.restore(state)
    if restored is None:
      return 0, state
    step, _ = restored
    if step < training_steps:
      progress.say(f'Resuming from step {step}.')
    else:
      progress.say(f'Already trained to step {step}.')
    return restored

  def _newest_good(self) -> int:
    """Returns a step, or `_NONE`."""
    while True:
      self._manager.reload()
      steps = sorted(self._manager.all_steps(), reverse=True)
      finished = [s for s in steps if files.exists(self._list_path(s))]
      vanished = False
      for step in finished:
        problem = self._problem(step)
        if problem is None:
          return step
        # A run that is still going on replaces its checkpoints.
        vanished = vanished or not files.exists(self._list_path(step))
        if not vanished:
          progress.say(
            f'Checkpoint {step} is damaged ({problem}); passing it over.'
          )
      if not vanished:
        break
    if finished:
      raise OSError(
        f'All checkpoints in {self._folder} are damaged. Remove the workdir'
        ' to start again.'
      )
    if steps:
      progress.say('No checkpoint was finished.')
    return _NONE

  def _read(
    self, step: int, like: chex.ArrayTree, partial: bool
  ) -> chex.ArrayTree:
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
    try:
      with _errors_once():
        found = self._manager.restore(
          step,
          args=ocp.args.PyTreeRestore(
            abstract,
            ocp.checkpoint_utils.construct_restore_args(abstract),
            partial_restore=partial,
          ),
        )
        missing = [
          x
          for x in jax.tree.leaves(found)
          if isinstance(x, jax.ShapeDtypeStruct)
        ]
        if missing:
          raise ValueError(f'It lacks {len(missing)} arrays.')
        return found
    except Exception as error:  # Of many kinds; the files are as written.
      raise OSError(
        f'Checkpoint {step} in {self._folder} does not fit the experiment:'
        # Orbax adds how its own callers may go on.
        f' {errors.first_line(error).partition(". ")[0].removesuffix(".")}.'
      ) from error

  def close(self) -> None:
    """Releases what Orbax holds."""
    self._manager.close()

  def _list_path(self, step: int) -> str:
    return os.path.join(self._folder, f'{step}{_LIST}')

  def _checksums(self, step: int) -> dict[str, str]:
    folder = os.path.join(self._folder, str(step))
    sums = {}
    for name in files.below(folder):
      with files.opened(os.path.join(folder, name)) as f:
        sums[name] = hashlib.file_digest(f, 'sha256').hexdigest()
    return sums

  def _problem(self, step: int) -> str | None:
    """Returns what is wrong with a checkpoint, None if it is as written."""
    try:
      expected = json_reading.read(self._list_path(step))
      # An empty folder would be as an empty list says.
      if not (isinstance(expected, dict) and expected):
        return 'its list of checksums is damaged'
      found = self._checksums(step)
    except (OSError, ValueError) as error:
      return errors.first_line(error)
    for name in sorted(expected.keys() | found.keys()):
      if name not in found:
        return f'{name} is missing'
      if found[name] != expected.get(name):
        return f'{name} has changed'
    return None

  def _remove_lists_without_checkpoint(self) -> None:
    kept = {f'{step}{_LIST}' for step in self._manager.all_steps()}
    for name in files.names(self._folder):
      if name.endswith(_LIST) and name not in kept:
        files.remove(os.path.join(self._folder, name))


def _folder(workdir: str) -> str:
  return os.path.join(files.absolute(workdir), 'checkpoints')


def has_any(workdir: str) -> bool:
  """Whether a checkpoint was finished, good or damaged since."""
  folder = _folder(workdir)
  if not files.is_folder(folder):
    return False
  return any(name.endswith(_LIST) for name in files.names(folder))


def load(
  workdir: str, like: chex.ArrayTree, training_steps: int
) -> tuple[int, chex.ArrayTree]:
  """Returns the newest good checkpoint, not to train on: step, parameters.

  Says so if training was not at its end.

  Args:
    workdir: The run's folder.
    like: What has the parameters' shapes, types and shardings.
    training_steps: Of the whole training.

  Raises:
    OSError: If there is no good checkpoint.
  """
  restored = None
  if files.is_folder(_folder(workdir)):  # Which `Checkpoints` would make.
    checkpoints = Checkpoints(workdir)
    restored = checkpoints.restore({'params': like}, partial=True)
    checkpoints.close()
  if restored is None:
    raise OSError(f'{workdir} has no checkpoint yet.')
  step, state = restored
  if step < training_steps:
    progress.say(
      f'Not trained to the end: this is step {step} of {training_steps}.'
    )
  return step, state['params']


@contextlib.contextmanager
def _errors_once():
  """Keeps Orbax from printing tracebacks of an error that it also raises.

  They come from threads, some of them native, and some a moment later. What is
  printed without an error is passed on.
  """
  sys.stderr.flush()
  kept = os.dup(2)
  with tempfile.TemporaryFile() as printed:
    os.dup2(printed.fileno(), 2)
    try:
      yield
    except Exception:
      # Nor what asyncio says of them when it throws them away.
      logging.getLogger('asyncio').setLevel(logging.CRITICAL)
      time.sleep(_LAST_WORDS_S)
      raise
    else:
      sys.stderr.flush()
      printed.seek(0)
      os.write(kept, printed.read())
    finally:
      # Where the disk is full, what was to be printed is still in a buffer.
      nowhere = os.open(os.devnull, os.O_WRONLY)
      os.dup2(nowhere, 2)
      sys.stderr.flush()
      os.dup2(kept, 2)
      os.close(nowhere)
      os.close(kept)
