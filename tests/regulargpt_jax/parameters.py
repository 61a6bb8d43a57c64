"""Random parameters, without a program to be compiled for them."""

import jax
import numpy as np


def random(module, *inputs):
  """Returns parameters large enough that every one of them matters.

  Args:
    module: Of Flax.
    *inputs: Of its `init`, behind the key; numbers of Python are static.
  """
  shapes = jax.eval_shape(lambda: module.init(jax.random.key(0), *inputs))
  rng = np.random.default_rng(1)

  def array(path, like):
    around = float(path[-1].key == 'scale')  # Of norms, about 1.
    return np.float32(around + 0.3 * rng.normal(size=like.shape))

  return jax.device_put(jax.tree_util.tree_map_with_path(array, shapes))
