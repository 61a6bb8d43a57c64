"""The command as a user runs it, in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.launch import commands

_NUM_FILES = 30


def _flags(raw, data_dir):
  return (
    f'--input={raw}/*.jsonl',
    f'--data_dir={data_dir}',
    '--tokenizer=byte',
    '--heldout=0.1',
    '--num_workers=2',
  )


def _contents(data_dir):
  return {
    str(p.relative_to(data_dir)): p.read_bytes()
    for p in data_dir.rglob('*')
    if p.is_file()
  }


@pytest.fixture(scope='module')
def raw(tmp_path_factory):
  folder = tmp_path_factory.mktemp('raw')
  rng = np.random.default_rng(0)
  for i in range(_NUM_FILES):
    text = bytes(rng.integers(97, 123, (20, 4000), np.uint8)).decode()
    lines = [
      json.dumps({'text': text[j * 4000 : (j + 1) * 4000]}) for j in range(20)
    ]
    (folder / f'{i:03d}.jsonl').write_text('\n'.join(lines))
  return folder


@pytest.fixture(scope='module')
def undisturbed(raw, tmp_path_factory):
  data_dir = tmp_path_factory.mktemp('undisturbed')
  status, stdout, stderr = commands.run('prepare_text', *_flags(raw, data_dir))
  assert status == 0, stderr
  rows = [line.split() for line in stdout.splitlines()]
  num_documents = {row[0]: int(row[1].replace(',', '')) for row in rows[1:4]}
  assert num_documents.keys() == {'train', 'validation', 'test'}
  assert sum(num_documents.values()) == 20 * _NUM_FILES
  assert rows[4] == ['tokens:', f'{data_dir}/text_tokens/byte/1.0.0']
  return data_dir


def _start_alone(*flags):
  """Starts it in a group of its own, workers included."""
  return commands.start('prepare_text', *flags, begin=os.setsid)


def _has_ended(group):
  try:
    os.killpg(group, 0)
  except ProcessLookupError:
    return True
  return False


def test_killed_and_started_again_equals_undisturbed(
  raw, undisturbed, tmp_path
):
  flags = _flags(raw, tmp_path)
  for number, num_pieces in ((signal.SIGTERM, 1), (signal.SIGKILL, 8)):
    process = _start_alone(*flags)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob('.pieces-byte/*/*.npz'))) < num_pieces:
      assert process.poll() is None, process.communicate()
      assert time.monotonic() < deadline
      time.sleep(0.001)
    process.send_signal(number)
    process.communicate()
    assert process.returncode == -number
    while not _has_ended(process.pid):  # Nor do its workers stay.
      assert time.monotonic() < deadline
      time.sleep(0.01)
    found = len(list(tmp_path.glob('.pieces-byte/*/*.npz')))
    assert num_pieces <= found < _NUM_FILES
  status, _, stderr = commands.run('prepare_text', *flags)
  assert status == 0, stderr
  assert _contents(tmp_path) == _contents(undisturbed)


def test_ctrl_c_ends_quietly(tmp_path):
  raw, data_dir = tmp_path / 'raw', tmp_path / 'data'
  raw.mkdir()
  # Many pieces, seconds of work, so that the signal comes before the end.
  with open(raw / 'long.jsonl', 'w') as f:
    for i in range(20_000):
      f.write(json.dumps({'text': f'{i} ' + 'word ' * 1000}) + '\n')
  process = _start_alone(*_flags(raw, data_dir))
  while not list(data_dir.glob('.pieces-byte/*/*.npz')):
    assert process.poll() is None, process.communicate()
    time.sleep(0.01)
  os.killpg(process.pid, signal.SIGINT)  # As a terminal does.
  _, stderr = process.communicate(timeout=60)
  assert 'Traceback' not in stderr
  assert process.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize(
  ('contents', 'flags', 'message'),
  [
    ('{"text": "a"}\n{"text": "b"\n', (), 'a.jsonl, line 2: not JSON'),
    ('{"text": "a"}', ('--vocabulary_dir=/none', '--tokenizer=gpt2'), '/none'),
  ],
)
def test_bad_input_exits_with_one_clear_line(
  contents, flags, message, tmp_path
):
  (tmp_path / 'a.jsonl').write_text(contents)
  flags = (*_flags(tmp_path, tmp_path / 'data'), *flags)
  status, stdout, stderr = commands.run('prepare_text', *flags)
  assert status == 1
  last = stderr.strip().splitlines()[-1]
  assert last.startswith('Error: ') and message in last
  assert 'Traceback' not in stderr
  assert not stdout


def test_a_missing_extra_is_one_line(tmp_path):
  program = (
    "import runpy, sys; sys.modules['grain'] = None;"
    " runpy.run_module('launch.prepare_text', run_name='__main__')"
  )
  done = subprocess.run(
    [sys.executable, '-c', program, *_flags(tmp_path, tmp_path)],
    cwd=commands.REPOSITORY,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 1
  assert "pip install -e '.[text]'" in done.stderr.splitlines()[-1]
  assert 'Traceback' not in done.stderr
