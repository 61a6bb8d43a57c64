"""Which of given strings a model answers rightly."""

from collections.abc import Callable, Sequence

import chex
import jax
import numpy as np

from experiments.engine import devices, programs
from experiments.formal import (
  buckets,
  builders,
  models,
  range_evaluation,
  training,
)
from experiments.formal import config as config_lib
from tasks import task as task_lib


def make(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  params: chex.ArrayTree,
  longest: int,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
  """Returns f(tokens [N, T], answers [N]) -> whether they are right, [R, N].

  Args:
    experiment: Says how many strings are tested at once.
    task: Of one answer a string.
    model: What to test.
    params: Its parameters, [R, ...].
    longest: T is at most this; tokens are right-aligned.
  """
  num_runs = jax.tree.leaves(params)[0].shape[0]
  mesh = devices.make_mesh(num_runs, experiment.batch_size)
  widths = builders.bucket_widths(experiment, task, model, longest)
  tests = programs.Programs(
    'the test of strings of up to {} symbols',
    lambda width: _make_test(task, model, mesh),
    out_shardings=devices.sharding(mesh, 'run'),
  )
  at_once = experiment.range_test_batch_size

  def is_right(tokens, answers):
    width = buckets.bucket_of(tokens.shape[1], widths)
    found = []
    for start in range(0, len(tokens), at_once):
      part = tokens[start : start + at_once]
      padding = ((0, at_once - len(part)), (width - tokens.shape[1], 0))
      found.append(
        tests(
          width,
          params,
          np.pad(part, padding, constant_values=task_lib.NO_SYMBOL),
          np.pad(answers[start : start + at_once], padding[0]),
        )
      )
    whole = np.concatenate(devices.fetch(found), axis=-1)
    return whole[:, : len(tokens)] > 0.5

  return is_right


def _make_test(
  task: task_lib.GeneralizationTask,
  model: models.Model,
  mesh: jax.sharding.Mesh,
) -> Callable[..., jax.Array]:
  """Returns f(params, tokens [B, W], answers [B]) -> 1.0 where right [R, B]."""

  def test(params, tokens, answers):
    batch = devices.divided(
      mesh, (tokens, jax.nn.one_hot(answers, task.output_size))
    )

    def of_run(params):
      def part_is_right(part):
        tokens, target = part
        logits = model.apply(params, tokens, target, is_test=True)
        return training.is_right(task, logits, target)

      parts = range_evaluation.in_parts(part_is_right, batch, model)
      return parts.swapaxes(0, 1).reshape(len(tokens))

    num_runs = len(jax.tree.leaves(params)[0])
    return training.map_over_runs(of_run, (0,), 0, num_runs)(params)

  return test


def by_length(
  is_right_RxN: np.ndarray, lengths_N: Sequence[int], longest: int
) -> np.ndarray:
  """Returns accuracies [R, longest]; column i is length i + 1, NaN for none."""
  accuracies = np.full((len(is_right_RxN), longest), np.nan)
  for length in np.unique(lengths_N):
    accuracies[:, length - 1] = is_right_RxN[:, lengths_N == length].mean(-1)
  return accuracies
