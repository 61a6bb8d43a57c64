"""Commands as a user runs them, in processes of their own."""

import pathlib
import socket
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).parents[2]


def start(command, *flags, **kwargs):
  """Starts `python -m launch.<command>`."""
  return subprocess.Popen(
    [sys.executable, '-m', f'launch.{command}', *flags],
    cwd=REPOSITORY,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    **kwargs,
  )


def run(command, *flags, **kwargs):
  """Returns exit status, standard output and standard error."""
  process = start(command, *flags, **kwargs)
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


def last_line(text):
  return text.strip().splitlines()[-1]


def checkpoints(workdir):
  return list((workdir / 'checkpoints').glob('*.sha256.json'))


def wait_for_checkpoints(process, workdir, number):
  deadline = time.monotonic() + 240
  while len(checkpoints(workdir)) < number:
    assert process.poll() is None, process.communicate()
    assert time.monotonic() < deadline
    time.sleep(0.01)
