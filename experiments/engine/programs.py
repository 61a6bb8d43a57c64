"""Compiled programs, one a bucket width."""

from collections.abc import Callable, Mapping, Sequence
import concurrent.futures
import functools
import threading
from typing import Any

import jax

from experiments.engine import estimates, progress

# Of XLA, by backend; measured in docs/performance.md. Without Triton's matrix
# products compiling takes seconds in place of a minute; independent kernels may
# run side by side. On a CPU the fusion emitters take half of the time.
_COMPILER_OPTIONS = {
  'cpu': {'xla_cpu_use_fusion_emitters': False},
  'gpu': {
    'xla_gpu_enable_triton_gemm': False,
    'xla_gpu_command_buffer_scheduling_mode': 'CONCURRENT',
  },
}


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
  """Returns those of XLA's options that the installed version takes.

  Args:
    options: As `jax.stages.Lowered.compile` takes them. An unknown one would be
      an error there, and the end of the process in the variable XLA_FLAGS.
  """
  program = jax.jit(lambda: 0).lower()

  def is_known(option):
    try:
      program.compile(dict([option]))
    except jax.errors.JaxRuntimeError:
      return False
    return True

  return dict(filter(is_known, options.items()))


@functools.cache
def quick_options() -> dict[str, Any]:
  """Returns XLA's options for many small programs."""
  return known_options(_COMPILER_OPTIONS.get(jax.default_backend(), {}))


def compiled(
  what: str,
  lowered: jax.stages.Lowered,
  fewer: str = 'batch or model',
  options: Mapping[str, Any] | None = None,
) -> jax.stages.Compiled:
  """Compiles a program, which fits into a device.

  Args:
    what: The program, as 'the training'.
    lowered: The program.
    fewer: What to choose smaller, if it does not fit.
    options: Of XLA.

  Raises:
    ValueError: If it does not fit, with the estimate.
  """
  program = lowered.compile(options)
  estimates.check_program(what, program, fewer)
  return program


class Programs:
  """Compiles `make(width)` once per width, and says so where one waits."""

  def __init__(self, what: str, make: Callable[[int], Any], **jit_options):
    """Initializes.

    Args:
      what: Named in messages, with a place for the width, as 'the training of
        strings of up to {} symbols'.
      make: Returns the function of a width.
      **jit_options: Of `jax.jit`.
    """
    self._what = what
    self._make = make
    self._jit_options = jit_options
    self._programs: dict[int, Any] = {}
    self._compiling: dict[int, concurrent.futures.Future] = {}
    self._tracing = threading.Lock()

  @property
  def num_compiled(self) -> int:
    """How many programs there are."""
    return len(self._programs)

  def prepare(self, widths: Sequence[int], *args: Any) -> None:
    """Starts to compile the programs of some widths, all at once.

    Args:
      widths: In the order in which they will be needed, as far as one knows.
      *args: What each will be called with, or its shapes.
    """
    pool = concurrent.futures.ThreadPoolExecutor(len(widths))
    for width in widths:
      self._compiling[width] = pool.submit(self._compiled, width, args)
    pool.shutdown(wait=False)

  def __call__(self, width: int, *args: Any) -> Any:
    """Runs the program of a width."""
    if width not in self._programs:
      begun = self._compiling.pop(width, None)
      if begun and begun.done():
        self._programs[width] = begun.result()
      else:
        with progress.timed(f'Compiling {self._what.format(width)}'):
          self._programs[width] = (
            begun.result() if begun else self._compiled(width, args)
          )
    return self._programs[width](*args)

  def _compiled(self, width: int, args: Any) -> Any:
    # Python traces one at a time; taking turns, the first is done early.
    with self._tracing:
      lowered = jax.jit(self._make(width), **self._jit_options).lower(*args)
    return compiled(self._what.format(width), lowered, options=quick_options())
