"""The automaton of a regular expression."""

from collections.abc import Callable, Sequence
import functools
import json
import re
from typing import Any

import numpy as np

from tasks.automata import automaton as automaton_lib
from tasks.automata import description, fields, nfa, regex_syntax


def read_alphabet(
  text: str, regex: str, parse_json: Callable[[str], Any] = json.loads
) -> list[str]:
  """Returns the symbols that a user gives with an expression.

  Args:
    text: One character each, as `01`, or a list of JSON, as `["up", "down"]`.
    regex: The expression.
    parse_json: As of `reading.read`.

  Raises:
    ValueError: If the list isn't one of strings, or if there is a comma or a
      space that the expression never has.
  """
  if _is_json(text, parse_json):
    try:
      symbols = parse_json(text)
    except (ValueError, RecursionError) as error:
      raise ValueError(
        f'The alphabet {text[:80]!r} cannot be read as JSON: {error}'
      ) from error
    for symbol in symbols:
      if not isinstance(symbol, str) or not symbol:
        raise ValueError(
          'The alphabet must be a list of strings, as ["up", "down"]; it has'
          f' {symbol!r}.'
        )
    return symbols
  without_bounds = re.sub(r'\{\d*,\d*\}', '', regex)
  is_list = text.strip(', ') != ''
  for character, name in ((',', 'comma'), (' ', 'space')):
    if is_list and character in text and character not in without_bounds:
      symbols = list(dict.fromkeys(re.split('[, ]+', text.strip(', '))))
      right = ''.join(symbols)
      if any(len(symbol) != 1 for symbol in symbols):
        right = json.dumps(symbols, ensure_ascii=False)
      raise ValueError(
        f'The alphabet {text!r} has a {name}, which the regex never uses; write'
        f" the symbols with nothing between them, as --alphabet='{right}'."
      )
  return list(text)


def _is_json(text: str, parse_json: Callable[[str], Any]) -> bool:
  """Whether an alphabet is meant as a list of JSON, right or wrong.

  Brackets are symbols too, as in [], or [(01)].
  """
  if re.match(r'\s*\[\s*"', text):
    return True
  if not re.search('[,["]', text.lstrip()[1:]):
    return False
  try:
    return isinstance(parse_json(text), list)
  except (ValueError, RecursionError):
    return False


def from_regex(regex: str, alphabet: Sequence[str]) -> automaton_lib.Automaton:
  r"""Returns the minimal complete automaton of a regular expression.

  The syntax is that of automata-lib and more: `|` union (of branches that may
  be empty), `&` intersection, `^` shuffle, `~` complement of the symbol or
  group behind it, `*`, `+`, `?`, `{n}`, `{m,n}`, `.` any symbol, `[ab]` and
  `[a-c]` one of these, `[^ab]` any other, `\d`, `\w`, `\s` and `\D`, `\W`,
  `\S` of the alphabet, `()` the empty string or a group, `\(` the symbol. The
  three
  operators between branches bind alike, from left to right. `~` and `$` are
  symbols where the alphabet has them. `^` and `$` at the two ends mean nothing,
  as the whole string is matched always. Space may stand between symbols if one
  has several characters.

  States are numbered breadth first from the start, which is 0, in the order of
  the alphabet.

  Args:
    regex: The expression.
    alphabet: Its symbols.

  Raises:
    ValueError: If the expression doesn't parse or has symbols outside the
      alphabet, if its automaton is too large, or if there is nothing to learn
      (see `automaton.check_learnable`).
  """
  automaton = fields.to_automaton(to_fields(regex, alphabet))
  automaton_lib.check_learnable(automaton)
  return automaton


def to_fields(regex: str, alphabet: Sequence[str]) -> dict:
  """Returns the JSON object of `from_regex`'s automaton, whatever it accepts.

  Args:
    regex: The expression.
    alphabet: Its symbols.

  Raises:
    ValueError: As `from_regex`.
  """
  description.check_names('symbol', alphabet)
  what = f'The automaton of the regex {regex[:80]!r}'
  try:
    tree = regex_syntax.parse(regex, alphabet)
    builder = _Builder(len(alphabet), what)
    table, is_end = builder.minimal(functools.partial(builder.add, tree))
  except RecursionError:
    raise ValueError(f'Regex {regex[:80]!r} is nested too deeply.') from None
  states = [str(q) for q in range(len(is_end))]
  return fields.from_arrays(alphabet, states, table, 0, is_end.tolist())


class _Builder:
  """Adds the parts of an expression to an automaton with choices.

  Thompson's construction, with few states. No part comes back to the state that
  it starts from, so that parts may share it.
  """

  def __init__(self, num_symbols: int, what: str):
    self.machine = nfa.Nfa(what)
    self._num_symbols = num_symbols
    self._what = what
    self._built = {}  # Automata of parts that need their own, by identity.
    self._num_parts = 0

  def minimal(self, add: Callable[[int], int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the minimal automaton of what a function adds, from its start."""
    start = self.machine.add_state()
    end = add(start)
    return nfa.smallest(
      self.machine, self._num_symbols, [start], [end], self._what
    )

  def add(self, node: regex_syntax.Node, start: int) -> int:
    """Adds a part that starts in a state; returns the state that it ends in."""
    self._num_parts += 1
    # Of empty ones, which add no states.
    description.check_size(self._num_parts // 20, 1, self._what)
    machine = self.machine
    if node.kind == 'symbols':
      end = machine.add_state()
      for symbol in node.symbols:
        machine.add_edge(start, symbol, end)
      return end
    if node.kind == 'concatenation':
      for part in node.parts:
        start = self.add(part, start)
      return start
    if node.kind == '|':
      ends = [self.add(part, start) for part in node.parts]
      return self._join(ends)
    if node.kind == 'repeat':
      return self._repeat(node.parts[0], *node.bounds, start)
    if node.kind in ('begin', 'end'):
      return start
    return self.add_automaton(*self._combined(node), start)

  def _join(self, ends):
    """Returns a new state that follows some without a symbol."""
    end = self.machine.add_state()
    for state in ends:
      self.machine.epsilon[state].append(end)
    return end

  def _repeat(self, part, least, most, start):
    for _ in range(least if most is not None else max(0, least - 1)):
      start = self.add(part, start)
    if most is not None:
      ends = [start]
      for _ in range(most - least):
        ends.append(self.add(part, ends[-1]))
      return self._join(ends) if len(ends) > 1 else start
    again = self._join([start])
    end = self.add(part, again)
    self.machine.epsilon[end].append(again)
    # A star may be left before the first time.
    return self._join([end, again] if least == 0 else [end])

  def add_automaton(
    self,
    table: Sequence[Sequence[Sequence[int]]],
    is_end: Sequence[bool],
    start: int,
  ) -> int:
    """Adds an automaton, as `_combined` returns it; the rest as `add`."""
    machine = self.machine
    states = [machine.add_state() for _ in is_end]
    machine.epsilon[start].append(states[0])
    for state, row in zip(states, table, strict=True):
      for symbol, targets in enumerate(row):
        for target in targets:
          machine.add_edge(state, symbol, states[target])
    return self._join([q for q, end in zip(states, is_end, strict=True) if end])

  def _combined(self, node):
    """Returns the automaton of an intersection, a shuffle or a complement.

    Returns:
      States after each state and symbol, a list of lists of lists, and whether
      a state is accepting.
    """
    # Nodes live as long as the tree: their identity is theirs.
    if id(node) in self._built:
      return self._built[id(node)]
    parts = []
    for part in node.parts:
      builder = _Builder(self._num_symbols, self._what)
      parts.append(builder.minimal(functools.partial(builder.add, part)))
    if node.kind == '~':
      table, is_end = parts[0][0], ~parts[0][1]
      combined = [[[q] for q in row] for row in table.tolist()], is_end
    else:
      first = parts[0]
      for second in parts[1:]:
        combined = self._product(node.kind, *first, *second)
        if second is not parts[-1]:
          builder = _Builder(self._num_symbols, self._what)
          add = functools.partial(builder.add_automaton, *combined)
          first = builder.minimal(add)
    self._built[id(node)] = combined
    return combined

  def _product(self, kind, table, is_end, other_table, other_is_end):
    """Returns the automaton of pairs of states, as `_combined`."""
    table, other_table = table.tolist(), other_table.tolist()
    number, rows = {(0, 0): 0}, []
    pairs = list(number)
    for p, q in pairs:  # Grows while new pairs are met.
      row = []
      for after, other in zip(table[p], other_table[q], strict=True):
        together = [(after, other)]
        following = together if kind == '&' else [(after, q), (p, other)]
        for pair in following:
          if pair not in number:
            number[pair] = len(pairs)
            pairs.append(pair)
            description.check_size(len(pairs), self._num_symbols, self._what)
        row.append([number[pair] for pair in following])
      rows.append(row)
    return rows, [bool(is_end[p] and other_is_end[q]) for p, q in pairs]
