"""Eight devices, in a process of their own, against one."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from experiments.language import sharding
from tests.experiments.language import sharded
from tests.launch import commands


@pytest.mark.slow  # Two processes of two devices are in the quick tests.
def test_eight_devices_equal_one():
  """Losses to 1e-5, Adam's moments to 1e-6; the state is divided by `fsdp`."""
  sizes = (1, 4)
  done = subprocess.run(
    [sys.executable, '-m', sharded.__name__, json.dumps(sizes)],
    cwd=commands.REPOSITORY,
    env={**os.environ, 'XLA_FLAGS': commands.with_devices(8)},
    capture_output=True,
    text=True,
  )
  assert not done.returncode, done.stderr
  one = sharded.trained(1)
  for fsdp, found in zip(sizes, json.loads(done.stdout), strict=True):
    np.testing.assert_allclose(found['loss'], one['loss'], rtol=1e-5)
    np.testing.assert_allclose(found['moments'], one['moments'], atol=1e-6)
    assert found['all'] == one['all']
    # All but a few scalars and the embedding's odd number of rows divide.
    assert found['of_first'] == pytest.approx(one['all'] / fsdp, rel=0.01)


def test_a_size_that_does_not_divide_is_refused():
  with pytest.raises(ValueError, match=f'devices, {jax.device_count()}'):
    sharding.make_mesh(jax.device_count() + 1)
