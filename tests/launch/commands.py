"""Commands as a user runs them, in processes of their own."""

import json
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


# Imports what all commands import, then forks for each.
_RUN_EACH = """
import json, os, runpy, sys, tempfile
from launch import flag_lib
from experiments.formal import run
for name, *flags in json.load(sys.stdin):
  with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err:
    if not (child := os.fork()):
      os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
      sys.argv, status = [name, *flags], 0
      try:
        runpy.run_module(f'launch.{name}', run_name='__main__', alter_sys=True)
      except SystemExit as error:
        status = error.code
      sys.stdout.flush(), sys.stderr.flush()
      os._exit(status or 0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    out.seek(0), err.seek(0)
    print(json.dumps((status, out.read(), err.read())), flush=True)
"""


def run_each(*commands):
  """Returns what `run` does, of many commands that do nothing or fail soon.

  Args:
    *commands: Each a command and its flags.
  """
  output = subprocess.run(
    [sys.executable, '-c', _RUN_EACH],
    input=json.dumps(commands),
    cwd=REPOSITORY,
    stdout=subprocess.PIPE,
    text=True,
    check=True,
    timeout=300,
  ).stdout
  return [json.loads(line) for line in output.splitlines()]


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
