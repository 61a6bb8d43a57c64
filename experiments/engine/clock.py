"""How long the training in a folder took, over all its interruptions."""

from collections.abc import Iterator
import contextlib
import json
import os
import time

from experiments.engine import devices, files, json_reading, progress

_FILE = 'wall_time.json'
# More than thirty years are no time that training took.
_MAX_SECONDS = 1e9


@contextlib.contextmanager
def running(folder: str) -> Iterator[None]:
  """Adds the seconds of the block to those before; a kill loses its own.

  Raises:
    OSError: On all processes, if they cannot be read or written.
  """
  before = 0.0

  def read():
    nonlocal before
    before = seconds(folder)

  def write():
    now = before + time.perf_counter() - start
    path = os.path.join(folder, _FILE)
    files.write_atomically(path, json.dumps({'seconds': now}))

  devices.from_main(read)
  start = time.perf_counter()
  try:
    yield
  except BaseException:
    # What ended the block is what is told; perhaps on this process alone.
    with contextlib.suppress(OSError):
      if devices.is_main():
        write()
    raise
  devices.from_main(write)


def seconds(folder: str) -> float:
  """Returns the seconds that training took so far."""
  path = os.path.join(folder, _FILE)
  try:
    found = float(json_reading.read(path)['seconds'])
    if not 0 <= found < _MAX_SECONDS:
      raise ValueError(f'{found} seconds')
    return found
  except FileNotFoundError:
    return 0.0
  except (ValueError, KeyError, TypeError):
    progress.say(f'{path} is damaged; the time that training took is lost.')
    return 0.0
