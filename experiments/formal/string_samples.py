"""Files of labelled strings, drawn from a task."""

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.engine import progress, results
from experiments.formal import adversarial, builders, data
from experiments.formal import config as config_lib
from experiments.formal import strings as strings_lib
from tasks import task as task_lib
from tasks import text_files
from tasks.regular import pairs


def write(
  experiment: config_lib.Experiment,
  output: str,
  min_length: int,
  max_length: int,
  num_strings: int,
  is_adversarial: bool = False,
) -> None:
  """Writes strings of a task, a string, a tabulator and a label a line.

  Strings of an automaton or a language are exactly uniform within each class,
  and each length has as many of each, where it has both. Symbols of more than
  one character have spaces between them.

  Args:
    experiment: Says the task and the seed.
    output: The file; its folder is made if it does not exist.
    min_length: Of the shortest strings.
    max_length: Of the longest ones.
    num_strings: Of each length.
    is_adversarial: Whether they are pairs at edit distance 1, the string of the
      higher class (in the language) first; a pair has the length of the longer.

  Raises:
    ValueError: If the task has more than one answer to a string, a symbol
      cannot be written, there can be no pairs, or it is more than is read of a
      file.
    OSError: If the file cannot be written.
  """
  if min_length > max_length:
    raise ValueError(
      f'min_length ({min_length:,}) must not exceed max_length'
      f' ({max_length:,}).'
    )
  # Of the user's own task nothing shorter is asked for.
  of_these = {
    'curriculum': 'fixed',
    'sequence_length': min_length,
    'min_range_test_length': min_length,
    'max_range_test_length': max_length,
  }
  task = builders.make_task(experiment.replaced(**of_these))
  symbols, labels = strings_lib.symbols_and_labels(experiment, task)
  for symbol in symbols:
    if symbol.split() != [symbol] or '\0' in symbol:
      raise ValueError(
        f'The symbol {symbol!r} has white space, or a character that no text'
        ' has, and cannot be written.'
      )
  for label in labels:
    if '\t' in label or '\0' in label or label.strip().splitlines() != [label]:
      raise ValueError(
        f'The answer {label!r} has white space at an end, a tabulator or lines,'
        ' and cannot be written.'
      )
  separator = data.separator(symbols)
  if separator and max_length == 1:
    raise ValueError(
      'Symbols of several characters are told by the spaces between them:'
      ' max_length must be 2 or more.'
    )
  lengths = range(min_length, max_length + 1)
  num_symbols = num_strings * len(lengths) * (min_length + max_length) // 2
  _check_size(num_symbols * (min(map(len, symbols)) + len(separator)))
  lengths = _lengths(task, lengths)
  draw = _pairs if is_adversarial else _strings
  lines = []
  with progress.timed(
    f'Drawing strings of {min_length:,} to {max_length:,} symbols'
  ):
    for tokens, answer in draw(experiment, task, lengths, num_strings):
      string = separator.join(symbols[token] for token in tokens if token >= 0)
      lines.append(f'{string}\t{labels[answer]}\n')
  text = ''.join(lines)
  _check_size(len(text.encode()))
  results.save(output, text)
  progress.say(f'{output}: {len(lines):,} strings.')


def _check_size(num_bytes: int) -> None:
  """Raises a ValueError if a file would be larger than is read."""
  if num_bytes > text_files.MAX_BYTES:
    raise ValueError(
      f'The file would be larger than {text_files.MAX_BYTES // 10**6} MB, the'
      ' most that is read; choose a smaller num_strings or max_length.'
    )


def _lengths(
  task: task_lib.GeneralizationTask, asked: Sequence[int]
) -> list[int]:
  """Returns those that strings of a task can have."""
  found = [
    length for length in asked if data.input_length(task, length) == length
  ]
  without = [str(length) for length in sorted({*asked} - {*found})]
  if not found:
    raise ValueError(f'The task has no strings of {asked[0]} to {asked[-1]}.')
  if without:
    progress.say(f'The task has no strings of length {", ".join(without)}.')
  return found


# Right-aligned tokens, and the class.
_Row = tuple[np.ndarray, int]


def _strings(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  lengths: Sequence[int],
  num_strings: int,
) -> Iterator[_Row]:
  samples = data.samples(task, num_strings, lengths, experiment.seed)
  for tokens, target in samples:
    yield from zip(tokens, target.argmax(-1), strict=True)


def _pairs(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  lengths: Sequence[int],
  num_strings: int,
) -> Iterator[_Row]:
  adversarial.check(task, lengths[-1])
  if num_strings % 2:
    raise ValueError(
      f'Pairs are an even number of strings; num_strings is {num_strings}.'
    )
  sampler = pairs.PairSampler(task.machine, lengths[-1])
  missing = []
  for length in lengths:
    found = sampler.sample(experiment.seed, [length], num_strings // 2)
    if length not in found:
      missing.append(str(length))
      continue
    for tokens_2xW, answers_2 in zip(*found[length], strict=True):
      yield from zip(tokens_2xW, answers_2, strict=True)
  if len(missing) == len(lengths):
    raise ValueError(f'There are no pairs of {lengths[0]} to {lengths[-1]}.')
  if missing:
    progress.say(f'There are no pairs of length {", ".join(missing)}.')
