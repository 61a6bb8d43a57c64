"""Timing and tables shared by the benchmarks."""

from collections.abc import Callable, Sequence
import time
from typing import Any

import jax


def compiled(function: Callable[..., Any], *args) -> tuple[Any, float]:
  """Returns a compiled function and the seconds that compiling took.

  One that is jitted already keeps its options.
  """
  jitted = function if hasattr(function, 'lower') else jax.jit(function)
  start = time.perf_counter()
  program = jitted.lower(*args).compile()
  return program, time.perf_counter() - start


def interleaved(
  programs: Sequence[Callable[[], Any]], rounds: int = 5, calls: int = 1
) -> list[float]:
  """Returns the median seconds of a call of each program.

  The programs take turns, so that a machine whose speed drifts slows all of
  them alike and their ratios hold.

  Args:
    programs: Functions without arguments; what they return is waited for.
    rounds: Turns each program gets, after one that does not count.
    calls: Calls in a turn.
  """
  times = [[] for _ in programs]
  for turn in range(rounds + 1):
    for program, samples in zip(programs, times, strict=True):
      start = time.perf_counter()
      for _ in range(calls):
        result = program()
      jax.block_until_ready(result)
      if turn:
        samples.append((time.perf_counter() - start) / calls)
  return [sorted(samples)[len(samples) // 2] for samples in times]


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence]):
  """Prints a table in Markdown."""
  device = jax.devices()[0].device_kind
  print(f'\n{title} (jax {jax.__version__}, {device})\n')
  cells = [[str(cell) for cell in row] for row in (header, *rows)]
  widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
  for i, row in enumerate(cells):
    line = ' | '.join(c.ljust(w) for c, w in zip(row, widths, strict=True))
    print(f'| {line} |')
    if i == 0:
      print('|' + '|'.join('-' * (w + 2) for w in widths) + '|')
