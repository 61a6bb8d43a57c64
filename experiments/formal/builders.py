"""From an experiment's names to its task, model and curriculum."""

from collections.abc import Callable, Mapping
import difflib
import functools
import inspect
import reprlib
from typing import Any

import jax
import jax.numpy as jnp

from experiments.engine import errors, parameters, progress
from experiments.formal import (
  automata,
  blame,
  buckets,
  data,
  model_checks,
  models,
  modules,
  registries,
  strings,
  task_checks,
  token_models,
)
from experiments.formal import config as config_lib
from experiments.formal import curriculum as curriculum_lib
from tasks import task as task_lib
from tasks.automata import fields as fields_lib
from tasks.automata import regex as regex_lib
from tasks.regular import automaton_task, prefixes, regular_task

# Strings are labelled, pairs differ, in one answer.
_OF_ONE_ANSWER = ('strings', 'test_strings', 'adversarial')
_SOURCES_TOGETHER = (['regex', 'strings'], ['automaton', 'strings'])


def _lookup(kind: str, name: str, registry: Mapping[str, Any]) -> Any:
  if name not in registry:
    like = difflib.get_close_matches(str(name), registry, 1)
    raise ValueError(
      f'Unknown {kind} {name!r}{f", perhaps {like[0]}" if like else ""}; the'
      f' known ones are {", ".join(sorted(registry))}.'
    )
  return registry[name]


def _build(kind: str, builder: Callable[..., Any], params: Mapping[str, Any]):
  """Calls a builder with a user's parameters, and explains what is wrong."""
  kinds = parameters.kinds(builder)
  parameters.check_names(f'{kind}_params', params, f'this {kind}', kinds)
  parameters.check(f'{kind}_params', params, kinds)
  try:
    return builder(**params)
  except ValueError:
    raise
  except Exception as error:  # A user's class may raise anything.
    raise ValueError(
      f'{kind}_params {reprlib.repr(dict(params))}: {error}; the arguments are'
      f' {", ".join(kinds) or "none"}.'
    ) from error


def make_task(
  experiment: config_lib.Experiment,
) -> task_lib.GeneralizationTask:
  """Returns the experiment's task.

  Raises:
    ValueError: If it is unknown or its parameters are wrong, or if a user's own
      does not do what it says.
  """
  task = _make_task(experiment)
  if experiment.answers == 'last':
    return task
  if not isinstance(task, regular_task.RegularTask):
    raise ValueError(
      f'--answers={experiment.answers} is for tasks of an automaton;'
      f' {type(task).__name__} has none.'
    )
  for name in _OF_ONE_ANSWER:
    if getattr(experiment, name):
      raise ValueError(
        f'--{name} is for one answer a string, not for'
        f' --answers={experiment.answers}.'
      )
  return prefixes.Prefixes(task)


def _make_task(experiment):
  sources = [
    name
    for name in ('task_module', *config_lib.SOURCES)
    if getattr(experiment, name)
  ]
  # Strings may train what an automaton tests.
  if len(sources) > 1 and sources not in _SOURCES_TOGETHER:
    raise ValueError(f'Give only one of {" and ".join(sources)}.')
  unused = {'task': config_lib.Experiment.task, 'task_params': {}}
  config_lib.check_source(
    vars(experiment),
    [name for name in unused if getattr(experiment, name) != unused[name]],
  )
  is_other_target = experiment.target != config_lib.Experiment.target
  if is_other_target and not (experiment.regex or experiment.automaton):
    raise ValueError('--target is for --regex or --automaton.')
  if is_other_target and experiment.strings:
    raise ValueError('--target is not for --strings.')
  is_other_alphabet = experiment.alphabet != config_lib.Experiment.alphabet
  if is_other_alphabet and not experiment.regex:
    raise ValueError('--alphabet is for --regex.')
  if experiment.regex:
    alphabet = automata.read_alphabet(experiment.alphabet, experiment.regex)
    automaton = regex_lib.from_regex(experiment.regex, alphabet)
    return automaton_task.AutomatonTask(automaton, experiment.target)
  if experiment.automaton:
    automaton = fields_lib.to_automaton(experiment.automaton)
    return automaton_task.AutomatonTask(automaton, experiment.target)
  if experiment.strings:
    return strings.make_task(experiment)
  if experiment.task_module:
    return _users_task(experiment)
  builder = _lookup('task', experiment.task, registries.TASK_BUILDERS)
  return _build('task', builder, experiment.task_params)


def make_test_task(
  experiment: config_lib.Experiment, trained: config_lib.Experiment
) -> task_lib.GeneralizationTask:
  """Returns the task of an experiment that tests what another trained.

  Raises:
    ValueError: As `make_task`, or if its symbols or answers are not as many.
  """
  task = make_task(experiment)
  if experiment.task_params != trained.task_params:
    check_sizes(task, make_task(trained))
  return task


def check_sizes(
  task: task_lib.GeneralizationTask, trained: task_lib.GeneralizationTask
) -> None:
  """Checks that a model of a task can be tested on another.

  Raises:
    ValueError: If their symbols or answers are not as many.
  """
  sizes, others = ((one.input_size, one.output_size) for one in (trained, task))
  if sizes != others:
    raise ValueError(
      'The task of the test has {} input symbols and {} answers, that of the'
      ' training {} and {}.'.format(*others, *sizes)
    )


def _users_task(
  experiment: config_lib.Experiment,
) -> task_lib.GeneralizationTask:
  """Returns a task of the user's own, which does what it says."""
  builder = _task_class(experiment.task_module, experiment.task)
  params = experiment.task_params
  kinds = parameters.kinds(builder)
  parameters.check('task_params', params, kinds)
  where = f'{builder.__name__}({", ".join(kinds)}), task_params {params}'
  with blame.blamed(where):
    task = builder(**params)
  shortest, _ = make_curriculum(experiment).bounds(experiment.training_steps)
  task_checks.check(
    task,
    experiment.batch_size,
    experiment.sequence_length,
    min(shortest, experiment.min_range_test_length),
  )
  return task


def _task_class(module_name: str, name: str) -> Any:
  """Returns the class of a user's own task."""
  classes = modules.find(
    'task_module',
    module_name,
    'task: a class with sample_batch, input_size and output_size',
    lambda value: (
      inspect.isclass(value)
      and hasattr(value, 'sample_batch')
      and hasattr(value, 'input_size')
      and hasattr(value, 'output_size')
      and not inspect.isabstract(value)
    ),
  )
  return _chosen('task', module_name, name, classes)


def _chosen(
  kind: str, module_name: str, name: str, found: Mapping[str, Any]
) -> Any:
  """Returns the one that a field names; it may not, where there is one."""
  is_given = name != getattr(config_lib.Experiment, kind)
  if len(found) == 1 and not is_given:
    return next(iter(found.values()))
  if not is_given and name not in found:
    raise ValueError(
      f'{module_name} has several: give --{kind}, one of'
      f' {", ".join(sorted(found))}.'
    )
  return _lookup(f'{kind} of {module_name}', name, found)


def make_task_and_model(
  experiment: config_lib.Experiment,
) -> tuple[task_lib.GeneralizationTask, models.Model]:
  """Returns the experiment's task and model.

  Raises:
    ValueError: As `make_task` and `make_model`.
  """
  task = make_task(experiment)
  return task, make_model(experiment, task)


def make_model(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> models.Model:
  """Returns the experiment's model.

  Raises:
    ValueError: If it is unknown or a hyperparameter is out of range, or if a
      user's own is not what it must be.
  """
  if experiment.model_module:
    return _users_model(experiment, task)
  builder = _lookup(
    'architecture', experiment.architecture, registries.MODEL_BUILDERS
  )
  try:
    model = builder(experiment, task)
    # A core looks at its arguments when it is traced: better now than later.
    params = jax.eval_shape(model.init, jax.random.key(0))
    width = 2
    target = jnp.ones(data.target_shape(task, 1, width))
    jax.eval_shape(model.apply, params, jnp.zeros((1, width), int), target)
  except ValueError:
    raise
  except Exception as error:  # Cores divide by their sizes, index, and so on.
    raise ValueError(
      f'architecture_params {experiment.architecture_params}:'
      f' {errors.first_line(error)}'
    ) from error
  return model


def _users_model(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> models.Model:
  """Returns a model of the user's own, which is what it must be."""
  found = modules.find(
    'model_module',
    experiment.model_module,
    f'model: {token_models.KINDS}',
    token_models.is_builder,
  )
  builder = _chosen(
    'architecture', experiment.model_module, experiment.architecture, found
  )
  model = token_models.make(builder, experiment, task)
  longest = (experiment.sequence_length, experiment.longest_tested)
  widths = [bucket_widths(experiment, task, model, n)[-1] for n in longest]
  with progress.timed(f'Checking {builder.__name__}'):
    model_checks.check(
      builder.__name__, model, task, widths, experiment.is_autoregressive
    )
  return model


def make_curriculum(
  experiment: config_lib.Experiment,
) -> curriculum_lib.Curriculum:
  """Returns the experiment's curriculum, on lengths to `sequence_length`.

  By default on those of its strings, where it has some, each as often as it is
  there. Its seed is an argument of its own, 0 by default, and not the
  experiment's: runs that differ in the latter train on strings of the same
  lengths.

  Raises:
    ValueError: If it is unknown, its parameters are wrong, or it draws lengths
      that there are not.
  """
  name = experiment.curriculum
  longest = experiment.sequence_length
  values = range(1, longest + 1)
  if experiment.strings:
    values = strings.training_lengths(experiment)
  defaults = {
    'fixed': {'sequence_length': longest},
    'uniform': {'values': values},
    'reverse_exponential': {'values': values, 'tau': 0.9},
    'regular_increase': {
      'initial_sequence_length': min(values),
      'increase_frequency': max(1, experiment.training_steps // longest),
      'increase_amount': 1,
      'sample_all_length': True,
      'max_sequence_length': longest,
    },
  }
  builder = _lookup('curriculum', name, registries.CURRICULUM_BUILDERS)
  builder = functools.partial(builder, **defaults.get(name, {}))
  curriculum = _build('curriculum', builder, experiment.curriculum_params)
  shortest, longest_drawn = curriculum.bounds(experiment.training_steps)
  if shortest < 1 or longest_drawn > longest:
    raise ValueError(
      f'The curriculum draws lengths {shortest}..{longest_drawn}, which are not'
      f' within 1..sequence_length ({longest}).'
    )
  if experiment.strings:
    drawn = curriculum.lengths(experiment.training_steps)
    strings.check_lengths(experiment, drawn)
  return curriculum


def trained_bounds(experiment: config_lib.Experiment) -> tuple[int, int]:
  """Returns the shortest and the longest training string's length."""
  return make_curriculum(experiment).bounds(experiment.training_steps)


def longest_trained(experiment: config_lib.Experiment) -> int:
  """Returns the longest training string's length."""
  return trained_bounds(experiment)[1]


def bucket_widths(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  longest: int,
) -> tuple[int, ...]:
  """Returns the bucket widths that strings of lengths 1..longest need."""
  widest = max(
    data.input_length(task, length) for length in range(1, longest + 1)
  )
  return buckets.bucket_widths(
    widest, model.bucket_base, experiment.smallest_bucket
  )
