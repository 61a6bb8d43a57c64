"""Whether an experiment fits into the memory there is, before it starts."""

from experiments.engine import devices, estimates
from experiments.formal import config as config_lib
from experiments.formal import models, training
from tasks import task as task_lib

# Arrays of the parameters' size in a step, at least: these, two moments of
# Adam, and the gradient.
_COPIES = 4


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
  parameters = estimates.of_arrays(state.params)
  runs = f' of {num_runs} runs' if num_runs > 1 else ''
  if experiment.training_steps:
    estimates.check(
      f'The parameters{runs}, their gradients and the state of Adam',
      _COPIES * parameters,
      'model' + (', or fewer seeds' if runs else ''),
    )
    mesh = devices.make_mesh(num_runs, experiment.batch_size)
    estimates.check(
      f'{experiment.batch_size:,} strings of up to'
      f' {experiment.sequence_length:,} symbols',
      experiment.batch_size
      * (num_runs / mesh.size)
      * string_bytes(experiment, task, model, experiment.sequence_length),
      'batch_size, sequence_length or model',
    )
  check_evaluation(experiment, task, model)


def check_evaluation(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
) -> None:
  """Checks that the evaluation of a model can fit.

  Raises:
    ValueError: As `check`.
  """
  longest = experiment.max_range_test_length
  batch_size = experiment.range_test_batch_size
  what = f'test strings of up to {longest:,} symbols'
  mesh = devices.make_mesh(1, experiment.batch_size)
  estimates.check(
    f'{batch_size:,} {what}',
    batch_size / mesh.size * longest * estimates.FLOAT_BYTES,
    'range_test_batch_size or max_range_test_length',
  )
  at_once = min(batch_size, model.sub_batch_size or batch_size)
  estimates.check(
    f'{at_once:,} {what}',
    at_once / mesh.size * string_bytes(experiment, task, model, longest),
    'range_test_batch_size, max_range_test_length or model',
  )


def string_bytes(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  length: int,
) -> int:
  """Returns the bytes that a model needs for a string, at least.

  RegularGPT, where it gives one answer, reads whole chunks off a table; others
  have a vector at every symbol that they read.
  """
  if model.config is not None:
    return (length + model.config.embedding_dim) * estimates.FLOAT_BYTES
  width = experiment.architecture_params.get(
    'hidden_size', experiment.embedding_dim
  )
  num_read = models.num_read(experiment, task, length)
  return num_read * width * estimates.FLOAT_BYTES
