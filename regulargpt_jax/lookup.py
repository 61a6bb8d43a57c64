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
  matrix product here, whose order is; for larger ones the gradients are sorted
  by row and summed by a scan, pairwise and always in the same order.

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
  index_N, grad_NxD = jnp.asarray(index).reshape(-1), grad.reshape(-1, dim)
  if num_rows > MAX_ONE_HOT_ROWS:
    return _sum_by_row(table_SxD, index_N, grad_NxD), None
  one_hot_NxS = jax.nn.one_hot(index_N, num_rows, dtype=jnp.float32)
  grad_SxD = jnp.einsum('ns,nd->sd', one_hot_NxS, grad_NxD.astype(jnp.float32))
  return grad_SxD.astype(table_SxD.dtype), None


def _sum_by_row(table_SxD, index_N, grad_NxD):
  """Returns the sums of the gradients with the same index, [S, D]."""
  num_rows = len(table_SxD)
  order_N = jnp.argsort(index_N)
  index_N = index_N[order_N]
  is_change_M = index_N[1:] != index_N[:-1]
  is_first_Nx1 = jnp.pad(is_change_M, (1, 0), constant_values=True)[:, None]
  is_last_N = jnp.pad(is_change_M, (0, 1), constant_values=True)

  def add(left, right):
    (sum_left, first_left), (sum_right, first_right) = left, right
    total = jnp.where(first_right, sum_right, sum_left + sum_right)
    return total, first_left | first_right

  sums_NxD, _ = jax.lax.associative_scan(
    add, (grad_NxD[order_N].astype(jnp.float32), is_first_Nx1)
  )
  # Only the last of a run has the run's sum; the others go out of bounds.
  row_N = jnp.where(is_last_N, index_N, num_rows + jnp.arange(len(index_N)))
  return (
    jnp.zeros_like(table_SxD)
    .at[row_N]
    .set(sums_NxD.astype(table_SxD.dtype), mode='drop', unique_indices=True)
  )


take_rows.defvjp(_forward, _backward)
