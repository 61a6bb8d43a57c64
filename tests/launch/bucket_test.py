"""Commands whose workdir is in a bucket."""

import os
import signal
import time

import pytest

from experiments.engine import files, metrics, workdir
from experiments.formal import config
from tests import buckets
from tests.launch import commands

_FLAGS = (
  '--embedding_dim=8',
  '--num_heads=2',
  '--sequence_length=5',
  '--batch_size=4',
  '--max_range_test_length=9',
  '--range_test_batch_size=4',
  '--training_steps=600',
  '--log_every=50',
  '--checkpoint_every=200',
)


def _wait_for_a_checkpoint(processes, folder):
  deadline = time.monotonic() + 240
  while not any(n.endswith('.json') for n in files.names(folder)):
    assert all(p.poll() is None for p in processes)
    assert time.monotonic() < deadline
    time.sleep(0.1)


@pytest.mark.slow
def test_killed_and_resumed_in_a_bucket_equals_one_on_disk(
  tmp_path, monkeypatch
):
  """Two processes, of which the first is killed; then training, evaluation."""
  on_disk = str(tmp_path / 'run')
  ends = [
    p.communicate()
    for p in commands.start_together(
      2, 'train', *_FLAGS, f'--workdir={on_disk}'
    )
  ]
  assert 'score' in ends[0][0], ends
  with buckets.serving() as environment:
    for name, value in environment.items():
      monkeypatch.setenv(name, value)
    there = f'gs://{buckets.BUCKET}/some/run'
    command = ('train', *_FLAGS, f'--workdir={there}')
    processes = commands.start_together(2, *command)
    _wait_for_a_checkpoint(processes, f'{there}/checkpoints')
    processes[0].kill()
    _, stderr = processes[1].communicate(timeout=60)
    assert processes[1].returncode == 1
    assert commands.last_line(stderr).startswith('Error: Stopped'), stderr
    assert processes[0].wait() == -signal.SIGKILL
    processes = commands.start_together(2, *command)
    ends = [p.communicate(timeout=300) for p in processes]
    assert [p.returncode for p in processes] == [0, 0], ends
    assert 'whether another process is using' in ends[0][1]
    assert 'Resuming from step' in ends[0][1]
    assert f'plot: {there}/range_evaluation.png' in ends[0][0]
    assert metrics.read(there) == metrics.read(on_disk)
    table = 'range_evaluation.csv'
    assert files.read(f'{there}/{table}') == files.read(f'{on_disk}/{table}')
    assert len(files.read(f'{there}/range_evaluation.png')) > 1000
    assert len(files.names(f'{there}/tensorboard')) == 2
    assert files.names(there) == sorted(
      [
        'checkpoints',
        'config.json',
        'metrics.jsonl',
        'tensorboard',
        'wall_time.json',
        '.seen_by_all',
        *(f'range_evaluation.{kind}' for kind in ('csv', 'json', 'png')),
      ]
    )
    loaded = workdir.load(there, config.Experiment)
    assert loaded == workdir.load(on_disk, config.Experiment)
    status, stdout, stderr = commands.run(
      'evaluate',
      f'--workdir={there}',
      f'--output_dir=gs://{buckets.BUCKET}/longer',
      '--max_range_test_length=12',
    )
    assert status == 0, stderr
    assert 'lengths 6..12' in stdout
    assert 'range_evaluation.json' in files.names(
      f'gs://{buckets.BUCKET}/longer'
    )
  assert not any(name.startswith('gs') for name in os.listdir())
  assert not any(n.startswith('gs') for n in os.listdir(commands.REPOSITORY))
