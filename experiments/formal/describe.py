"""A page about a task: what it asks, some of its strings, its balance."""

from collections.abc import Sequence
import inspect
import json
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.formal import blame, builders, data, registries, strings
from experiments.formal import config as config_lib
from tasks import task as task_lib
from tasks.automata import description
from tasks.regular import automaton_task, prefixes, word_problem
from tasks.strings import strings_task

_NUM_EXAMPLES = 5
_LENGTHS = (1, 10, 40, 100)
_EXAMPLE_LENGTH = 10  # One of them, where it is not too short.
_NUM_COUNTED = 2048
_NAMES_WIDTH = 27  # In the list, in characters.
_MAX_LISTED = 20  # Symbols, states, answers.
_MAX_COLUMNS = 10  # Shares of answers.


def page(**fields: Any) -> str:
  """Returns the page of a task; without a task, the list of all.

  Args:
    **fields: Of the experiment, None where they are not given.

  Raises:
    ValueError: As `describe`, or if fields are given, and none is a task.
  """
  names = ('task', 'task_module', *config_lib.SOURCES)
  if any(fields.get(name) for name in names):
    if config_lib.has_strings_alone(fields) and fields.get('seed') is not None:
      raise ValueError(
        '--seed is not for --strings without --regex or --automaton: nothing is'
        ' drawn.'
      )
    shortest = fields.get('min_range_test_length')
    if shortest is not None:
      # Nothing shorter is asked for, nor does it say how long test strings are.
      fields |= {
        'curriculum': 'fixed',
        'sequence_length': max(shortest, config_lib.Experiment.sequence_length),
        'max_range_test_length': config_lib.MAX_LENGTH,
      }
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
  strings.check(experiment, task)
  page, whole = [_docstring(task)], prefixes.whole(task)
  if whole is not task:
    page = [_docstring(whole), '', *page]
  if experiment.regex:
    page = [f'{config_lib.task_title(experiment)}:', *page]
  if isinstance(whole, automaton_task.AutomatonTask):
    page += _about_automaton(experiment, whole)
  if isinstance(whole, word_problem.WordProblem):
    page += _about_group(whole)
  page += _about_arguments(experiment)
  if isinstance(task, strings_task.StringsTask):
    return '\n'.join([*page, *_about_strings(task)])
  shortest = experiment.min_range_test_length
  lengths = sorted({shortest, *(n for n in _LENGTHS if n > shortest)})
  samples = data.samples(task, _NUM_COUNTED, lengths, experiment.seed)
  batches = dict(zip(lengths, samples, strict=True))
  lines = [*page, '', 'Sampled:']
  tokens, target = batches[max(shortest, _EXAMPLE_LENGTH)]
  for i in range(_NUM_EXAMPLES):
    lines.append(f'  {_string(task, tokens[i])} -> {_answer(target[i])}')
  chance = 1 / task.output_size
  is_wide = task.output_size > _MAX_COLUMNS
  columns = ['least', 'most'] if is_wide else range(task.output_size)
  lines += [
    '',
    f'Chance level, a uniform guess: {chance:.4f}',
    f'Share of each of {task.output_size} output symbols:',
    '  length  ' + '  '.join(f'{column:>6}' for column in columns),
  ]
  for length in lengths:
    _, target = batches[length]
    with blame.blamed(blame.method(task, 'accuracy_mask', length)):
      mask = task.accuracy_mask(jnp.asarray(target))
    counted = np.asarray(mask * data.present(target))
    shares = (target * counted[..., None]).reshape(-1, target.shape[-1]).sum(0)
    shares = shares / (shares.sum() or 1)  # Perhaps no symbol counts.
    if is_wide:
      shares = [shares.min(), shares.max()]
    lines.append(
      f'  {length:6}  ' + '  '.join(f'{share:6.3f}' for share in shares)
    )
  if experiment.strings:
    held = strings.make_training_task(experiment, task)
    lines += ['', f'Trained on {experiment.strings["file"]}:']
    lines += _about_strings(held)
  return '\n'.join(lines)


def _about_arguments(experiment: config_lib.Experiment) -> list[str]:
  """Returns lines about the arguments of one of our tasks, if it has any."""
  if any(getattr(experiment, x) for x in ('task_module', *config_lib.SOURCES)):
    return []
  builder = registries.TASK_BUILDERS[experiment.task]
  fixed = getattr(builder, 'keywords', {})  # The n of D_n.
  known = inspect.signature(builder).parameters
  arguments = [
    name + f' (by default {json.dumps(x.default)})' * (x.default is not None)
    for name, x in known.items()
    if name not in fixed
  ]
  return ['', f'--task_params: {", ".join(arguments)}'] if arguments else []


def _about_group(task: word_problem.WordProblem) -> list[str]:
  """Returns lines about a group: which element each answer is."""
  names = task.input_symbols
  numbered = [f'{i}:{name}' for i, name in enumerate(names)]
  return [
    '',
    f'{len(names)} elements, by number: {_listed(numbered)}',
    f'The identity: {names[task.machine.start]}',
  ]


def _about_automaton(
  experiment: config_lib.Experiment, task: automaton_task.AutomatonTask
) -> list[str]:
  """Returns lines about an automaton: its symbols, states and answers."""
  automaton = task.automaton
  # Those of a regular expression have no names.
  states = experiment.automaton.get('states') or [
    str(q) for q in range(len(automaton.outputs))
  ]
  lines = [
    '',
    f'{len(automaton.alphabet)} symbols: {_listed(automaton.alphabet)}',
    f'{len(states)} states, of which {states[automaton.start]} is the start',
  ]
  answers = task.machine.outputs
  _, labels = strings.symbols_and_labels(experiment, task)
  for answer in range(min(task.output_size, _MAX_LISTED)):
    of_answer = [states[q] for q in np.flatnonzero(answers == answer)]
    # That of a state is its number.
    name = '' if labels[answer] == str(answer) else f', {labels[answer]}'
    where = _listed(of_answer) or 'none'
    lines.append(f'answer {answer}{name}, in states: {where}')
  if task.output_size > _MAX_LISTED:
    lines.append(f'... {task.output_size} answers')
  return lines


def _listed(names: Sequence[str]) -> str:
  """Returns names with spaces between them, of many the first.

  Those with white space, or with what cannot be printed, are quoted.
  """
  some = ' '.join(
    name if name.isprintable() and name.split() == [name] else repr(name)
    for name in names[:_MAX_LISTED]
  )
  return some if len(names) <= _MAX_LISTED else f'{some} ... ({len(names)})'


def _about_strings(task: strings_task.StringsTask) -> list[str]:
  """Returns lines about the strings of a file."""
  total = sum(len(group.answers) for group in task.groups.values())
  lines = [
    '',
    f'{len(task.alphabet)} symbols: {_listed(task.alphabet)}',
    f'{len(task.labels)} labels: {_listed(task.labels)}',
    '',
    f'Of {total:,} strings:',
  ]
  # A file may have all strings of one label first.
  chosen = np.random.default_rng(0).choice(
    total, min(total, _NUM_EXAMPLES), replace=False
  )
  groups = list(task.groups.values())
  starts = np.cumsum([0, *(len(group.answers) for group in groups)])
  for number in sorted(chosen):
    which = np.searchsorted(starts, number, side='right') - 1
    group, i = groups[which], number - starts[which]
    label = task.labels[group.answers[i]]
    lines.append(f'  {_string(task, group.tokens[i])} -> {label}')
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
  # The class's own, not its base's; not what it says to programmers.
  docstring = inspect.cleandoc(type(task).__doc__ or '')
  return docstring.partition('\n\nAttributes:')[0] or type(task).__name__


def _string(task: task_lib.GeneralizationTask, tokens: np.ndarray) -> str:
  """Returns a string as people write it."""
  names = data.symbols(task)
  string = data.separator(names).join(names[t] for t in tokens if t >= 0)
  return description.one_line(string)


def _answer(target: np.ndarray) -> str:
  """Returns an answer's classes."""
  rows = target.reshape(-1, target.shape[-1])
  rows = rows[rows.any(-1)]
  separator = ' ' if rows.shape[-1] > 10 else ''
  return separator.join(str(c) for c in rows.argmax(-1))
