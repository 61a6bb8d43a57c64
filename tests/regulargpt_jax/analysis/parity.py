"""A model that learned PARITY with a penalty on its gain, D = 8."""

import pathlib

from flax import traverse_util
import numpy as np

from regulargpt_jax import config

CONFIG = config.make_config('benchmark', 2, 2, embedding_dim=8, num_heads=2)
SYMBOLS = np.arange(2)
MACHINE = (np.array([[0, 1], [1, 0]]), 0, np.array([0, 1]))


def params(**factors):
  """Returns its parameters, those of some layers of the block rescaled."""
  path = pathlib.Path(__file__).with_name('parity.npz')
  flat = {tuple(name.split('/')): x for name, x in np.load(path).items()}
  for name, factor in factors.items():
    flat['block_0', name, 'kernel'] = factor * flat['block_0', name, 'kernel']
  return {'params': traverse_util.unflatten_dict(flat)}


def strings(num, length, seed=0):
  return np.random.default_rng(seed).integers(2, size=(num, length))
