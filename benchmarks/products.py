"""The matrix products of a function alone: what its time is compared with."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp


def _dots(jaxpr: Any, times: int = 1) -> Iterator[tuple[Any, int]]:
  """Yields every product of a jaxpr, and how often it is done."""
  for equation in jaxpr.eqns:
    if equation.primitive.name == 'dot_general':
      yield equation, times
    repeated = equation.params.get('length', 1)
    for inner in jax.extend.core.jaxprs_in_params(equation.params):
      yield from _dots(inner, times * repeated)


def alone(
  function: Callable[..., Any], *args: Any
) -> tuple[Callable[[], Any], float]:
  """Returns the products of a function, compiled, and their operations.

  Args:
    function: Traced with the arguments.
    *args: Its arguments.

  Returns:
    A function without arguments that computes products of the same shapes, of
    matrices of ones, and how many floating-point operations they are.
  """
  found = list(_dots(jax.make_jaxpr(function)(*args).jaxpr))
  shapes = [[v.aval for v in equation.invars] for equation, _ in found]

  def compute(operands):
    return [
      [
        jax.lax.dot_general(*(x + i for x in pair), **equation.params)
        for i in range(times)
      ]
      for (equation, times), pair in zip(found, operands, strict=True)
    ]

  operands = [[jnp.ones(a.shape, a.dtype) for a in pair] for pair in shapes]
  program = jax.jit(compute).lower(operands).compile()
  return lambda: program(operands), _operations(found)


def _operations(found: list[tuple[Any, int]]) -> float:
  total = 0
  for equation, times in found:
    (contracted, _), _ = equation.params['dimension_numbers']
    left = equation.invars[0].aval.shape
    inner = 1
    for axis in contracted:
      inner *= left[axis]
    total += 2 * times * equation.outvars[0].aval.size * inner
  return total
