"""A page about a task: what it asks, some of its strings, its balance."""

import inspect
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.formal import blame, builders, data, registries
from experiments.formal import config as config_lib
from tasks import task as task_lib

_NUM_EXAMPLES = 5
_LENGTHS = (1, 10, 40, 100)
_EXAMPLE_LENGTH = 10  # One of them.
_NUM_COUNTED = 2048
_NAMES_WIDTH = 27  # In the list, in characters.


def page(**fields: Any) -> str:
  """Returns the page of a task; without a task, the list of all.

  Args:
    **fields: Of the experiment, None where they are not given.

  Raises:
    ValueError: As `describe`, or if fields are given, and none is a task.
  """
  names = ('task', 'task_module', 'regex', 'automaton')
  if any(fields.get(name) for name in names):
    return describe(config_lib.Experiment().replaced(**fields))
  for name, value in fields.items():
    if value is not None:
      raise ValueError(
        f'--{name} needs {" or ".join(f"--{name}" for name in names)}.'
      )
  return list_tasks()


def list_tasks() -> str:
  """Returns all tasks by level of the Chomsky hierarchy, with a sentence.

  Tasks of one sentence share a line.
  """
  titles = {
    'regular': 'Regular',
    'dcf': 'Deterministic context-free',
    'cs': 'Context-sensitive',
  }
  by_level = {level: {} for level in titles}
  for name, builder in registries.TASK_BUILDERS.items():
    sentence = _docstring(builder()).splitlines()[0]
    by_level[registries.TASK_LEVELS[name]].setdefault(sentence, []).append(name)
  lines = []
  for level, title in titles.items():
    lines += ['', title]
    for sentence, names in by_level[level].items():
      lines.append(f'  {", ".join(names):{_NAMES_WIDTH}}  {sentence}')
  return '\n'.join(lines[1:])


def describe(experiment: config_lib.Experiment) -> str:
  """Returns the page of an experiment's task.

  Raises:
    ValueError: If the task is unknown or its parameters are wrong.
  """
  task = builders.make_task(experiment)
  samples = data.samples(task, _NUM_COUNTED, _LENGTHS, experiment.seed)
  batches = dict(zip(_LENGTHS, samples, strict=True))
  lines = [_docstring(task), '', 'Sampled:']
  tokens, target = batches[_EXAMPLE_LENGTH]
  for i in range(_NUM_EXAMPLES):
    lines.append(f'  {_string(task, tokens[i])} -> {_answer(target[i])}')
  chance = 1 / task.output_size
  lines += [
    '',
    f'Chance level, a uniform guess: {chance:.4f}',
    'Share of each output symbol:',
    '  length  ' + '  '.join(f'{i:>6}' for i in range(task.output_size)),
  ]
  for length in _LENGTHS:
    _, target = batches[length]
    with blame.blamed(blame.method(task, 'accuracy_mask', length)):
      mask = task.accuracy_mask(jnp.asarray(target))
    counted = np.asarray(mask * data.present(target))
    shares = (target * counted[..., None]).reshape(-1, target.shape[-1]).sum(0)
    shares = shares / (shares.sum() or 1)  # Perhaps no symbol counts.
    lines.append(
      f'  {length:6}  ' + '  '.join(f'{share:6.3f}' for share in shares)
    )
  return '\n'.join(lines)


def _docstring(task: task_lib.GeneralizationTask) -> str:
  # The class's own, not its base's.
  docstring = type(task).__doc__
  return inspect.cleandoc(docstring) if docstring else type(task).__name__


def _string(task: task_lib.GeneralizationTask, tokens: np.ndarray) -> str:
  """Returns a string as people write it."""
  if isinstance(task, task_lib.TokenTask):
    names = task.input_symbols
  else:
    names = [str(symbol) for symbol in range(task.input_size)]
  separator = ' ' if max(map(len, names)) > 1 else ''
  return separator.join(names[t] for t in tokens if t >= 0)


def _answer(target: np.ndarray) -> str:
  """Returns an answer's classes."""
  rows = target.reshape(-1, target.shape[-1])
  rows = rows[rows.any(-1)]
  separator = ' ' if rows.shape[-1] > 10 else ''
  return separator.join(str(c) for c in rows.argmax(-1))
