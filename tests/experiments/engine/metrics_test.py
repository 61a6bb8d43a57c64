"""Metrics on disk: what is written, and what a full disk does."""

import resource
import signal
import struct

import pytest
from tensorboardX.proto import event_pb2

from experiments.engine import metrics
from tests import refusals


def _events(workdir):
  """All that TensorBoard would read, in order."""
  events = []
  for path in sorted((workdir / 'tensorboard').iterdir()):
    data = path.read_bytes()
    while data:
      (length,) = struct.unpack('Q', data[:8])  # And 4 bytes of checksum.
      events.append(event_pb2.Event.FromString(data[12 : 12 + length]))
      data = data[12 + length + 4 :]
  return events


def test_what_was_written_is_read_and_shown(tmp_path):
  writer = metrics.Metrics(str(tmp_path), 4)
  writer.write(6, 1, loss=0.5, accuracy=0.25)
  writer.flush()
  assert metrics.read(str(tmp_path)) == [
    {'step': 6, 'run': 1, 'loss': 0.5, 'accuracy': 0.25}
  ]
  _, restart, *scalars = _events(tmp_path)
  assert restart.step == 5
  assert restart.session_log.status == event_pb2.SessionLog.START
  shown = {
    (event.step, value.tag): value.simple_value
    for event in scalars
    for value in event.summary.value
  }
  assert shown == {(6, 'loss/run_1'): 0.5, (6, 'accuracy/run_1'): 0.25}
  writer.close()


def test_lines_beyond_the_step_are_dropped(tmp_path):
  writer = metrics.Metrics(str(tmp_path), 0)
  for step in (1, 2, 3):
    writer.write(step, 0, loss=1.0)
  writer.flush()
  writer.close()
  with open(tmp_path / metrics.METRICS_FILE, 'a') as f:
    f.write('{"step": 4, "lo')  # As a kill leaves it.
  metrics.Metrics(str(tmp_path), 2).close()
  assert [row['step'] for row in metrics.read(str(tmp_path))] == [1, 2]


def test_too_large_a_file_is_not_read(tmp_path, monkeypatch):
  monkeypatch.setattr(metrics, '_MAX_BYTES', 10)
  (tmp_path / metrics.METRICS_FILE).write_text('{"step": 1, "run": 0}')
  with refusals.one_line('jsonl: it is larger than 10 bytes'):
    metrics.read(str(tmp_path))


@pytest.mark.parametrize('room', [300, 9000])
def test_a_full_disk_is_told_and_nothing_waits(room, tmp_path):
  """A limit on the size of files fails writes as a full disk does."""
  writer = metrics.Metrics(str(tmp_path), 0)
  old = resource.getrlimit(resource.RLIMIT_FSIZE)
  handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  try:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, old[1]))
    with pytest.raises(OSError, match=f'Cannot write {tmp_path}: '):
      for step in range(1000):
        writer.write(step, 0, loss=1.0)
        writer.flush()
    with pytest.raises(OSError, match='Cannot write'):
      writer.close()
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    signal.signal(signal.SIGXFSZ, handler)
  last = metrics.read(str(tmp_path))[-1]['step']
  assert last < 999


def test_metrics_that_are_gone_are_told(tmp_path, capsys):
  metrics.Metrics(str(tmp_path), 0).close()
  assert capsys.readouterr().err == ''
  metrics.Metrics(str(tmp_path), 2).close()  # None were due yet.
  assert capsys.readouterr().err == ''
  (tmp_path / metrics.METRICS_FILE).unlink()
  metrics.Metrics(str(tmp_path), 2).close()
  told = capsys.readouterr().err
  assert told.count('\n') == 1
  assert 'metrics.jsonl is missing: metrics of steps to 2 are lost' in told


def test_lines_that_are_no_metrics_are_told_and_left_out(tmp_path, capsys):
  good = '{"step": 1, "run": 0, "loss": 1.0}\n'
  foreign = [
    'hello',
    '{"step": 1}',
    '{"step": 1, "run": "a"}',
    '{"step": 1.5, "run": 0}',
    '{"step": 1, "run": 0, "loss": "low"}',
    '{"step": 1, "run": 0, "loss": [1]}',
    '[' * 100_000,
    '7',
  ]
  text = good + ''.join(line + '\n' for line in foreign) + '{"step": 2, "lo'
  (tmp_path / metrics.METRICS_FILE).write_text(text)
  assert [row['step'] for row in metrics.read(str(tmp_path))] == [1]
  metrics.Metrics(str(tmp_path), 1).close()
  told = capsys.readouterr().err
  assert told.count('\n') == 1 and f'{len(foreign)} lines are no metr' in told
  assert (tmp_path / metrics.METRICS_FILE).read_text() == good
