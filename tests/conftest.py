"""Tests compile many tiny programs: compile them quickly, and share them."""

import gc
import os
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
os.environ['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] = '0.3'

import hypothesis
import jax
import pytest

hypothesis.settings.register_profile(
  'tests', deadline=None, derandomize=True, max_examples=20
)
hypothesis.settings.load_profile('tests')


@pytest.fixture(autouse=True, scope='module')
def _forget_programs():
  """Drops a module's compiled programs: thousands would crash the compiler."""
  yield
  jax.clear_caches()
  gc.collect()
