"""Devices and processes: the mesh, and what the processes agree on.

All devices of all processes form one mesh with two named axes: `run`, over
which the runs of a cell are divided, and `data`, over which each run's batch
is. Every process runs the same program; the first one alone writes files that
are not checkpoints, and talks.
"""

from collections.abc import Callable
import ctypes
import math
import os
import re
import signal
import sys
import threading
from typing import Any, NoReturn, TypeVar
import zlib

import chex
import jax
from jax.experimental import multihost_utils
import numpy as np

from experiments.engine import errors, parameters

P = jax.sharding.PartitionSpec
_T = TypeVar('_T')

# Seconds until a process that has fallen silent counts as lost, and until those
# that are left stop to wait for it at the end.
_HEARTBEAT_TIMEOUT_S = 30
_SHUTDOWN_TIMEOUT_S = 30
# Seconds until those that are there stop to wait for the others at the start.
_JOIN_TIMEOUT_S = 300
_HOW_TO_JOIN = (
  'Outside Cloud TPU, Slurm and Open MPI give --coordinator_address,'
  ' --num_processes and --process_id.'
)
# What the last line says where this process is well and another is not.
LOST = (
  'Stopped, most likely since another process did. Start all of them again with'
  ' the same command to go on.'
)
_MAX_PROCESSES = 2**20
# Functions that native code calls.
_kept_alive: list[Any] = []
# Bytes of an error's text that processes tell each other.
_MAX_MESSAGE = 2000


def join(
  coordinator_address: str | None = None,
  num_processes: int | None = None,
  process_id: int | None = None,
) -> None:
  """Joins the other processes, before anything else is done with JAX.

  On Cloud TPU, under Slurm and under Open MPI all arguments are found.

  Args:
    coordinator_address: Host and port of the first process.
    num_processes: How many there are.
    process_id: Which one this is, from 0.

  Raises:
    ValueError: If an argument is missing or wrong. (If the others do not come
      within five minutes, the process ends with a message.)
  """
  address = coordinator_address or os.environ.get('JAX_COORDINATOR_ADDRESS')
  if address and not re.fullmatch(r'.+:\d{1,5}', address):
    raise ValueError(
      'coordinator_address must be a host and a port, as 10.0.0.1:1234, got'
      f' {address!r}.'
    )
  for name, value, least in (
    ('num_processes', num_processes, 1),
    ('process_id', process_id, 0),
  ):
    if value is not None:
      parameters.check_bounds(name, value, least, _MAX_PROCESSES)
  _say_so_when_aborted()
  print('Waiting for the other processes ...', file=sys.stderr, flush=True)
  # JAX would end the process too, but with a page of its own.
  timer = threading.Timer(_JOIN_TIMEOUT_S, _give_up)
  timer.daemon = True
  timer.start()
  try:
    jax.distributed.initialize(
      coordinator_address,
      num_processes,
      process_id,
      initialization_timeout=2 * _JOIN_TIMEOUT_S,
      heartbeat_timeout_seconds=_HEARTBEAT_TIMEOUT_S,
      shutdown_timeout_seconds=_SHUTDOWN_TIMEOUT_S,
    )
  except (ValueError, RuntimeError) as error:
    line = errors.first_line(error)
    raise ValueError(
      f'Cannot join the other processes: {line} {_HOW_TO_JOIN}'
    ) from error
  finally:
    timer.cancel()
  # JAX has taken SIGTERM for itself, and would swallow it.
  signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end(message: str, status: int = 1, stderr: int = 2) -> NoReturn:
  """Ends the process at once with a message, the last that it prints.

  Nothing is waited for: threads of a checkpoint that could not be written would
  go on to print tracebacks, and those that compile would go on for minutes.

  Args:
    message: A line.
    status: Exit status.
    stderr: Where standard error is, if not where it always is.
  """
  stderr = os.dup(stderr)
  # Native threads write a last word too, and not always before this one.
  os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
  os.write(stderr, f'{message}\n'.encode(errors='backslashreplace'))
  os._exit(status)


def _give_up() -> None:
  # From a thread: the main one waits inside JAX and cannot be told.
  end(
    f'Error: The other processes did not come within {_JOIN_TIMEOUT_S} seconds.'
    f' Start the same command in each. {_HOW_TO_JOIN}'
  )


def _say_so_when_aborted() -> None:
  """Ends the process with one line where JAX would abort it.

  It does, from a thread of its own and beyond any `except`, if the process
  dies that keeps the others in touch, which is the first.
  """
  stderr = os.dup(2)  # Which `checkpoints` replaces now and then.
  # Python's own handlers wait for the main thread, after the abort.
  handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(
    lambda signal_number: end(f'Error: {LOST}', 1, stderr)
  )
  _kept_alive.append(handler)
  library = ctypes.CDLL(None)
  library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
  library.signal.restype = ctypes.c_void_p
  library.signal(signal.SIGABRT, ctypes.cast(handler, ctypes.c_void_p))


def is_main() -> bool:
  """Whether this is the process that writes and talks."""
  return jax.process_index() == 0


def on_all(function: Callable[[], _T]) -> _T:
  """Calls a function on every process; where one fails, all do.

  Else those that go on would wait for the one that does not.

  Raises:
    ValueError: On all processes, if the function raises it on one.
    OSError: Likewise.
  """
  if jax.process_count() == 1:
    return function()
  result, told = None, b''
  try:
    result = function()
  except (ValueError, OSError) as error:
    kind = b'V' if isinstance(error, ValueError) else b'O'
    told = (
      kind + errors.said(error).encode(errors='backslashreplace')[:_MAX_MESSAGE]
    )
  told_PxN = multihost_utils.process_allgather(
    np.frombuffer(told.ljust(_MAX_MESSAGE + 1, b'\0'), np.uint8)
  )
  for process, told_N in enumerate(told_PxN):
    kind, *message = told_N.astype(np.uint8).tobytes().rstrip(b'\0') or b'\0'
    if kind:
      where = f'Process {process}: ' if process else ''
      text = where + bytes(message).decode(errors='replace')
      raise (ValueError if kind == ord('V') else OSError)(text)
  return result


def from_main(function: Callable[[], int | None]) -> int:
  """Calls a function on the first process, and returns its result on all.

  Args:
    function: Returns an integer, or None for 0.

  Raises:
    ValueError: On all processes, if the function raises it.
    OSError: Likewise.
  """
  answer = on_all(lambda: (function() if is_main() else 0) or 0)
  if jax.process_count() == 1:
    return answer
  return int(multihost_utils.broadcast_one_to_all(np.int64(answer)))


def check_alike(what: str) -> None:
  """Checks that all processes were told to do the same.

  Args:
    what: All that they were told, as text.

  Raises:
    ValueError: On all processes, if one of them was told something else.
  """
  if jax.process_count() == 1:
    return
  told = multihost_utils.process_allgather(np.uint32(zlib.crc32(what.encode())))
  others = np.flatnonzero(told != told[0])
  if len(others):
    raise ValueError(
      f'Process {others[0]} was not started with the same command as process 0.'
    )


def largest(value: int) -> int:
  """Returns the largest of the processes' values, on all of them."""
  if jax.process_count() == 1:
    return value
  return int(multihost_utils.process_allgather(np.int64(value)).max())


def make_mesh(num_runs: int, batch_size: int) -> jax.sharding.Mesh:
  """Returns the mesh on which some runs train together.

  Runs are divided as far as they come out even, for they need nothing of each
  other; the devices that are left for each share its batch.

  Args:
    num_runs: Number of runs, R.
    batch_size: Strings a step, B.

  Raises:
    ValueError: If several processes have devices that would be left idle.
  """
  devices = jax.devices()
  num_by_run = math.gcd(num_runs, len(devices))
  num_by_data = math.gcd(batch_size, len(devices) // num_by_run)
  num_used = num_by_run * num_by_data
  if num_used < len(devices) and jax.process_count() > 1:
    raise ValueError(
      f'{num_runs} runs of batch size {batch_size} do not divide evenly among'
      f' {len(devices)} devices of {jax.process_count()} processes, but among'
      f' {num_used}.'
    )
  return jax.sharding.Mesh(
    np.array(devices[:num_used]).reshape(num_by_run, num_by_data),
    ('run', 'data'),
  )


def sharding(mesh: jax.sharding.Mesh, *axes: str) -> jax.sharding.Sharding:
  """Returns where arrays lie whose first axes go along axes of a mesh."""
  return jax.sharding.NamedSharding(mesh, P(*axes))


def with_shardings(
  shapes: chex.ArrayTree, shardings: chex.ArrayTree
) -> chex.ArrayTree:
  """Returns the shapes of arrays, saying where they lie.

  Args:
    shapes: What has shapes and types.
    shardings: One for each, or for each of some branches.
  """
  return jax.tree.map(
    lambda lies, branch: jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=lies), branch
    ),
    shardings,
    shapes,
  )


def put(mesh: jax.sharding.Mesh, tree: chex.ArrayTree) -> chex.ArrayTree:
  """Puts arrays [R, ...], the same on all processes, where their runs lie."""
  by_run = sharding(mesh, 'run')
  return jax.tree.map(
    lambda x: jax.make_array_from_callback(x.shape, by_run, x.__getitem__),
    tree,
  )


def divided(mesh: jax.sharding.Mesh, tree: chex.ArrayTree) -> chex.ArrayTree:
  """Divides a batch, traced, among the devices of a run.

  Args:
    mesh: Of `make_mesh`.
    tree: Arrays [B, ...]; left alone where B does not divide.
  """

  def divide(x):
    if x.shape[0] % mesh.shape['data']:
      return x
    return jax.lax.with_sharding_constraint(x, sharding(mesh, 'data'))

  return jax.tree.map(divide, tree)


def fetch(tree: chex.ArrayTree) -> Any:
  """Returns whole arrays as NumPy's, on all processes."""
  if all(x.is_fully_addressable for x in jax.tree.leaves(tree)):
    return jax.device_get(tree)
  return multihost_utils.process_allgather(tree, tiled=True)
