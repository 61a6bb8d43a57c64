"""Accuracy on strings of a few lengths, however long, some strings at a time.

Range evaluation tests every length, all strings of one at once; a string of a
million symbols leaves room for few others.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from experiments.engine import devices, parameters, programs, progress
from experiments.formal import config as config_lib
from experiments.formal import (
  data,
  limits,
  models,
  range_evaluation,
)
from tasks import task as task_lib

# Symbols that a program reads at a time, about.
_MAX_SYMBOLS = 2**22


# Options of which strings a range evaluation tests, and how.
_OF_RANGES = (
  *config_lib.RANGE_FIELDS,
  'adversarial',
  'test_strings',
  'smallest_bucket',
)


def test_experiment(
  experiment: config_lib.Experiment,
  lengths: Sequence[int],
  overrides: Mapping[str, Any],
) -> config_lib.Experiment:
  """Returns the experiment that tests strings of some lengths alone.

  Args:
    experiment: What was trained.
    lengths: The lengths.
    overrides: Other values of its fields; None where not given.

  Raises:
    ValueError: If a length is out of range, a value means nothing for these
      strings, or strings of a file are all that is known.
  """
  for name in _OF_RANGES:
    if overrides.get(name) is not None:
      raise ValueError(
        f'--{name} is not for --lengths: strings of these alone are tested.'
      )
  if experiment.has_strings_alone:
    raise ValueError(
      'lengths is for a task or an automaton; strings of a file have theirs.'
    )
  for length in lengths:
    parameters.check_bounds('lengths', length, 1, config_lib.MAX_LENGTH)
  these = {
    'min_range_test_length': min(lengths),
    'max_range_test_length': max(lengths),
    'adversarial': False,
    'test_strings': {},
  }
  return experiment.replaced(**{**overrides, **these})


def check(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
) -> None:
  """Checks that an experiment's longest strings can be tested.

  Raises:
    ValueError: If one of them needs more memory than there is.
  """
  at_once = _at_once(experiment, experiment.max_range_test_length)
  limits.check_evaluation(
    experiment.replaced(range_test_batch_size=at_once),
    task,
    model,
    sizes=['lengths'],
  )


class Tested(NamedTuple):
  """What strings of a length were tested with.

  Attributes:
    length: As it was asked for.
    num_symbols: Of each string: more or less, where the task has strings of
      some lengths only.
    accuracy: Of the first run, over all strings together.
  """

  length: int
  num_symbols: int
  accuracy: float


def evaluate(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  params: chex.ArrayTree,
  lengths: Sequence[int],
) -> Iterator[Tested]:
  """Yields the accuracy on the strings of each length, once.

  Args:
    experiment: What `test_experiment` returns; it says how many strings there
      are of each length.
    task: What to test on.
    model: What to test.
    params: Its parameters, [R, ...].
    lengths: As `test_experiment` accepts them.
  """
  params = jax.tree.map(lambda x: x[:1], params)
  # That of training, on which the parameters lie.
  mesh = devices.make_mesh(1, experiment.batch_size)
  for length in dict.fromkeys(lengths):
    at_once = _at_once(experiment, length)
    num_parts = experiment.range_test_batch_size // at_once
    width = data.input_length(task, length)
    source = data.make_source(task, at_once, [width])
    test = range_evaluation.make_test(
      task, source, model, mesh, width, min_length=width
    )
    call = None
    num_right = num_counted = 0.0
    with progress.bar(num_parts, 0, f'Length {length:,}', 'part') as bar:
      for part in range(num_parts):
        seed = range_evaluation.TEST_SEED + part
        _, host_data = next(source.stream([seed], [(length, length)]))
        host_data = data.of_one_run(source, host_data)
        arguments = (params, None, np.int32(length), host_data, np.int32(seed))
        if call is None:
          with progress.timed('Compiling the test'):
            call = programs.compiled(
              f'the test of strings of {length:,} symbols',
              jax.jit(test).lower(*arguments),
            )
        accuracy_R, _, counted = devices.fetch(call(*arguments))
        num_right += accuracy_R[0] * counted
        num_counted += counted
        bar.update()
    yield Tested(length, width, float(num_right / max(num_counted, 1)))


def _at_once(experiment: config_lib.Experiment, length: int) -> int:
  """Returns how many strings a program reads, a divisor of all."""
  num_strings = experiment.range_test_batch_size
  at_once = max(1, min(num_strings, _MAX_SYMBOLS // length))
  while num_strings % at_once:
    at_once -= 1
  return at_once
