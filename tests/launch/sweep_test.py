"""Sweeps as a user runs them: many devices, many processes, and faults."""

import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from experiments.sweeps import results
from tests.launch import commands

# One cell: 4 runs that train together.
_CELL = (
  '--preset=smoke',
  '--tasks=even_pairs',
  '--models=regular_gpt_c3',
)
# One that compiles faster, to be disturbed.
_LONG = (
  '--preset=smoke',
  '--tasks=even_pairs',
  '--models=rnn',
  '--training_steps=50',
)
_FOLDER = 'cells/even_pairs/rnn'


def _result(workdir):
  (result,) = results.load_all(str(workdir / 'results'))
  return result


def _assert_equal(result, expected):
  """To 1e-3 in the loss: only the order of sums differs."""
  assert result.accuracy == expected.accuracy
  assert result.runs == expected.runs
  assert result.curves['step'] == expected.curves['step']
  np.testing.assert_allclose(
    result.curves['loss'], expected.curves['loss'], atol=1e-3
  )


def _wait(processes, timeout=300):
  """Returns the statuses and what was printed as errors."""
  ends = [process.communicate(timeout=timeout) for process in processes]
  return [p.returncode for p in processes], [stderr for _, stderr in ends]


@pytest.fixture(scope='module')
def one_device(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('one_device')
  status, _, stderr = commands.run('sweep', *_CELL, f'--workdir={workdir}')
  assert status == 0, stderr
  return _result(workdir)


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
  """Of two processes."""
  workdir = tmp_path_factory.mktemp('undisturbed')
  _run_together(2, *_LONG, f'--workdir={workdir}')
  return _result(workdir)


def _run_together(number, *flags):
  statuses, errors = _wait(commands.start_together(number, 'sweep', *flags))
  assert statuses == [0] * number, errors
  # The first one alone talks.
  assert 'Cell 1 of 1' in errors[0]
  assert not any('Cell 1 of 1' in text for text in errors[1:])


def _assert_identical(result, expected):
  assert result.accuracy == expected.accuracy
  assert result.curves == expected.curves


@pytest.mark.slow  # Two processes equal one in the quick tests.
def test_eight_devices_equal_one(one_device, tmp_path, monkeypatch):
  monkeypatch.setenv('XLA_FLAGS', commands.with_devices(8))
  status, _, stderr = commands.run('sweep', *_CELL, f'--workdir={tmp_path}')
  assert status == 0, stderr
  result = _result(tmp_path)
  assert result.environment['num_devices'] == 8
  _assert_equal(result, one_device)


@pytest.mark.slow
@pytest.mark.parametrize('number', [2, 4])
def test_processes_equal_one(number, one_device, tmp_path):
  _run_together(number, *_CELL, f'--workdir={tmp_path}')
  result = _result(tmp_path)
  assert result.environment['num_devices'] == number
  _assert_equal(result, one_device)


@pytest.mark.parametrize('number', [2, pytest.param(4, marks=pytest.mark.slow)])
def test_one_lost_stops_all_and_all_resume(number, undisturbed, tmp_path):
  """First one is killed; then, resumed, another is told to stop."""
  command = ('sweep', *_LONG, f'--workdir={tmp_path}')
  processes = commands.start_together(number, *command)
  commands.wait_for_checkpoints(processes[0], tmp_path / _FOLDER, 2)
  processes[-1].kill()
  killed = time.monotonic()
  statuses, errors = _wait(processes, timeout=100)
  assert time.monotonic() - killed < 60
  assert statuses[-1] == -signal.SIGKILL
  for i in range(number - 1):
    assert statuses[i] not in (0, None)
    assert 'another process' in commands.last_line(errors[i]), errors[i]

  processes = commands.start_together(number, *command)
  commands.wait_for_another_checkpoint(processes[0], tmp_path / _FOLDER)
  processes[1].send_signal(signal.SIGTERM)
  statuses, errors = _wait(processes)
  assert statuses == [128 + signal.SIGTERM] * number, errors
  assert 'Resuming from step' in errors[0]
  assert 'Run the same command again' in commands.last_line(errors[0])

  _run_together(number, *command[1:])
  if number == 2:
    _assert_identical(_result(tmp_path), undisturbed)
  else:
    _assert_equal(_result(tmp_path), undisturbed)


@pytest.mark.slow
def test_killed_at_twenty_random_moments_equals_undisturbed(tmp_path):
  rng = np.random.default_rng(0)
  command = ('sweep', *_LONG)
  status, _, stderr = commands.run(*command, f'--workdir={tmp_path / "whole"}')
  assert status == 0, stderr
  killed = 0
  while killed < 20:
    process = commands.start(*command, f'--workdir={tmp_path / "killed"}')
    try:
      process.wait(rng.uniform(2, 15))
    except subprocess.TimeoutExpired:
      process.kill()
      killed += 1
    process.communicate()
    if process.returncode == 0:  # It came to its end in between.
      result = _result(tmp_path / 'killed')
      _assert_identical(result, _result(tmp_path / 'whole'))
      shutil.rmtree(tmp_path / 'killed')
  status, _, stderr = commands.run(*command, f'--workdir={tmp_path / "killed"}')
  assert status == 0, stderr
  _assert_identical(_result(tmp_path / 'killed'), _result(tmp_path / 'whole'))


def test_one_process_keeps_others_out_and_equals_two(undisturbed, tmp_path):
  command = ('sweep', *_LONG, f'--workdir={tmp_path}')
  first = commands.start(*command)
  commands.wait_for_checkpoints(first, tmp_path / _FOLDER, 1)
  first.send_signal(signal.SIGSTOP)  # It must not end before the second starts.
  status, _, stderr = commands.run(*command)
  assert status == 1
  assert 'Another process is using' in commands.last_line(stderr)
  first.kill()
  status, _, stderr = commands.run(*command)
  assert status == 0
  assert 'Resuming from step' in stderr
  result = _result(tmp_path)
  assert result.environment['num_devices'] == 1
  assert undisturbed.environment['num_devices'] == 2
  _assert_equal(result, undisturbed)


def test_processes_that_cannot_be(tmp_path):
  status, _, stderr = commands.run(
    'sweep', *_CELL, f'--workdir={tmp_path}', '--num_processes=2'
  )
  assert status == 1
  assert '--num_processes is for --distributed' in commands.last_line(stderr)
  status, _, stderr = commands.run(
    'sweep', *_CELL, f'--workdir={tmp_path}', '--distributed'
  )
  assert status == 1
  assert 'give --coordinator_address' in commands.last_line(stderr)


def test_processes_that_do_not_come_are_not_waited_for_for_ever():
  code = (
    'from experiments.engine import devices\n'
    'devices._JOIN_TIMEOUT_S = 1\n'
    f'devices.join("127.0.0.1:{commands.free_port()}", 2, 0)\n'
  )
  process = subprocess.run(
    [sys.executable, '-c', code],
    cwd=commands.REPOSITORY,
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert process.returncode == 1
  last = commands.last_line(process.stderr)
  assert last.startswith('Error: The other processes did not come within 1 ')


def test_processes_with_unlike_commands_are_refused(tmp_path):
  processes = commands.start_together(
    2,
    'sweep',
    *_CELL,
    f'--workdir={tmp_path / "sweep"}',
    each=('--seeds=0,1', '--seeds=0,5'),
  )
  statuses, errors = _wait(processes, timeout=120)
  assert statuses == [1, 1]
  for text in errors:
    assert 'Process 1 was not started with the same' in commands.last_line(text)


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    (['--seeds=a'], '--seeds must be whole numbers'),
    (['--seeds='], '--seeds is empty; give it a value, or leave it out'),
    (['--results='], '--results is empty'),
    (['--time_budget_s=nan'], 'time_budget_s must be at least 0'),
    (['--results=README.md'], 'README.md'),
  ],
)
def test_bad_input_is_one_line_before_any_work(flags, message, tmp_path):
  workdir = tmp_path / 'sweep'
  status, _, stderr = commands.run(
    'sweep', *_CELL, f'--workdir={workdir}', *flags
  )
  assert status == 1
  assert message in commands.last_line(stderr)
  assert not workdir.exists()
