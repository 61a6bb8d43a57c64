"""Sweeps: runs that train together against the same runs one after another.

python -m benchmarks.sweep
"""

import dataclasses
import tempfile
import time

from absl import flags
import jax

from benchmarks import timing
from experiments.formal import builders, training
from experiments.sweeps import grid, presets, sweep

_DIM = flags.DEFINE_integer('embedding_dim', 256, 'Width of the model.')
_RUNS = flags.DEFINE_integer('runs', 9, 'Number of runs.')
_STEPS = flags.DEFINE_integer('steps', 100, 'Steps of the end-to-end table.')
_TIMED_STEPS = flags.DEFINE_integer(
  'timed_steps', 100, 'Steps of the table without start and compilation.'
)


def _seconds(experiment, runs) -> float:
  """Trains from the start, compilation included."""
  task, model = builders.make_task_and_model(experiment)
  start = time.perf_counter()
  with tempfile.TemporaryDirectory() as workdir:
    training.train(experiment, workdir, task, model, runs)
  return time.perf_counter() - start


def _experiment(steps):
  preset = sweep.narrowed(
    presets.PRESETS['table1'], ['parity_check'], ['regular_gpt_c2']
  )
  (cell,) = grid.cells(preset)
  return dataclasses.replace(
    cell.experiment,
    embedding_dim=_DIM.value,
    training_steps=steps,
    checkpoint_every=0,
    log_every=0,
  )


def main():
  """Prints the tables."""
  runs = [(3e-4, seed, seed) for seed in range(_RUNS.value)]
  short = _experiment(_STEPS.value)
  together = _seconds(short, runs)
  one_by_one = sum(_seconds(short, [run]) for run in runs)
  ratio = one_by_one / together
  timing.print_table(
    f'{_RUNS.value} runs, D = {_DIM.value}, {_STEPS.value} steps of lengths'
    ' 1..40, compilation included',
    ['how', 's', 'ratio'],
    [
      ['together', f'{together:.1f}', ''],
      [
        'one after another',
        f'{one_by_one:.1f}',
        f'{ratio:.1f}',
      ],
    ],
  )
  rows = []
  long = _experiment(_STEPS.value + _TIMED_STEPS.value)
  for some in (runs, runs[:1]):
    # What the longer one takes beyond the shorter is steps alone.
    with tempfile.TemporaryDirectory() as cache:
      jax.config.update('jax_compilation_cache_dir', cache)
      _seconds(short, some)
      extra = min(_seconds(long, some) for _ in range(2)) - min(
        _seconds(short, some) for _ in range(2)
      )
    rate = _TIMED_STEPS.value / extra
    rows.append([len(some), f'{rate:.1f}', f'{rate * len(some):.0f}'])
  timing.print_table(
    f'Steps alone, D = {_DIM.value}',
    ['runs', 'steps/s', 'run-steps/s'],
    rows,
  )


if __name__ == '__main__':
  timing.run(main)
