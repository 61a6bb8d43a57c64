"""Training metrics: `metrics.jsonl`, one line a run and logging point."""

import contextlib
import json
import math
import os
import time
import types
from typing import Any

from tensorboardX import event_file_writer, record_writer, summary
from tensorboardX.proto import event_pb2

from experiments.engine import devices, files, json_reading, progress

METRICS_FILE = 'metrics.jsonl'
_MAX_BYTES = 2**30
# Seconds between two writes to a bucket, in which a file is written whole.
_BUCKET_INTERVAL_S = 10.0


# How tensorboardX opens files in a bucket.
record_writer.register_writer_factory(
  'gs', types.SimpleNamespace(open=files.appending)
)


class Metrics:
  """Writes metrics, as JSON lines and for TensorBoard, in the main process."""

  def __init__(self, workdir: str, step: int):
    """Initializes.

    Args:
      workdir: The run's folder.
      step: Where training goes on; lines beyond it, which an interrupted run
        left behind and which will be written again, are dropped.

    Raises:
      OSError: If something cannot be written; all methods may.
    """
    self._workdir = workdir
    self._lines: list[dict[str, float]] = []
    self._opened = contextlib.ExitStack()
    self._interval_s = _BUCKET_INTERVAL_S if files.in_bucket(workdir) else 0.0
    self._written_at = -math.inf
    devices.from_main(lambda: self._open(step))

  def _open(self, step: int) -> None:
    path = os.path.join(self._workdir, METRICS_FILE)
    if step and not files.exists(path):
      progress.say(f'{path} is missing: metrics of steps to {step} are lost.')
    lines, num_foreign = _read(path)
    if num_foreign:
      progress.say(f'{path}: {num_foreign} lines are no metrics; left out.')
    lines = [line for line in lines if line['step'] <= step]
    files.write_atomically(path, ''.join(map(_as_text, lines)))
    folder = os.path.join(self._workdir, 'tensorboard')
    files.make_folder(folder)
    with files.named_errors(self._workdir):
      self._file = files.appending(path)
      self._opened.callback(self._file.close)
      # Not its SummaryWriter: the thread of that dies of a full disk, silently,
      # and whoever writes then waits for ever.
      self._tensorboard = event_file_writer.EventsWriter(
        os.path.join(folder, 'events')
      )
      self._opened.callback(self._tensorboard.close)
      # TensorBoard drops what an interrupted run wrote beyond this step.
      restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
      self._add_event(step + 1, session_log=restart)

  def write(self, step: int, run: int, **values: float) -> None:
    """Adds one run's values at a step, for `flush` to write."""
    self._lines.append({'step': step, 'run': run, **values})

  def flush(self, at_once: bool = False) -> None:
    """Writes what was added; all processes must call it.

    Args:
      at_once: Whether to write to a bucket even if it was just written to.
    """
    devices.from_main(lambda: self._write(at_once))
    if not devices.is_main():
      self._lines.clear()

  def _write(self, at_once: bool) -> None:
    now = time.monotonic()
    if not at_once and now - self._written_at < self._interval_s:
      return
    self._written_at = now
    lines, self._lines = self._lines, []
    with files.named_errors(self._workdir):
      self._file.write(''.join(map(_as_text, lines)).encode())
      self._file.flush()
      for line in lines:
        for name, value in line.items():
          if name not in ('step', 'run'):
            scalar = summary.scalar(f'{name}/run_{line["run"]}', value)
            self._add_event(line['step'], summary=scalar)
      self._tensorboard.flush()

  def _add_event(self, step: int, **fields) -> None:
    """Tells TensorBoard."""
    event = event_pb2.Event(step=step, wall_time=time.time(), **fields)
    self._tensorboard.write_event(event)

  def close(self) -> None:
    """Writes what is left, in the main process, and closes the files."""
    try:
      if self._lines and devices.is_main():
        self._write(at_once=True)
    finally:
      with files.named_errors(self._workdir):
        self._opened.close()


def _as_text(line: dict[str, float]) -> str:
  return json.dumps(line) + '\n'


def read(workdir: str) -> list[dict[str, float]]:
  """Returns the metrics in a folder, leaving out lines that are none.

  The last line is, where a process was killed as it wrote it.
  """
  return _read(os.path.join(workdir, METRICS_FILE))[0]


def _read(path: str) -> tuple[list[dict[str, float]], int]:
  """Returns metrics, and how many lines are foreign: none, nor cut off."""
  try:
    contents = files.read(path, _MAX_BYTES)
  except FileNotFoundError:
    return [], 0
  except ValueError as error:
    raise ValueError(f'Cannot read {path}: {error}') from None
  text = contents.decode(errors='replace')
  lines, num_foreign = [], 0
  for line in text.splitlines(keepends=True):
    try:
      values = json_reading.parse(line)
    except ValueError:
      values = None
    if _is_metrics(values):
      lines.append(values)
    elif line.endswith('\n'):
      num_foreign += 1
  return lines, num_foreign


def _is_metrics(values: Any) -> bool:
  """Whether it is what `Metrics.write` adds."""
  return (
    isinstance(values, dict)
    and isinstance(values.get('step'), int)
    and isinstance(values.get('run'), int)
    and all(isinstance(value, int | float) for value in values.values())
  )
