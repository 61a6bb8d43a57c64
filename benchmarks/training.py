"""Training: what a step costs, what the sampler costs, what logging costs.

python -m benchmarks.training
"""

import dataclasses
import functools
import tempfile
import time

from absl import app, flags
import jax
import jax.numpy as jnp

from benchmarks import timing
from experiments import builders, config, constants, training

_DIM = flags.DEFINE_integer('embedding_dim', 256, 'Width of the model.')
_STEPS = flags.DEFINE_integer(
  'steps', 200, 'Steps timed for the logging table.'
)


def _sampler_share():
  """One training step at T = 40 beside its sampler."""
  rows = []
  for name in constants.TASK_BUILDERS:
    experiment = config.Experiment(task=name, embedding_dim=_DIM.value)
    task = builders.make_task(experiment)
    model = builders.make_model(experiment, task)
    runs = training.make_runs(experiment)
    state = training.init_state(model, runs)

    def sample(seed, task=task, batch_size=experiment.batch_size):
      tokens = task.sample_tokens(jax.random.key(seed), batch_size, 40, 40)
      return tokens, task.solve(tokens)

    step, compile_s = timing.compiled(
      training.make_step(experiment, task, model, 40),
      state,
      runs,
      jnp.int32(40),
    )
    sampler, _ = timing.compiled(sample, jnp.int32(0))
    step_s, sampler_s = timing.interleaved(
      [
        functools.partial(step, state, runs, jnp.int32(40)),
        functools.partial(sampler, jnp.int32(0)),
      ],
      calls=5,
    )
    rows.append(
      [
        name,
        f'{compile_s:.1f}',
        f'{step_s * 1e3:.2f}',
        f'{sampler_s * 1e3:.3f}',
        f'{100 * sampler_s / step_s:.1f}%',
      ]
    )
  timing.print_table(
    f'A training step, D = {_DIM.value}, batch 128, T = 40',
    ['task', 'compile s', 'step ms', 'sampler ms', 'share'],
    rows,
  )


def _logging_cost():
  """Steps per second with a logging point every step, every 100, never."""
  rows = []
  experiment = config.Experiment(
    embedding_dim=_DIM.value, training_steps=_STEPS.value, checkpoint_every=0
  )
  task = builders.make_task(experiment)
  model = builders.make_model(experiment, task)
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


def main(argv):
  """Prints the tables."""
  if len(argv) > 1:
    raise app.UsageError('Unexpected arguments.')
  with tempfile.TemporaryDirectory() as cache:
    jax.config.update('jax_compilation_cache_dir', cache)
    _sampler_share()
    _logging_cost()


if __name__ == '__main__':
  app.run(main)
