"""All that a trained model is tested on: a range of lengths, pairs, files."""

from typing import Any, NamedTuple

import chex
import numpy as np

from experiments.engine import progress
from experiments.formal import (
  adversarial,
  models,
  range_evaluation,
  string_evaluation,
)
from experiments.formal import config as config_lib
from experiments.formal import strings as strings_lib
from tasks import task as task_lib
from tasks.strings import strings_task


class Test(NamedTuple):
  """What R runs did on one kind of strings.

  Attributes:
    accuracy: Float [R, lengths]; column i is length i + 1, NaN where it is not
      tested.
    answers: See `range_evaluation.Found`; None of pairs, which have different
      answers.
    files: Of a file of strings, what `summarize` says of each run.
  """

  accuracy: np.ndarray
  answers: np.ndarray | None = None
  files: list[dict[str, Any]] | None = None


def best_constant(test: Test, training_length: int) -> float | None:
  """Returns the score of the best model that always gives one answer.

  Args:
    test: Of whose answers it is.
    training_length: The score is the mean beyond it; where nothing longer is
      tested, over all lengths. That of a file is over its strings.
  """
  if test.answers is None:
    return None
  if test.files:
    found = test.files[0]
    of_labels = [label['strings'] for label in found['by_label'].values()]
    return max(of_labels) / found['strings']
  scores = [
    range_evaluation.score(shares, training_length) for shares in test.answers
  ]
  if None in scores:
    scores = [range_evaluation.mean(shares) for shares in test.answers]
  return max(scores)


def names(experiment: config_lib.Experiment) -> list[str]:
  """Returns what `evaluate` calls its tests."""
  files = list(experiment.test_strings)
  if experiment.has_strings_alone:
    files = files[1:]
  return ['', *([adversarial.NAME] if experiment.adversarial else []), *files]


def named(test: str, kind: str) -> str:
  """Returns the name of a test of a kind, where a task has several tests."""
  return ', '.join(filter(None, (test, kind)))


def evaluate(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  params: chex.ArrayTree,
) -> dict[str, Test]:
  """Returns what a model does on all that an experiment tests on, by its name.

  The first is the task's own strings at every length, named ''; then come pairs
  at edit distance 1, `adversarial.NAME`, and each file of strings, by its path.
  If strings are all that is known of the language, the first file is the first.

  Args:
    experiment: Says on what.
    task: Its task.
    model: What to test.
    params: Its parameters, [R, ...].

  Raises:
    ValueError: As `strings.load_tests` and `adversarial.evaluate`.
  """
  files = strings_lib.load_tests(experiment, task)
  tests = {}
  if not experiment.has_strings_alone:
    tests[''] = Test(
      *range_evaluation.evaluate(experiment, task, model, params)
    )
  if experiment.adversarial:
    tests[adversarial.NAME] = Test(
      adversarial.evaluate(experiment, task, model, params)
    )
  if files:
    _, labels = strings_lib.symbols_and_labels(experiment, task)
    is_right = string_evaluation.make(
      experiment, task, model, params, max(map(max, files.values()))
    )
    for path, groups in files.items():
      tests[path if tests else ''] = _of_file(path, groups, labels, is_right)
  return tests


def _of_file(path, groups: strings_task.Groups, labels, is_right) -> Test:
  found = []
  with progress.bar(len(groups), 0, path, 'length') as bar:
    for group in groups.values():
      found.append(is_right(*group))
      bar.update()
  right_RxN = np.concatenate(found, axis=-1)
  lengths_N = np.repeat(list(groups), [len(g.answers) for g in groups.values()])
  answers_N = np.concatenate([group.answers for group in groups.values()])
  is_answer_KxN = answers_N == np.arange(len(labels))[:, None]
  return Test(
    *(
      string_evaluation.by_length(x, lengths_N, max(groups))
      for x in (right_RxN, is_answer_KxN)
    ),
    [
      {'file': path, **summarize(right_N, lengths_N, answers_N, labels)}
      for right_N in right_RxN
    ],
  )


def summarize(
  right_N: np.ndarray,
  lengths_N: np.ndarray,
  answers_N: np.ndarray,
  labels: list[str],
) -> dict[str, Any]:
  """Returns the numbers of one run on the strings of a file.

  Args:
    right_N: Whether its answers are right.
    lengths_N: The strings' lengths.
    answers_N: Their classes.
    labels: How these are called.

  Returns:
    `strings`, their number; `accuracy`; `balanced_accuracy`, the mean of the
    accuracies of the classes that are there; `by_label`; and the same again
    `by_length`.
  """

  def numbers(rows):
    by_label = {
      labels[k]: {
        'strings': int((answers_N[rows] == k).sum()),
        'accuracy': float(right_N[rows][answers_N[rows] == k].mean()),
      }
      for k in np.unique(answers_N[rows])
    }
    accuracies = [values['accuracy'] for values in by_label.values()]
    return {
      'strings': len(right_N[rows]),
      'accuracy': float(right_N[rows].mean()),
      'balanced_accuracy': float(np.mean(accuracies)),
      'by_label': by_label,
    }

  return {
    **numbers(slice(None)),
    'by_length': {
      int(length): numbers(lengths_N == length)
      for length in np.unique(lengths_N)
    },
  }
