"""Accuracy on pairs of strings at edit distance 1, by length.

Uniform strings outside a language are mostly far from it; those are on its
border, as the adversarial test sets of MLRegTest (van der Poel et al., 2023).
"""

import chex
import jax
import numpy as np

from experiments.engine import progress
from experiments.formal import config as config_lib
from experiments.formal import models, range_evaluation, string_evaluation
from tasks import task as task_lib
from tasks.regular import pairs, regular_task

# What the results are called.
NAME = 'adversarial'
# Lengths whose pairs are drawn together.
_AT_ONCE = 32


def check(task: task_lib.GeneralizationTask, longest: int) -> None:
  """Checks that a task's pairs can be drawn.

  Raises:
    ValueError: If the task is not regular, if its machine is too large, or if
      not all strings are the task's.
  """
  if not isinstance(task, regular_task.RegularTask):
    raise ValueError(
      f'{type(task).__name__} has no automaton, by which to draw pairs of'
      ' strings at edit distance 1; regular languages have one.'
    )
  if not task.takes_all_strings:
    raise ValueError(
      f'{type(task).__name__} does not take all strings, so that one edit makes'
      ' most of its strings none of them.'
    )
  pairs.check(task.machine, longest)


def evaluate(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  params: chex.ArrayTree,
) -> np.ndarray:
  """Returns the accuracy of every run at every length, float [R, lengths].

  All runs are tested on the same pairs, which depend on the task, the length
  and their number alone. A pair's length is that of its longer string.

  Args:
    experiment: Says the lengths and the number of strings of each.
    task: What to test on.
    model: What to test.
    params: Its parameters, [R, ...].

  Returns:
    Column i is length i + 1; NaN where that is not tested, or has no pair.

  Raises:
    ValueError: As `check`.
  """
  longest = experiment.max_range_test_length
  check(task, longest)
  sampler = pairs.PairSampler(task.machine, longest)
  lengths = range(experiment.min_range_test_length, longest + 1)
  num_pairs = max(1, experiment.range_test_batch_size // 2)
  num_runs = jax.tree.leaves(params)[0].shape[0]
  accuracies = np.full((num_runs, longest), np.nan)
  is_right = string_evaluation.make(experiment, task, model, params, longest)
  with progress.bar(len(lengths), 0, 'Adversarial', 'length') as bar:
    for start in range(0, len(lengths), _AT_ONCE):
      part = lengths[start : start + _AT_ONCE]
      found = sampler.sample(range_evaluation.TEST_SEED, part, num_pairs)
      for length in part:
        if length in found:
          tokens, answers = found[length]
          right_RxN = is_right(
            tokens.reshape(-1, tokens.shape[-1]), answers.ravel()
          )
          accuracies[:, length - 1] = right_RxN.mean(-1)
        bar.update()
  return accuracies
