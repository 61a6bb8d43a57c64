"""What a model reads besides a string: computation tokens, empty ones, answers.

As in the benchmark (Deletang et al., 2023); `regulargpt_jax.baselines.wrappers`
says where each of them stands.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from experiments.formal import config as config_lib
from experiments.formal import data
from regulargpt_jax.baselines import strings, wrappers
from tasks import task as task_lib


def reads_input_alone(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> bool:
  """Whether a model's one answer is read off the input's last position."""
  return data.is_single_output(task) and _reads_no_more(experiment)


def reads_in_place(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> bool:
  """Whether a model's answers are read off the input's own positions."""
  in_place = getattr(task, 'answers_in_place', False)
  return in_place and _reads_no_more(experiment)


def _reads_no_more(experiment: config_lib.Experiment) -> bool:
  return not (experiment.is_autoregressive or experiment.computation_steps_mult)


def num_kinds(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> int:
  """Returns how many kinds of token a model reads: symbols, and empty ones."""
  num_symbols = task.input_size
  if reads_input_alone(experiment, task) or reads_in_place(experiment, task):
    return num_symbols
  if experiment.is_autoregressive:
    num_symbols = max(num_symbols, task.output_size)
  return num_symbols + 1 + (experiment.computation_steps_mult > 0)


def with_tokens(
  model: Callable[..., jax.Array],
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  reads_targets: bool = False,
) -> Callable[[jax.Array, jax.Array, bool], jax.Array]:
  """Returns f(inputs, targets, sample), a model that reads some tokens more.

  Args:
    model: f(x, input_length) of one-hot strings, returns all outputs; for
      `hk.transform`.
    experiment: Says what it reads after the inputs.
    task: What it is for.
    reads_targets: Whether it is f(inputs, targets), an encoder-decoder.
  """
  is_single = data.is_single_output(task)

  def read(x, y, sample):
    if reads_targets and not experiment.is_autoregressive:
      # Its decoder reads empty tokens: rows that say only where they are.
      empty = data.present(y)[..., None] * jnp.ones_like(y)
      logits = model(x, empty)
      return logits[:, 0] if is_single else logits
    if reads_in_place(experiment, task):
      logits = model(x, input_length=strings.num_symbols(x))
      return jnp.where(strings.is_symbol(x)[..., None], logits, 0)
    if not experiment.is_autoregressive:
      return wrappers.make_model_with_empty_targets(
        model, task, experiment.computation_steps_mult, is_single
      )(x)
    with_targets = model
    if not reads_targets:
      with_targets = wrappers.make_model_with_targets_as_input(
        model, experiment.computation_steps_mult
      )
    return wrappers.add_sampling_to_autoregressive_model(
      with_targets, is_single
    )(x, y, sample)

  return read
