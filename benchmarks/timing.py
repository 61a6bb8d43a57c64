"""What the benchmarks share: how they are run, timed and shown."""

from collections.abc import Callable, Sequence
import sys
import time
from typing import Any

from absl import app, flags, logging
import jax
import jax.numpy as jnp

from experiments.engine import (
  allocation,
  devices,
  errors,
  programs,
  progress,
  tables,
)
from experiments.formal import builders, config, data, training

_ROUNDS = flags.DEFINE_integer(
  'rounds',
  5,
  'Repetitions of what is timed in turns; medians are shown.',
  # So that the --help of the benchmark shows it.
  module_name=sys.argv[0],
)


def run(main: Callable[[], None]) -> None:
  """Reads the flags of the command line and runs a benchmark."""

  def run_main(argv):
    if len(argv) > 1:
      raise app.UsageError('Unexpected arguments.')
    # JAX names devices that it lacks, and checkpoints have much to say.
    logging.set_verbosity(logging.ERROR)
    allocation.keep_freed()  # As launchers do.
    try:
      main()
    except ValueError as error:
      sys.exit(f'Error: {errors.said(error)}')

  app.run(run_main)


def training_step(
  experiment: config.Experiment, width: int
) -> tuple[Callable[..., Any], tuple]:
  """Returns a training step of one run, to be compiled, and its arguments.

  It has the experiment's options of compiling, and a constant learning rate;
  extra levels and losses of nodes are left out.

  Args:
    experiment: Whose longest strings are trained on.
    width: What they are padded to.
  """
  task, model = builders.make_task_and_model(experiment)
  source = data.make_source(task, experiment.batch_size, [width])
  arguments = (
    training.init_state(experiment, model),
    training.make_runs([experiment.run]),
    jnp.int32(experiment.sequence_length),
  )
  mesh = devices.make_mesh(1, experiment.batch_size)
  step = training.make_step(task, source, model, mesh, width)
  return jax.jit(step, compiler_options=programs.quick_options()), arguments


def compiled(
  what: str, function: Callable[..., Any], *args
) -> tuple[Any, float]:
  """Returns a compiled function and the seconds that compiling took.

  Args:
    what: The function, as people are told of it.
    function: One that is jitted already keeps its options.
    *args: Of a call.
  """
  jitted = function if hasattr(function, 'lower') else jax.jit(function)
  with progress.timed(f'Compiling {what}'):
    start = time.perf_counter()
    program = jitted.lower(*args).compile()
    return program, time.perf_counter() - start


def num_rounds() -> int:
  """Returns what --rounds says, the turns that `interleaved` gives."""
  return _ROUNDS.value


def interleaved(
  programs: Sequence[Callable[[], Any]],
  rounds: int | None = None,
  calls: int = 1,
) -> list[float]:
  """Returns the median seconds of a call of each program.

  The programs take turns, so that a machine whose speed drifts slows all of
  them alike and their ratios hold.

  Args:
    programs: Functions without arguments; what they return is waited for.
    rounds: Turns each program gets, after one that does not count; by default
      `num_rounds`.
    calls: Calls in a turn.
  """
  if rounds is None:
    rounds = num_rounds()
  times = [[] for _ in programs]
  with progress.bar(rounds + 1, 0, 'Timing', 'round') as bar:
    for turn in range(rounds + 1):
      for program, samples in zip(programs, times, strict=True):
        start = time.perf_counter()
        for _ in range(calls):
          result = program()
        jax.block_until_ready(result)
        if turn:
          samples.append((time.perf_counter() - start) / calls)
      bar.update()
  return [sorted(samples)[len(samples) // 2] for samples in times]


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence]):
  """Prints a table in Markdown."""
  device = jax.devices()[0].device_kind
  print(f'\n{title} (jax {jax.__version__}, {device})\n')
  print(tables.markdown(header, [list(map(str, row)) for row in rows]))
