"""Looking up rows of a table, with a gradient that is the same every time."""

import jax
import jax.numpy as jnp

# Above this many rows, a one-hot matrix product costs more than it is worth.
MAX_ONE_HOT_ROWS = 1024


@jax.custom_vjp
def take_rows(table_SxD: jax.Array, index: jax.Array) -> jax.Array:
  """Returns `table[index]`.

  The gradient of a gather is a scatter-add, whose order of summation is not
  fixed on a GPU. For tables of up to `MAX_ONE_HOT_ROWS` rows it is a one-hot
  matrix product here, whose order is.

  Args:
    table_SxD: The rows.
    index: Integers in [0, S), of any shape.

  Returns:
    Array [*index.shape, D].
  """
  return table_SxD[index]


def _forward(table_SxD, index):
  return take_rows(table_SxD, index), (table_SxD, index)


def _backward(residuals, grad):
  table_SxD, index = residuals
  num_rows, dim = table_SxD.shape
  index_N, grad_NxD = index.reshape(-1), grad.reshape(-1, dim)
  if num_rows > MAX_ONE_HOT_ROWS:
    return jnp.zeros_like(table_SxD).at[index_N].add(grad_NxD), None
  one_hot_NxS = jax.nn.one_hot(index_N, num_rows, dtype=grad.dtype)
  grad_SxD = jnp.einsum(
    'ns,nd->sd',
    one_hot_NxS,
    grad_NxD,
    preferred_element_type=jnp.float32,
  )
  return grad_SxD.astype(table_SxD.dtype), None


take_rows.defvjp(_forward, _backward)
