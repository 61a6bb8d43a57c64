"""Tests of memory that stays with the process."""

import ctypes
import subprocess
import sys

import pytest

# Takes and frees 64 MiB, in another thread than the first as XLA does, and
# counts the pages that the system hands out for it after the first time.
_SCRIPT = """
import ctypes, resource, threading
from experiments.engine import allocation
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
size = 2**26

def use():
  block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(size)))
  ctypes.memset(block, 1, size)
  libc.free(block)

def faults():
  return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def measure():
  use()
  before = faults()
  for _ in range(4):
    use()
  print(faults() - before)

if {keep}:
  assert allocation.keep_freed()
thread = threading.Thread(target=measure)
thread.start()
thread.join()
"""


@pytest.mark.skipif(
  not hasattr(ctypes.CDLL(None), 'mallopt'),
  reason='This is not glibc.',
)
@pytest.mark.parametrize('keep', [False, True])
def test_large_blocks_are_used_again(keep):
  """Kept, they need no new pages, of which each time would need all."""
  output = subprocess.run(
    [sys.executable, '-c', _SCRIPT.format(keep=keep)],
    capture_output=True,
    check=True,
    text=True,
  ).stdout
  if keep:
    assert int(output) < 100
  else:  # The script does see pages: 4 x 64 MiB, of 4 KiB or larger ones.
    assert int(output) > 4 * 16
