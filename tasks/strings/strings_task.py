"""The task that labelled strings define, and the arrays that they become."""

from collections.abc import Callable, Mapping, Sequence
import functools
import itertools
from typing import NamedTuple

import jax
import numpy as np

from tasks import task
from tasks.automata import description
from tasks.strings import reading

# Labels of what is not in a language, and is in it, whatever the file's are.
LABELS = ('FALSE', 'TRUE')


class Group(NamedTuple):
  """Strings of one length.

  Attributes:
    tokens: Int32 [N, length].
    answers: Classes, int32 [N].
  """

  tokens: np.ndarray
  answers: np.ndarray


# By their length.
Groups = Mapping[int, Group]


def alphabet_of(strings: reading.Strings) -> list[str]:
  """Returns the symbols of strings, in order."""
  symbols = set()
  for string in strings.strings:
    symbols.update(string)
  return description.in_order(list(symbols))


def labels_of(strings: reading.Strings) -> list[str]:
  """Returns the names of the classes, in order.

  They are `LABELS` if there is one name of each, whatever its case; otherwise
  each name is a class: of -, 0 and + there are three.

  Raises:
    ValueError: If there is only one.
  """
  names = sorted(set(strings.labels))
  classes = {name.lower() for name in names}
  has_both = classes & description.NO and classes & description.YES
  if has_both and len(classes) == 2:
    return list(LABELS)
  if len(names) > 1:
    return description.in_order(names)
  raise ValueError(
    'There is nothing to learn: all strings of one symbol or more have the'
    f' label {names[0]!r}.'
  )


def to_groups(
  strings: reading.Strings, alphabet: Sequence[str], labels: Sequence[str]
) -> Groups:
  """Returns strings as arrays, in the file's order within each length.

  Args:
    strings: Of a file.
    alphabet: Symbol v is the token v.
    labels: Name k is the class k; of `LABELS` other names do too.

  Raises:
    ValueError: If a symbol or a label is not one of these, with the line; or if
      two labels are of one class.
  """
  number = {symbol: i for i, symbol in enumerate(alphabet)}
  class_of = {name: k for k, name in enumerate(labels)}
  if list(labels) == list(LABELS):
    class_of = dict.fromkeys(description.NO, 0)
    class_of |= dict.fromkeys(description.YES, 1)
    for names in (description.NO, description.YES):
      found = names & {label.lower() for label in strings.labels}
      if len(found) > 1:
        raise ValueError(
          f'The labels {" and ".join(sorted(found))} would both mean'
          f' {labels[class_of[min(found)]]}; give them one name.'
        )
  members: dict[int, list[int]] = {}
  answers_N = np.zeros(len(strings.labels), np.int32)
  for i, label in enumerate(strings.labels):
    known = label.lower() if list(labels) == list(LABELS) else label
    if known not in class_of:
      raise ValueError(
        f'line {strings.lines[i]}: the label {label!r} is none of'
        f' {", ".join(labels)}.'
      )
    answers_N[i] = class_of[known]
    members.setdefault(len(strings.strings[i]), []).append(i)
  groups = {}
  for length, places in sorted(members.items()):
    symbols = itertools.chain.from_iterable(strings.strings[i] for i in places)
    count = length * len(places)
    tokens = np.fromiter((number.get(s, -1) for s in symbols), np.int32, count)
    tokens = tokens.reshape(-1, length)
    for row, column in np.argwhere(tokens < 0):
      i = places[row]
      raise ValueError(
        f'line {strings.lines[i]}: the symbol {strings.strings[i][column]!r} is'
        f' not in the alphabet {description.one_line(" ".join(alphabet))}.'
      )
    groups[length] = Group(tokens, answers_N[places])
  return groups


class StringsTask(task.GeneralizationTask):
  """Which label has a string? The strings are those of a file.

  A batch is drawn from the file's strings of a length, with replacement.

  Attributes:
    alphabet: The symbols; symbol v is the token v.
    labels: The names of the classes.
  """

  def __init__(
    self,
    alphabet: Sequence[str],
    labels: Sequence[str],
    load: Callable[[], Groups],
  ):
    """Initializes.

    Args:
      alphabet: The symbols.
      labels: The names of the classes.
      load: Returns the strings, when they are needed.
    """
    self.alphabet = list(alphabet)
    self.labels = list(labels)
    self._load = load

  @functools.cached_property
  def groups(self) -> Groups:
    """The strings."""
    return self._load()

  @property
  def input_size(self) -> int:
    """See base class."""
    return len(self.alphabet)

  @property
  def output_size(self) -> int:
    """See base class."""
    return len(self.labels)

  @property
  def input_symbols(self) -> Sequence[str]:
    """How the input symbols are written for people."""
    return self.alphabet

  def draw(
    self, rng: np.random.Generator, batch_size: int, length: int
  ) -> Group:
    """Returns strings of a length, each as often as any other.

    Raises:
      ValueError: If there is none.
    """
    if length not in self.groups:
      lengths = sorted(self.groups)
      raise ValueError(
        f'There is no string of {length} symbols; they have {lengths[0]} to'
        f' {lengths[-1]}.'
      )
    group = self.groups[length]
    rows = rng.integers(len(group.answers), size=batch_size)
    return Group(group.tokens[rows], group.answers[rows])

  def sample_batch(self, rng, batch_size, length):
    """See base class."""
    seed = jax.random.key_data(rng).tolist()
    group = self.draw(np.random.default_rng(seed), batch_size, length)
    return {
      'input': jax.nn.one_hot(group.tokens, self.input_size),
      'output': jax.nn.one_hot(group.answers, self.output_size),
    }
