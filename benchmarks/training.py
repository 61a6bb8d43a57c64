"""Training: what a step costs, and what logging costs.

python -m benchmarks.training
"""

import dataclasses
import functools
import tempfile
import time

from absl import flags
import jax

from benchmarks import products, timing
from experiments.formal import builders, config, training

_DIM = flags.DEFINE_integer('embedding_dim', 256, 'Width of the model.')
_STEPS = flags.DEFINE_integer(
  'steps', 200, 'Steps timed for the logging table.'
)


def _step_cost():
  """One training step at T = 40."""
  rows = []
  for name in ('parity_check', 'cycle_navigation', 'modular_arithmetic'):
    experiment = config.Experiment(task=name, embedding_dim=_DIM.value)
    step_fn, arguments = timing.training_step(experiment, 40)
    step, compile_s = timing.compiled(
      f'a training step of {name}', step_fn, *arguments
    )
    only_products, operations = products.alone(step_fn, *arguments)
    step_s, products_s = timing.interleaved(
      [functools.partial(step, *arguments), only_products], calls=5
    )
    rows.append(
      [
        name,
        f'{compile_s:.1f}',
        f'{step_s * 1e3:.2f}',
        f'{products_s * 1e3:.2f}',
        f'{step_s / products_s:.2f}',
        f'{operations / products_s / 1e9:.0f}',
      ]
    )
  timing.print_table(
    f'A training step, D = {_DIM.value}, batch 128, T = 40',
    [
      'task',
      'compile s',
      'step ms',
      'its products alone ms',
      'ratio',
      'products GFLOP/s',
    ],
    rows,
  )


def _logging_cost():
  """Steps per second with a logging point every step, every 100, never."""
  rows = []
  experiment = config.Experiment(
    embedding_dim=_DIM.value, training_steps=_STEPS.value, checkpoint_every=0
  )
  task, model = builders.make_task_and_model(experiment)
  seconds = {}
  # The first one compiles; with JAX's cache on, the others do not.
  for log_every in (0, 1, 100, 0):
    with tempfile.TemporaryDirectory() as workdir:
      start = time.perf_counter()
      training.train(
        dataclasses.replace(experiment, log_every=log_every),
        workdir,
        task,
        model,
      )
      seconds[log_every] = time.perf_counter() - start
  for log_every in (1, 100, 0):
    rows.append(
      [log_every or 'never', f'{_STEPS.value / seconds[log_every]:.1f}']
    )
  timing.print_table(
    f'Logging, D = {_DIM.value}, lengths 1..40, start and end included',
    ['a logging point every', 'steps/s'],
    rows,
  )


def main():
  """Prints the tables."""
  with tempfile.TemporaryDirectory() as cache:
    jax.config.update('jax_compilation_cache_dir', cache)
    _step_cost()
    _logging_cost()


if __name__ == '__main__':
  timing.run(main)
