"""Eight devices, in a process of their own, against one."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np
import pytest

from experiments.language import sharding

_REPOSITORY = pathlib.Path(__file__).parents[3]

# Trains two steps, on as many devices as there are; prints, for each size of
# `fsdp`, what the first device has of the state, and results.
_PROGRAM = """
import dataclasses, functools, json, sys
import jax
import numpy as np
from experiments.engine import devices
from experiments.language import sharding, training
from tests.experiments.language import texts

for fsdp in json.loads(sys.argv[1]):
  experiment = dataclasses.replace(
    texts.TINY, fsdp=fsdp, batch_size=16, accumulation_steps=2
  )
  mesh = sharding.make_mesh(fsdp)
  state = training.init_state(experiment, mesh)
  step = jax.jit(
    functools.partial(training.train_step, experiment, mesh),
    out_shardings=sharding.of_state(mesh, state),
  )
  for i in range(2):
    rng = np.random.default_rng(i)
    tokens = rng.integers(0, 11, (16, 11)).astype(np.int32)
    state = step(state, sharding.put_batch(mesh, tokens))
  of_first = sum(
    x.addressable_shards[0].data.size for x in jax.tree.leaves(state)
  )
  moments = jax.tree.leaves(state.optimizer)
  print(json.dumps({
    'all': sum(x.size for x in jax.tree.leaves(state)),
    'of_first': of_first,
    'loss': float(state.loss_sum),
    'moments': np.concatenate([np.ravel(x) for x in moments]).tolist(),
  }))
"""


def _trained(num_devices, sizes):
  flags = os.environ['XLA_FLAGS']
  flags += f' --xla_force_host_platform_device_count={num_devices}'
  done = subprocess.run(
    [sys.executable, '-c', _PROGRAM, json.dumps(sizes)],
    cwd=_REPOSITORY,
    env={**os.environ, 'XLA_FLAGS': flags},
    capture_output=True,
    text=True,
  )
  assert not done.returncode, done.stderr
  return [json.loads(line) for line in done.stdout.splitlines()]


def test_eight_devices_equal_one():
  """Losses to 1e-5, Adam's moments to 1e-6; the state is divided by `fsdp`."""
  (one,) = _trained(1, [1])
  for fsdp, found in zip((1, 4), _trained(8, (1, 4)), strict=True):
    np.testing.assert_allclose(found['loss'], one['loss'], rtol=1e-5)
    np.testing.assert_allclose(found['moments'], one['moments'], atol=1e-6)
    assert found['all'] == one['all']
    # All but a few scalars and the embedding's odd number of rows divide.
    assert found['of_first'] == pytest.approx(one['all'] / fsdp, rel=0.01)


def test_a_size_that_does_not_divide_is_refused():
  with pytest.raises(ValueError, match=f'devices, {jax.device_count()}'):
    sharding.make_mesh(jax.device_count() + 1)
