"""What cannot fit is refused with the estimate, not tried.

Estimates before the start count what must be there at least (parameters, the
state of Adam, gradients, a batch and what a model makes of each of its
symbols); what a compiled program takes is known exactly.
"""

import math
import os
import pathlib

import chex
import jax

# Bytes of a number of the computation, at least, and of a token.
FLOAT_BYTES = 4
TOKEN_BYTES = 4

# Where a container's limit stands, by version of cgroups.
_CGROUPS = (
  '/sys/fs/cgroup/memory.max',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes',
)


def memory() -> float:
  """Returns the bytes of a device: of the machine, where that is a CPU."""
  device = jax.local_devices()[0]
  if device.platform != 'cpu':
    stats = device.memory_stats() or {}
    return stats.get('bytes_limit', math.inf)
  return host_memory()


def host_memory() -> float:
  """Returns the bytes of memory that this process may have."""
  limits = [os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')]
  for path in map(pathlib.Path, _CGROUPS):
    if path.exists() and (text := path.read_text().strip()).isdecimal():
      limits.append(int(text))
  return min(limits)


def of_arrays(shapes: chex.ArrayTree) -> int:
  """Returns the bytes of arrays, or of their parts on one device.

  Args:
    shapes: What has shapes and types, and shardings where they are divided.
  """
  return sum(
    math.prod(_part(x)) * jax.numpy.dtype(x.dtype).itemsize
    for x in jax.tree.leaves(shapes)
  )


def _part(x) -> tuple[int, ...]:
  sharding = getattr(x, 'sharding', None)
  return sharding.shard_shape(x.shape) if sharding else x.shape


def check(what: str, num_bytes: float, fewer: str, room: float = 0) -> None:
  """Checks that something fits into memory.

  Args:
    what: Needs the memory; plural, and the beginning of the message.
    num_bytes: How much, at least.
    fewer: What to choose smaller.
    room: Bytes that there are; by default those of a device.

  Raises:
    ValueError: If it does not; with both numbers.
  """
  room = room or memory()
  if num_bytes > room:
    raise ValueError(
      f'{what} need about {_shown(num_bytes)} of memory, of'
      f' {_shown(room)}. Choose a smaller {fewer}.'
    )


def check_state(
  state: chex.ArrayTree, num_gradients: int, fewer: str, of: str = ''
) -> None:
  """Checks that what a step has beside its batch fits into a device.

  Args:
    state: Of `optimization.State`, or what has its arrays' shapes.
    num_gradients: How many of the parameters' size there are at once.
    fewer: As of `check`.
    of: Whose, as ' of 3 runs'.

  Raises:
    ValueError: If it does not.
  """
  check(
    f'The parameters{of}, their gradients and the state of Adam',
    of_arrays(state) + num_gradients * of_arrays(state.params),
    fewer,
  )


def check_program(what: str, program: jax.stages.Compiled, fewer: str) -> None:
  """Checks that what a compiled program works on fits into a device.

  Args:
    what: The program, as 'the training'.
    program: Compiled, and not yet run.
    fewer: As of `check`.

  Raises:
    ValueError: If it does not.
  """
  sizes = program.memory_analysis()
  if sizes is None:  # Not every backend knows.
    return
  num_bytes = (
    sizes.argument_size_in_bytes
    + sizes.output_size_in_bytes
    + sizes.temp_size_in_bytes
    - sizes.alias_size_in_bytes
  )
  check(f'The arrays of {what}', num_bytes, fewer)


def _shown(num_bytes: float) -> str:
  units = ('bytes', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB')
  power = min(int(math.log10(max(num_bytes, 1))) // 3, len(units) - 1)
  return f'{num_bytes / 1000**power:.3g} {units[power]}'
