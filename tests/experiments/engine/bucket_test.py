"""What an experiment keeps, kept in a bucket."""

import subprocess
import sys
import threading

import jax.numpy as jnp
import pytest

from experiments.engine import checkpoints, files, locks, metrics
from tests import buckets

_ROOT = f'gs://{buckets.BUCKET}'


@pytest.fixture(scope='module', autouse=True)
def environment():
  with buckets.serving() as variables, pytest.MonkeyPatch.context() as patch:
    for name, value in variables.items():
      patch.setenv(name, value)
    yield variables


@pytest.fixture
def folder(request):
  return f'{_ROOT}/{request.node.name}'


@pytest.fixture
def quick(monkeypatch):
  monkeypatch.setattr(locks, '_BEAT_S', 0.4)
  monkeypatch.setattr(locks, '_EXPIRES_S', 2.0)


def test_files_and_folders(folder):
  path = f'{folder}/a/b.txt'
  assert not files.exists(folder) and files.names(folder) == []
  files.make_folder(folder)
  files.write_atomically(path, 'one')
  files.write_atomically(path, 'two')
  assert files.read(path) == b'two'
  assert files.names(folder) == ['a'] and files.below(folder) == ['a/b.txt']
  assert files.is_folder(folder) and not files.is_folder(path)
  assert files.exists(path) and not files.exists(path + 't')
  with pytest.raises(FileNotFoundError):
    files.read(f'{folder}/none')
  with files.opened(path) as f:
    assert f.read(2) == b'tw'
  assert not files.make_new(path, b'three')
  files.remove(folder)
  assert files.make_new(path, b'four')
  assert files.read(path) == b'four'


def test_what_another_process_wrote_is_seen(folder):
  path = f'{folder}/a'
  assert not files.exists(path)
  program = f'import fsspec; fsspec.filesystem("gs").pipe_file({path!r}, b"x")'
  subprocess.run([sys.executable, '-c', program], check=True)
  assert files.names(folder) == ['a'] and files.read(path) == b'x'


def test_a_bucket_that_is_not_there_is_one_line():
  with pytest.raises(OSError, match='there is no such bucket'):
    files.write_atomically('gs://none/a', '')
  with pytest.raises(OSError, match='there is no such bucket'):
    locks.locked('gs://none/run').__enter__()


def test_a_locked_folder_is_refused_as_long_as_its_owner_lives(folder, quick):
  refused = pytest.raises(OSError, match='Another process is')
  with locks.locked(folder), refused, locks.locked(folder):
    pass
  with locks.locked(folder):  # At once: it was given back.
    pass
  assert files.names(folder) == []


def test_the_lock_of_a_dead_owner_is_taken_over_by_one(folder, quick):
  files.write_atomically(f'{folder}/.lock', 'of one that was killed')
  ends = []

  def lock():
    try:
      with locks.locked(folder):
        ends.append('locked')
        is_told.wait(30)
    except OSError as error:
      ends.append(str(error))
      is_told.set()

  is_told = threading.Event()
  threads = [threading.Thread(target=lock) for _ in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert sorted(ends) == [f'Another process is using {folder}.', 'locked']


_STOLEN = f"""
import time
from experiments.engine import files, locks
locks._BEAT_S = 0.2
with locks.locked('{_ROOT}/stolen'):
  while True:  # Its owner may just be writing too.
    files.write_atomically('{_ROOT}/stolen/.lock', 'another')
    time.sleep(0.3)
"""


def test_whose_lock_was_taken_ends(environment):
  ended = subprocess.run(
    [sys.executable, '-c', _STOLEN], capture_output=True, text=True, timeout=50
  )
  assert ended.returncode == 1
  last = ended.stderr.strip().splitlines()[-1]
  assert last.startswith(f'Error: Another process has taken {_ROOT}/stolen')
  assert files.read(f'{_ROOT}/stolen/.lock') == b'another'


def test_checkpoints(folder, capsys):
  def state(step):
    return {'params': {'a': jnp.full(3, step)}}

  kept = checkpoints.Checkpoints(folder)
  kept.save(1, state(1))
  kept.save(2, state(2))
  kept.close()
  there = f'{folder}/checkpoints'
  assert [n for n in files.names(there) if 'json' not in n] == ['1', '2']
  files.write_atomically(f'{there}/2/default/_METADATA', 'other')
  kept = checkpoints.Checkpoints(folder)
  step, found = kept.restore(state(0))
  assert step == 1 and (found['params']['a'] == 1).all()
  assert 'Checkpoint 2 is damaged' in capsys.readouterr().err
  kept.save(2, state(5))  # In the place of the damaged one.
  kept.close()
  step, params = checkpoints.load(folder, state(0)['params'], 2)
  assert step == 2 and (params['a'] == 5).all()
  with pytest.raises(OSError, match='has no checkpoint yet'):
    checkpoints.load(f'{folder}/none', state(0)['params'], 2)


def test_metrics_are_written_now_and_then_and_before_a_checkpoint(
  folder, monkeypatch
):
  monkeypatch.setattr(metrics, '_BUCKET_INTERVAL_S', 1e4)
  writer = metrics.Metrics(folder, 0)
  found = []
  for step in range(1, 4):
    writer.write(step, 0, loss=1.0)
    writer.flush(at_once=step == 3)
    found.append([row['step'] for row in metrics.read(folder)])
  assert found == [[1], [1], [1, 2, 3]]
  writer.write(4, 0, loss=1.0)
  writer.close()
  assert [row['step'] for row in metrics.read(folder)] == [1, 2, 3, 4]
  writer = metrics.Metrics(folder, 2)
  writer.write(3, 0, loss=2.0)
  writer.close()
  assert [row['loss'] for row in metrics.read(folder)] == [1, 1, 2]
  # One, if both began within a second.
  for events in files.below(f'{folder}/tensorboard'):
    assert b'loss/run_0' in files.read(f'{folder}/tensorboard/{events}')
