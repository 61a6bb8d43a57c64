"""Compiled programs, one a bucket width, each made when first needed."""

from collections.abc import Callable
from typing import Any

import jax

from experiments import progress


class Programs:
  """Compiles `make(width)` once per width, and says so."""

  def __init__(self, what: str, make: Callable[[int], Any], **jit_options):
    """Initializes.

    Args:
      what: Named in messages, as 'the training step'.
      make: Returns the function for strings padded to a width.
      **jit_options: Of `jax.jit`.
    """
    self._what = what
    self._make = make
    self._jit_options = jit_options
    self._programs = {}

  @property
  def num_compiled(self) -> int:
    """How many programs there are."""
    return len(self._programs)

  def __call__(self, width: int, *args: Any) -> Any:
    """Runs the program of a width."""
    if width not in self._programs:
      doing = f'Compiling {self._what} of strings of up to {width} symbols'
      with progress.timed(doing):
        jitted = jax.jit(self._make(width), **self._jit_options)
        self._programs[width] = jitted.lower(*args).compile()
    return self._programs[width](*args)
