"""Whether an experiment fits into the memory there is, before it starts."""

from collections.abc import Sequence

import jax.numpy as jnp

from experiments.engine import devices, estimates
from experiments.formal import adversarial, models, reading, training
from experiments.formal import config as config_lib
from regulargpt_jax import chunk_table, lookup
from tasks import task as task_lib

# Vectors that a model makes at once at each place: in a test, and in training,
# where they are kept for the backward pass. Measured: at least twice as many.
_VECTORS, _VECTORS_KEPT = 2, 8
# Rows of a table that the tests share, at most.
_MAX_TEST_ROWS = 2**30


def check(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  num_runs: int = 1,
) -> None:
  """Checks that training and evaluation can fit.

  Args:
    experiment: What is to be done.
    task: Its task.
    model: Its model.
    num_runs: How many train together.

  Raises:
    ValueError: If not even what is needed at least fits.
  """
  state = training.state_shapes(experiment, model, num_runs)
  runs = f' of {num_runs} runs' if num_runs > 1 else ''
  if experiment.training_steps:
    fewer = 'model' + (', or fewer seeds' if runs else '')
    estimates.check_state(state, 1, fewer, runs)
    mesh = devices.make_mesh(num_runs, experiment.batch_size)
    estimates.check(
      f'{experiment.batch_size:,} strings of up to'
      f' {experiment.sequence_length:,} symbols',
      experiment.batch_size
      * (num_runs / mesh.size)
      * _string_bytes(
        experiment,
        task,
        model,
        experiment.sequence_length,
        is_training=True,
      ),
      'batch_size, sequence_length or model',
    )
  check_evaluation(experiment, task, model, num_runs)


def check_evaluation(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  num_runs: int = 1,
  sizes: Sequence[str] = ('range_test_batch_size', 'max_range_test_length'),
) -> None:
  """Checks that the evaluation of a model can fit.

  Args:
    experiment: What is to be done.
    task: Its task.
    model: Its model.
    num_runs: How many are evaluated together.
    sizes: What to choose smaller where it does not, beside the model.

  Raises:
    ValueError: As `check`, or if there can be no adversarial pairs.
  """
  longest = experiment.longest_tested
  if experiment.adversarial:
    adversarial.check(task, experiment.max_range_test_length)
  batch_size = experiment.range_test_batch_size
  what = f'test strings of up to {longest:,} symbols'
  mesh = devices.make_mesh(num_runs, experiment.batch_size)
  estimates.check(
    f'{batch_size:,} {what}',
    batch_size / mesh.shape['data'] * longest * estimates.TOKEN_BYTES,
    ' or '.join(sizes),
  )
  at_once = model.tested_at_once(batch_size, longest)
  estimates.check(
    f'{at_once:,} {what}',
    at_once
    / mesh.shape['data']
    * _string_bytes(experiment, task, model, longest),
    f'{", ".join(sizes)} or model',
  )


def _string_bytes(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  length: int,
  is_training: bool = False,
) -> int:
  """Returns the bytes that a model needs for a string, at least.

  Args:
    experiment: Says what the model reads.
    task: Its task.
    model: The model. RegularGPT, where it gives one answer, reads short strings
      off a table; others have a vector at every symbol.
    length: Of the string.
    is_training: Whether what a model makes of a string is kept for the
      backward pass.
  """
  width = model.width
  num_read = models.num_read(experiment, task, length)
  num_vectors = num_read
  is_tree = reading.reads_input_alone(experiment, task)
  if model.config is not None and is_tree:
    span = 1
    max_rows = lookup.MAX_ONE_HOT_ROWS if is_training else _MAX_TEST_ROWS
    while span < length and max_rows >= chunk_table.num_strings(
      task.input_size, span * model.config.chunk_size
    ):
      span *= model.config.chunk_size
    num_vectors = -(-length // span)
  num_bytes = jnp.dtype(experiment.precision).itemsize
  num_vectors *= _VECTORS_KEPT if is_training else _VECTORS
  numbers = num_vectors * width + num_read**2 * model.heads
  return num_read * estimates.TOKEN_BYTES + numbers * num_bytes
