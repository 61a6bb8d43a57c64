"""A few steps on as many devices as there are, also in a process of its own.

python -m tests.experiments.language.sharded '[1, 4]'
"""

import dataclasses
import functools
import json
import sys

import jax
import numpy as np

from experiments.language import sharding, training
from tests.experiments.language import texts


def trained(fsdp):
  """Trains two steps; returns results, and the sizes of the state.

  Args:
    fsdp: Of how many devices each part of the state is divided among.

  Returns:
    `loss`, `moments` of Adam, how many numbers are in the state, `all`, and how
    many of them the first device has, `of_first`.
  """
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
    tokens = rng.integers(0, texts.VOCAB_SIZE, (16, 11)).astype(np.int32)
    state = step(state, sharding.put_batch(mesh, tokens))
  leaves = jax.tree.leaves(state)
  moments = jax.tree.leaves(state.optimizer)
  return {
    'all': sum(x.size for x in leaves),
    'of_first': sum(x.addressable_shards[0].data.size for x in leaves),
    'loss': float(state.loss_sum),
    'moments': np.concatenate([np.ravel(x) for x in moments]).tolist(),
  }


if __name__ == '__main__':
  print(json.dumps([trained(fsdp) for fsdp in json.loads(sys.argv[1])]))
