"""Training metrics: `metrics.jsonl`, one line a run and logging point."""

import json
import os

from tensorboardX import SummaryWriter

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
    """
    self._is_open = devices.is_main()
    if not self._is_open:
      return
    self._path = os.path.join(workdir, METRICS_FILE)
    kept = ''.join(
      json.dumps(line) + '\n' for line in read(workdir) if line['step'] <= step
    )
    files.write_atomically(self._path, kept)
    self._file = open(self._path, 'a', encoding='utf-8')  # noqa: SIM115
    self._tensorboard = SummaryWriter(
      os.path.join(workdir, 'tensorboard'), purge_step=step + 1
    )

  def write(self, step: int, run: int, **values: float) -> None:
    """Appends one run's values at a step."""
    if not self._is_open:
      return
    line = {'step': step, 'run': run, **values}
    self._file.write(json.dumps(line) + '\n')
    for name, value in values.items():
      self._tensorboard.add_scalar(f'{name}/run_{run}', value, step)

  def flush(self) -> None:
    """Makes what was written readable by others."""
    if not self._is_open:
      return
    self._file.flush()
    self._tensorboard.flush()

  def close(self) -> None:
    """Flushes and closes."""
    if not self._is_open:
      return
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
