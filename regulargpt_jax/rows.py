"""Linear layers over rows: one matrix product, whatever axes the rows have.

Put one below the other first: with several axes the gradient of the weights
sums over several, for which XLA's programs for CPUs copy an operand transposed
(jax 0.10.2). That costs most where runs train side by side, by `jax.vmap`.
"""

from flax import linen as nn
import jax


def dot_general(x_NxI, kernel_IxO, dimensions, **options) -> jax.Array:
  """Returns x @ kernel, [N, O]; N may be several axes.

  For `nn.Dense`.
  """
  del dimensions
  rows = x_NxI.reshape(-1, x_NxI.shape[-1])
  out = jax.lax.dot_general(
    rows, kernel_IxO, (((1,), (0,)), ((), ())), **options
  )
  return out.reshape(*x_NxI.shape[:-1], kernel_IxO.shape[-1])


def dense(features: int, **options) -> nn.Dense:
  """Returns a linear layer of Flax, over rows."""
  return nn.Dense(features, dot_general=dot_general, **options)
