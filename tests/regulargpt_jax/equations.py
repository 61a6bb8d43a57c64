"""What a program computes, operation by operation."""

from collections.abc import Iterator

import jax
from jax.extend import core


def of(function, *args) -> Iterator[core.JaxprEqn]:
  """Yields all operations of a function's program, those of its parts too."""
  yield from _of_jaxpr(jax.make_jaxpr(function)(*args).jaxpr)


def largest(function, *args) -> int:
  """Returns the number of elements of the largest array that one makes."""
  return max(
    variable.aval.size
    for equation in of(function, *args)
    for variable in equation.outvars
  )


def _of_jaxpr(jaxpr):
  for equation in jaxpr.eqns:
    yield equation
    for part in core.jaxprs_in_params(equation.params):
      yield from _of_jaxpr(part)
