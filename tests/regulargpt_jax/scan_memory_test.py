"""What `scan` holds in memory."""

import os
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.skipif(
  not os.path.exists('/proc/self/status'), reason='needs Linux'
)
def test_scan_takes_long_strings_in_little_memory():
  """T = 16,384 forward and backward: the process stays below 2 GB."""
  program = """
import jax, jax.numpy as jnp
from regulargpt_jax import config, model
gpt = model.RegularGPT(config.make_config('benchmark', 2, 2, embedding_dim=64))
tokens = jnp.zeros((1, 16384), jnp.int32)
params = jax.jit(gpt.init)(jax.random.key(0), tokens[:, :2])
loss = lambda params: gpt.apply(params, tokens, 'scan').sum()
jax.block_until_ready(jax.jit(jax.grad(loss))(params))
# Not getrusage: its maximum starts from what the parent process held.
status = dict(line.split(':', 1) for line in open('/proc/self/status'))
print(status['VmHWM'].split()[0])
"""
  repository = pathlib.Path(__file__).parents[2]
  printed = subprocess.run(
    [sys.executable, '-c', program],
    cwd=repository,
    capture_output=True,
    text=True,
    check=True,
  ).stdout
  assert int(printed) * 1024 < 2e9
