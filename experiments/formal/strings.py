"""Labelled strings of files: how an experiment names them, and reading them.

An experiment holds of a file its path, its checksum, the symbols and labels in
it, and how many strings it has of each length, so that a run goes on with the
very strings that it began with, and a trained model needs no file.
"""

from collections.abc import Iterable, Sequence
import functools
import os
from typing import Any

from experiments.engine import progress
from experiments.formal import config as config_lib
from experiments.formal import data
from tasks import task as task_lib
from tasks.automata import fields as fields_lib
from tasks.regular import automaton_task, regular_task
from tasks.strings import reading, strings_task


@functools.lru_cache(maxsize=4)
def _read(path: str, changed_ns: int) -> reading.Strings:
  del changed_ns  # A file that is written anew is read anew.
  return reading.read(path)


def read(path: str) -> reading.Strings:
  """Returns what a file holds, read once; see `tasks.strings.reading.read`."""
  try:
    changed_ns = os.stat(path).st_mtime_ns
  except OSError:
    changed_ns = 0
  return _read(path, changed_ns)


def describe(path: str) -> dict[str, Any]:
  """Returns what an experiment holds of strings to train on.

  Raises:
    ValueError: If the file cannot be read, or all its labels are one.
  """
  strings = read(path)
  try:
    labels = strings_task.labels_of(strings)
  except ValueError as error:
    raise ValueError(f'{path}: {error}') from None
  return {
    **_held(path, strings),
    'alphabet': strings_task.alphabet_of(strings),
    'labels': labels,
  }


def describe_tests(paths: Sequence[str]) -> dict[str, Any]:
  """Returns what an experiment holds of strings to test on, by their path.

  Raises:
    ValueError: If a file cannot be read, or is given twice.
  """
  if not all(paths):
    raise ValueError(f'A file has no name: {",".join(paths)!r}.')
  if len({*map(os.path.realpath, paths)}) < len(paths):
    raise ValueError(f'A file is given twice: {", ".join(paths)}.')
  return {path: _held(path, read(path)) for path in paths}


def _held(path: str, strings: reading.Strings) -> dict[str, Any]:
  counts: dict[int, int] = {}
  for string in strings.strings:
    counts[len(string)] = counts.get(len(string), 0) + 1
  return {
    'file': path,
    'sha256': strings.checksum,
    'lengths': [list(item) for item in sorted(counts.items())],
  }


def load(
  held: dict[str, Any], alphabet: Sequence[str], labels: Sequence[str]
) -> strings_task.Groups:
  """Returns the strings of a file as arrays.

  Args:
    held: What an experiment holds of the file.
    alphabet: The symbols in the order of their tokens.
    labels: The names of the classes.

  Raises:
    ValueError: If the file cannot be read, is not what it was, or has another
      symbol or label.
  """
  path = held['file']
  strings = read(path)
  if strings.checksum != held['sha256']:
    raise ValueError(
      f'{path} is not what it was when the run began: its checksum is another.'
    )
  try:
    return strings_task.to_groups(strings, alphabet, labels)
  except ValueError as error:
    raise ValueError(f'{path}: {error}') from None


def make_task(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask | None = None,
) -> strings_task.StringsTask:
  """Returns the task of the strings that an experiment trains on.

  Args:
    experiment: With strings.
    task: What tells the strings' symbols and labels; by default the file does.

  Raises:
    ValueError: If a field is wrong.
  """
  held = experiment.strings
  if task is None:
    alphabet, labels = held['alphabet'], held['labels']
  else:
    alphabet, labels = symbols_and_labels(experiment, task)
  load_strings = functools.partial(load, held, alphabet, labels)
  return strings_task.StringsTask(alphabet, labels, load_strings)


def training_lengths(experiment: config_lib.Experiment) -> list[int]:
  """Returns the length of each string that is not longer than allowed.

  Raises:
    ValueError: If there is none.
  """
  lengths = [
    length
    for length, count in experiment.strings['lengths']
    if length <= experiment.sequence_length
    for _ in range(count)
  ]
  if not lengths:
    shortest = experiment.strings['lengths'][0][0]
    raise ValueError(
      f'{experiment.strings["file"]} has no string of at most'
      f' {experiment.sequence_length} symbols, the sequence_length; the'
      f' shortest has {shortest}.'
    )
  return lengths


def check_lengths(
  experiment: config_lib.Experiment, lengths: Iterable[int]
) -> None:
  """Raises a ValueError if the strings to train on have not all the lengths."""
  known = {length for length, _ in experiment.strings['lengths']}
  for length in sorted(lengths):
    if length not in known:
      raise ValueError(
        f'The curriculum draws strings of {length} symbols, of which'
        f' {experiment.strings["file"]} has none; it has'
        f' {min(known)} to {max(known)}.'
      )


def check(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> None:
  """Reads all strings of an experiment; says what is odd about them.

  Raises:
    ValueError: As `load_tests`.
  """
  load_tests(experiment, task)
  say_notes(
    filter(None, [experiment.strings, *experiment.test_strings.values()])
  )
  if not experiment.strings:
    return
  # Of a task that goes away: strings of many cells need not stay in memory.
  has_labels = isinstance(task, strings_task.StringsTask)
  groups = make_task(experiment, None if has_labels else task).groups
  for name in config_lib.RANGE_FIELDS:
    default = getattr(config_lib.Experiment, name)
    if has_labels and getattr(experiment, name) != default:
      progress.say(
        f'{name} does nothing: of a language of which there are only strings,'
        ' all strings of its files are the test.'
      )
  if isinstance(task, automaton_task.AutomatonTask):
    num_other = sum(
      int((regular_task.answers(task.machine, tokens) != answers).sum())
      for tokens, answers in groups.values()
    )
    if num_other:
      total = sum(len(group.answers) for group in groups.values())
      progress.say(
        f'{experiment.strings["file"]}: of {num_other:,} of {total:,} strings'
        ' the automaton has another answer than their label.'
      )


def say_notes(files: Iterable[dict[str, Any]]) -> None:
  """Says what is odd about files, of which an experiment holds these."""
  paths = {os.path.realpath(held['file']): held['file'] for held in files}
  for path in paths.values():
    for note in read(path).notes:
      progress.say(note)


def make_training_task(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> task_lib.GeneralizationTask:
  """Returns what a model trains on: the task, or the strings of a file."""
  if not experiment.strings or isinstance(task, strings_task.StringsTask):
    return task
  return make_task(experiment, task)


def symbols_and_labels(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> tuple[Sequence[str], Sequence[str]]:
  """Returns how a task's symbols and classes are called in files of strings.

  Raises:
    ValueError: If the task has more answers than one to a string.
  """
  if isinstance(task, strings_task.StringsTask):
    return task.alphabet, task.labels
  if not data.is_single_output(task):
    raise ValueError(
      f'{type(task).__name__} has more than one answer to a string, and so no'
      ' labels.'
    )
  labels = [str(k) for k in range(task.output_size)]
  if experiment.target == config_lib.Experiment.target:
    if experiment.automaton.get('outputs'):
      labels = fields_lib.answers(experiment.automaton)
    elif task.output_size == 2:
      labels = list(strings_task.LABELS)
  return data.symbols(task), labels


def load_tests(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> dict[str, strings_task.Groups]:
  """Returns the strings that an experiment tests on, by their file.

  Where there is nothing else to test on, it is those that it trained on.

  Raises:
    ValueError: As `load`, or if the task has no labels.
  """
  tests = dict(experiment.test_strings)
  if experiment.has_strings_alone and not tests:
    tests = {experiment.strings['file']: experiment.strings}
  if not tests:
    return {}
  alphabet, labels = symbols_and_labels(experiment, task)
  return {path: load(held, alphabet, labels) for path, held in tests.items()}
