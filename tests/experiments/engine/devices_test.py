"""Processes that work together, and what one does when another is gone."""

import signal
import subprocess
import sys

import pytest

from experiments.engine import devices
from tests.launch import commands


@pytest.mark.parametrize(
  'address', ['host', '10.0.0.1', 'host:', 'host:a', ':']
)
def test_an_address_without_a_port_is_one_line(address, monkeypatch):
  with pytest.raises(ValueError, match='must be a host and a port') as info:
    devices.join(address, 2, 1)
  assert repr(address) in str(info.value) and '\n' not in str(info.value)
  monkeypatch.setenv('JAX_COORDINATOR_ADDRESS', address)
  with pytest.raises(ValueError, match='must be a host and a port'):
    devices.join(None, 2, 1)


_JOIN = """
import sys, time
from experiments.engine import devices
devices.join(sys.argv[1], 2, int(sys.argv[2]))
print('joined', flush=True)
time.sleep(60)
"""


def test_the_last_word_of_one_whose_first_process_is_killed():
  """JAX would abort it, from a thread of its own."""
  address = f'127.0.0.1:{commands.free_port()}'
  processes = [
    subprocess.Popen(
      [sys.executable, '-c', _JOIN, address, str(i)],
      cwd=commands.REPOSITORY,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )
    for i in range(2)
  ]
  for process in processes:
    assert process.stdout.readline() == 'joined\n'
  processes[0].kill()
  _, stderr = processes[1].communicate(timeout=60)
  assert processes[1].returncode == 1, stderr
  assert commands.last_line(stderr) == f'Error: {devices.LOST}'
  processes[0].communicate()
  assert processes[0].returncode == -signal.SIGKILL
