"""Tests compile many tiny programs: compile them quickly, and share them."""

import gc
import os
import pathlib
import signal
import tempfile

from tests import xla_flags

# Inherited by the subprocesses that some tests start. Results do not depend on
# these beyond rounding; the fusion emitters take two thirds of the time.
os.environ['XLA_FLAGS'] = xla_flags.with_known(
  {
    'xla_backend_optimization_level': 0,
    'xla_cpu_use_fusion_emitters': False,
    'xla_cpu_parallel_codegen_split_count': 1,
  }
)
os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ.setdefault(
  'JAX_COMPILATION_CACHE_DIR',
  os.path.join(tempfile.gettempdir(), f'regulargpt_jax_tests_{os.getuid()}'),
)
# Even the smallest program takes longer to compile than to read, and is needed
# by both workers and by many of the subprocesses.
os.environ['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] = '0'

import hypothesis
import jax
import pytest

# A script's shell makes what runs in the background, and so what that starts,
# deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
  'tests', deadline=None, derandomize=True, max_examples=20
)
hypothesis.settings.load_profile('tests')


# Of a process, which Linux lets have 65,530; a large program takes some fifty.
_MAX_MEMORY_MAPS = 20_000


def pytest_collection_modifyitems(items):
  """Long files first, which wait for processes: no worker is left with them."""
  launch = pathlib.Path(__file__).parent / 'launch'
  items.sort(key=lambda item: not item.path.is_relative_to(launch))


def pytest_collection_finish():
  """Looks for garbage among what tests make, not among all that is imported."""
  gc.collect()
  gc.freeze()
  gc.set_threshold(20_000, 20, 20)


def _num_memory_maps():
  try:
    with open('/proc/self/maps', 'rb') as f:
      return sum(1 for _ in f)
  except OSError:  # Not Linux.
    return _MAX_MEMORY_MAPS


@pytest.fixture(autouse=True, scope='module')
def _forget_programs():
  """Drops compiled programs now and then: thousands would crash the compiler.

  Not after each module, which would trace and load again what all use.
  """
  yield
  if _num_memory_maps() >= _MAX_MEMORY_MAPS:
    jax.clear_caches()
    gc.collect()
