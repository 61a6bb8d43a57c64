"""A page about a task: what it asks, some of its strings, its balance."""

import inspect
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.formal import blame, builders, data, registries, strings
from experiments.formal import config as config_lib
from tasks import task as task_lib
from tasks.strings import strings_task

_NUM_EXAMPLES = 5
_LENGTHS = (1, 10, 40, 100)
_EXAMPLE_LENGTH = 10  # One of them, where it is not too short.
_NUM_COUNTED = 2048


def list_tasks() -> str:
  """Returns all tasks by level of the Chomsky hierarchy, with a sentence."""
  titles = {
    'regular': 'Regular',
    'dcf': 'Deterministic context-free',
    'cs': 'Context-sensitive',
  }
  width = max(len(name) for name in registries.TASK_BUILDERS)
  lines = []
  for level, title in titles.items():
    lines += ['', title]
    for name, builder in registries.TASK_BUILDERS.items():
      if registries.TASK_LEVELS[name] == level:
        lines.append(
          f'  {name:{width}}  {_docstring(builder()).splitlines()[0]}'
        )
  return '\n'.join(lines[1:])


def describe(experiment: config_lib.Experiment) -> str:
  """Returns the page of an experiment's task.

  Raises:
    ValueError: If the task is unknown or its parameters are wrong.
  """
  task = builders.make_task(experiment)
  strings.check(experiment, task)
  page = [_docstring(task)]
  if isinstance(task, strings_task.StringsTask):
    return '\n'.join([*page, *_about_strings(task)])
  shortest = experiment.min_range_test_length
  lengths = sorted({shortest, *(n for n in _LENGTHS if n > shortest)})
  widest = max(data.input_length(task, length) for length in lengths)
  source = data.make_source(task, _NUM_COUNTED, [widest])

  @jax.jit
  def sample(length, host_data):
    rng = jax.random.fold_in(jax.random.key(experiment.seed), length)
    return source.batch(rng, host_data, widest)

  batches = {}
  stream = source.stream([experiment.seed], ((n, n) for n in lengths))
  for length, (_, host_data) in zip(lengths, stream, strict=True):
    if source.run_axis is not None:
      host_data = jax.tree.map(lambda x: x[0], host_data)
    batches[length] = jax.device_get(sample(length, host_data))

  lines = [*page, '', 'Sampled:']
  tokens, target = batches[max(shortest, _EXAMPLE_LENGTH)]
  for i in range(_NUM_EXAMPLES):
    lines.append(f'  {_string(task, tokens[i])} -> {_answer(target[i])}')
  chance = 1 / task.output_size
  lines += [
    '',
    f'Chance level, a uniform guess: {chance:.4f}',
    'Share of each output symbol:',
    '  length  ' + '  '.join(f'{i:>6}' for i in range(task.output_size)),
  ]
  for length in lengths:
    _, target = batches[length]
    with blame.blamed(blame.method(task, 'accuracy_mask', length)):
      mask = task.accuracy_mask(jnp.asarray(target))
    counted = np.asarray(mask * data.present(target))
    shares = (target * counted[..., None]).reshape(-1, target.shape[-1]).sum(0)
    shares = shares / shares.sum()
    lines.append(
      f'  {length:6}  ' + '  '.join(f'{share:6.3f}' for share in shares)
    )
  if experiment.strings:
    held = strings.make_training_task(experiment, task)
    lines += ['', f'Trained on {experiment.strings["file"]}:']
    lines += _about_strings(held)
  return '\n'.join(lines)


def _about_strings(task: strings_task.StringsTask) -> list[str]:
  """Returns lines about the strings of a file."""
  total = sum(len(group.answers) for group in task.groups.values())
  lines = ['', f'Of {total:,} strings:']
  for group in itertools.islice(task.groups.values(), _NUM_EXAMPLES):
    label = task.labels[group.answers[0]]
    lines.append(f'  {_string(task, group.tokens[0])} -> {label}')
  widths = [max(6, len(label)) for label in task.labels]
  names = zip(task.labels, widths, strict=True)
  lines += [
    '',
    f'Chance level, a uniform guess: {1 / task.output_size:.4f}',
    'Share of each label:',
    '  length  strings  ' + '  '.join(f'{name:>{w}}' for name, w in names),
  ]
  for length, group in task.groups.items():
    shares = np.bincount(group.answers, minlength=len(widths))
    shares = zip(shares / shares.sum(), widths, strict=True)
    lines.append(
      f'  {length:6}  {len(group.answers):7,}  '
      + '  '.join(f'{share:{w}.3f}' for share, w in shares)
    )
  return lines


def _docstring(task: task_lib.GeneralizationTask) -> str:
  # The class's own, not its base's.
  docstring = type(task).__doc__
  return inspect.cleandoc(docstring) if docstring else type(task).__name__


def _string(task: task_lib.GeneralizationTask, tokens: np.ndarray) -> str:
  """Returns a string as people write it."""
  if isinstance(task, task_lib.TokenTask | strings_task.StringsTask):
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
