"""Commands as a user runs them, in processes of their own.

Importing takes a process two seconds. So one process imports what the commands
do and runs none; each command is a fork of it, and ends as any other does.
"""

import atexit
import multiprocessing
import os
import pathlib
import runpy
import socket
import subprocess
import sys
import tempfile
import threading
import time

REPOSITORY = pathlib.Path(__file__).parents[2]
_FORKS = multiprocessing.get_context('forkserver')
_FORKS.set_forkserver_preload(
  [
    'haiku',
    'matplotlib.pyplot',
    'experiments.analysis',
    'experiments.formal.run',
    'experiments.language.sweep',
    'experiments.sweeps.report',
    'experiments.sweeps.sweep',
    'experiments.text.preparation',
  ]
)


def _main(module, flags, environment, stdout, stderr, begin):
  """Does as `python -m module` would, to the end of the process."""
  os.environ.clear()
  os.environ.update(environment)
  os.chdir(REPOSITORY)
  if begin:
    begin()
  for number, path in ((0, os.devnull), (1, stdout), (2, stderr)):
    os.dup2(os.open(path, os.O_RDWR), number)
  sys.stdin, sys.stdout = open(0), open(1, 'w')  # noqa: SIM115
  sys.stderr = open(2, 'w', buffering=1, errors='backslashreplace')  # noqa: SIM115
  sys.argv = [module, *flags]
  status = 0
  try:
    runpy.run_module(module, run_name='__main__', alter_sys=True)
  except SystemExit as end:
    status = end.code or 0
  except BaseException:
    sys.excepthook(*sys.exc_info())
    status = 1
  threading._shutdown()
  atexit._run_exitfuncs()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(status)


class _Command:
  """A fork that runs a command, as a `subprocess.Popen`."""

  def __init__(self, module, flags, begin):
    self._folder = tempfile.TemporaryDirectory()
    self._paths = [
      pathlib.Path(self._folder.name, name) for name in ('stdout', 'stderr')
    ]
    for path in self._paths:
      path.touch()
    self._process = _FORKS.Process(
      target=_main,
      args=(module, flags, dict(os.environ), *map(str, self._paths), begin),
    )
    self._process.start()
    self.pid = self._process.pid

  @property
  def returncode(self):
    return self._process.exitcode

  def poll(self):
    return self._process.exitcode

  def wait(self, timeout=None):
    self._process.join(timeout)
    if self.returncode is None:
      raise subprocess.TimeoutExpired(self._process.name, timeout)
    return self.returncode

  def communicate(self, timeout=None):
    self.wait(timeout)
    return tuple(path.read_text() for path in self._paths)

  def send_signal(self, number):
    if self.poll() is None:
      os.kill(self.pid, number)

  def terminate(self):
    self._process.terminate()

  def kill(self):
    self._process.kill()


@atexit.register
def _end_all():
  """Else a process that a failed test left would be waited for."""
  for process in multiprocessing.active_children():
    process.kill()


def start(command, *flags, begin=None):
  """Starts `python -m launch.<command>`.

  Args:
    command: Name of the module.
    *flags: Of the command.
    begin: A function of a module, called in the process before the command.
  """
  return _Command(f'launch.{command}', flags, begin)


def run(command, *flags):
  """Returns exit status, standard output and standard error."""
  process = start(command, *flags)
  stdout, stderr = process.communicate(timeout=300)
  return process.returncode, stdout, stderr


def free_port():
  with socket.socket() as s:
    s.bind(('127.0.0.1', 0))
    return s.getsockname()[1]


def start_together(number, command, *flags, each=None):
  """Starts processes that work together, each perhaps with its own flag."""
  port = free_port()
  return [
    start(
      command,
      *flags,
      '--distributed',
      f'--coordinator_address=127.0.0.1:{port}',
      f'--num_processes={number}',
      f'--process_id={i}',
      *(each[i : i + 1] if each else ()),
    )
    for i in range(number)
  ]


def with_devices(number):
  """Returns XLA's flags, with which the CPU passes for so many devices."""
  count = f'--xla_force_host_platform_device_count={number}'
  return f'{os.environ["XLA_FLAGS"]} {count}'


def last_line(text):
  return text.strip().splitlines()[-1]


def checkpoints(workdir):
  return list((workdir / 'checkpoints').glob('*.sha256.json'))


def wait_for_checkpoints(process, workdir, number):
  _wait_until(process, lambda: len(checkpoints(workdir)) >= number)


def wait_for_another_checkpoint(process, workdir):
  """Waits for one that is not there yet; old ones may go meanwhile."""
  before = {*checkpoints(workdir)}
  _wait_until(process, lambda: {*checkpoints(workdir)} - before)


def _wait_until(process, is_done):
  deadline = time.monotonic() + 240
  while not is_done():
    assert process.poll() is None, process.communicate()
    assert time.monotonic() < deadline
    time.sleep(0.01)
