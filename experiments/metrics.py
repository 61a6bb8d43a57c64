"""Training metrics: `metrics.jsonl`, one line a run and logging point."""

import json
import os
import time

from tensorboardX import event_file_writer, summary
from tensorboardX.proto import event_pb2

from experiments import devices, files

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
    self._is_open = devices.is_main()
    if not self._is_open:
      return
    self._workdir = workdir
    path = os.path.join(workdir, METRICS_FILE)
    kept = ''.join(
      json.dumps(line) + '\n' for line in read(workdir) if line['step'] <= step
    )
    files.write_atomically(path, kept)
    folder = os.path.join(workdir, 'tensorboard')
    files.make_folder(folder)
    with files.named_errors(workdir):
      self._file = open(path, 'a', encoding='utf-8')  # noqa: SIM115
      # Not its SummaryWriter: the thread of that dies of a full disk, silently,
      # and whoever writes then waits for ever.
      self._tensorboard = event_file_writer.EventsWriter(
        os.path.join(folder, 'events')
      )
      # TensorBoard drops what an interrupted run wrote beyond this step.
      restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
      self._add_event(step + 1, session_log=restart)

  def write(self, step: int, run: int, **values: float) -> None:
    """Appends one run's values at a step; `flush` shows them."""
    if not self._is_open:
      return
    line = {'step': step, 'run': run, **values}
    with files.named_errors(self._workdir):
      self._file.write(json.dumps(line) + '\n')
      for name, value in values.items():
        scalar = summary.scalar(f'{name}/run_{run}', value)
        self._add_event(step, summary=scalar)

  def _add_event(self, step: int, **fields) -> None:
    """Tells TensorBoard."""
    event = event_pb2.Event(step=step, wall_time=time.time(), **fields)
    self._tensorboard.write_event(event)

  def flush(self) -> None:
    """Makes what was written readable by others."""
    if not self._is_open:
      return
    with files.named_errors(self._workdir):
      self._file.flush()
      self._tensorboard.flush()

  def close(self) -> None:
    """Flushes and closes."""
    if not self._is_open:
      return
    with files.named_errors(self._workdir):
      self._file.close()
      self._tensorboard.close()


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
        values = json.loads(line)
      except json.JSONDecodeError:
        continue
      if isinstance(values, dict) and isinstance(values.get('step'), int):
        lines.append(values)
  return lines
