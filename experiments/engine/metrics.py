"""Training metrics: `metrics.jsonl`, one line a run and logging point."""

from collections.abc import Sequence
import contextlib
import json
import os
import time

from tensorboardX import event_file_writer, summary
from tensorboardX.proto import event_pb2

from experiments.engine import devices, files, json_reading

METRICS_FILE = 'metrics.jsonl'


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
    devices.from_main(lambda: self._open(step))

  def _open(self, step: int) -> None:
    path = os.path.join(self._workdir, METRICS_FILE)
    lines = [line for line in read(self._workdir) if line['step'] <= step]
    files.write_atomically(path, ''.join(map(_as_text, lines)))
    folder = os.path.join(self._workdir, 'tensorboard')
    files.make_folder(folder)
    with files.named_errors(self._workdir):
      self._file = open(path, 'a', encoding='utf-8')  # noqa: SIM115
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

  def flush(self) -> None:
    """Writes what was added; all processes must call it."""
    lines, self._lines = self._lines, []
    devices.from_main(lambda: self._write(lines))

  def _write(self, lines: Sequence[dict[str, float]]) -> None:
    with files.named_errors(self._workdir):
      self._file.write(''.join(map(_as_text, lines)))
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
    """Closes the files; what was not flushed is lost."""
    with files.named_errors(self._workdir):
      self._opened.close()


def _as_text(line: dict[str, float]) -> str:
  return json.dumps(line) + '\n'


def read(workdir: str) -> list[dict[str, float]]:
  """Returns the metrics in a folder, leaving out lines that are damaged.

  The last line is, where a process was killed as it wrote it.
  """
  path = os.path.join(workdir, METRICS_FILE)
  if not os.path.exists(path):
    return []
  lines = []
  with open(path, encoding='utf-8', errors='replace') as f:
    for line in f:
      try:
        values = json_reading.parse(line)
      except ValueError:
        continue
      if isinstance(values, dict) and isinstance(values.get('step'), int):
        lines.append(values)
  return lines
