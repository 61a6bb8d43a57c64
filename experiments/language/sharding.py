"""Where the arrays of a language model lie: a mesh of `data` x `fsdp`.

Batches are divided among all devices. Parameters, and Adam's state, are divided
among the devices of an `fsdp` row and repeated along `data` (fully sharded data
parallelism). The compiler adds the communication.
"""

import chex
import jax
import numpy as np

P = jax.sharding.PartitionSpec


def make_mesh(fsdp: int = 1) -> jax.sharding.Mesh:
  """Returns the mesh of all devices of all processes.

  Args:
    fsdp: Devices among which the parameters are divided.

  Raises:
    ValueError: If the number of devices is not a multiple of that.
  """
  devices = jax.devices()
  if len(devices) % fsdp:
    raise ValueError(
      f'fsdp must divide the number of devices, {len(devices)}, got {fsdp}.'
    )
  return jax.sharding.Mesh(
    np.array(devices).reshape(-1, fsdp), ('data', 'fsdp')
  )


def of_state(mesh: jax.sharding.Mesh, shapes: chex.ArrayTree) -> chex.ArrayTree:
  """Returns the sharding of each array of a state.

  Args:
    mesh: Of `make_mesh`.
    shapes: Arrays, or what has their shapes.
  """
  size = mesh.shape['fsdp']

  def sharding_of(x):
    axes = [i for i, length in enumerate(x.shape) if length % size == 0]
    spec = [None] * x.ndim
    if axes:
      spec[max(axes, key=lambda i: x.shape[i])] = 'fsdp'
    return jax.sharding.NamedSharding(mesh, P(*spec))

  return jax.tree.map(sharding_of, shapes)


def of_batch(mesh: jax.sharding.Mesh) -> jax.sharding.NamedSharding:
  """Returns the sharding of arrays [B, ...], B a multiple of the devices."""
  return jax.sharding.NamedSharding(mesh, P(('data', 'fsdp')))


def put_batch(mesh: jax.sharding.Mesh, part: np.ndarray) -> jax.Array:
  """Returns a batch of which each process has its part, in their order."""
  return jax.make_array_from_process_local_data(of_batch(mesh), part)
