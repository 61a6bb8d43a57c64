"""What a file says of an automaton, and the limits on what is read."""

from collections.abc import Sequence
from typing import NamedTuple

from tasks.automata import automaton

# Of an automaton, as read and as determinized.
MAX_STATES = 20_000
# States times symbols.
MAX_TRANSITIONS = 2_000_000
# What two answers are called, whatever the case.
NO = frozenset(('0', 'false', 'no', 'none', '-', 'reject', 'rejecting'))
YES = frozenset(('1', 'true', 'yes', '+', 'accept', 'accepting'))


class Edge(NamedTuple):
  """A transition by one symbol, or by none: an epsilon transition.

  Attributes:
    source: The state before.
    symbol: What is read; None for nothing.
    target: The state after.
  """

  source: str
  symbol: str | None
  target: str


class Description(NamedTuple):
  """An automaton as it is written down: perhaps with gaps, or with choices.

  Attributes:
    alphabet: The symbols, distinct, in the order of their tokens.
    states: Distinct, in the order of their numbers.
    starts: The states before the first symbol.
    edges: Between these states, by these symbols.
    accepting: States whose strings are in the language.
    outputs: The answer of each state, in place of `accepting`; of a Moore
      machine.
    notes: What there is to say about how it was read, one line each.
  """

  alphabet: Sequence[str]
  states: Sequence[str]
  starts: Sequence[str]
  edges: Sequence[Edge]
  accepting: Sequence[str] = ()
  outputs: dict[str, str] | None = None
  notes: Sequence[str] = ()


def in_order(names: Sequence[str]) -> list[str]:
  """Returns names as people order them: whole numbers, then by character."""

  def key(name):
    is_number = name.isascii() and name.isdecimal() and len(name) < 20
    return (not is_number, int(name) if is_number else 0, name)

  return sorted(names, key=key)


def one_line(text: str) -> str:
  """Returns a text whose characters that cannot be printed are escaped."""
  return ''.join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def check_size(num_states: int, num_symbols: int, what: str) -> None:
  """Raises a ValueError if an automaton is larger than the limits.

  Args:
    num_states: That it has, or has so far.
    num_symbols: Of its alphabet.
    what: It is called so in the error.
  """
  if num_states > MAX_STATES:
    raise ValueError(
      f'{what} has more than {MAX_STATES:,} states, the most allowed.'
    )
  if num_states * num_symbols > MAX_TRANSITIONS:
    raise ValueError(
      f'{what} has more than {MAX_TRANSITIONS:,} transitions, the most allowed.'
    )


def check_names(kind: str, names: Sequence[str]) -> None:
  """Raises a ValueError if there is no name, a bad one, or one twice."""
  automaton.check_distinct(kind, names)
  for name in names:
    if not name:
      raise ValueError(f'A {kind} must not be empty.')
    try:
      name.encode()
    except UnicodeEncodeError:
      raise ValueError(
        f'The {kind} {name!r} has half of a surrogate pair, which is no'
        ' character.'
      ) from None
