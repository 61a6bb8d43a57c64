"""The syntax of regular expressions, as a tree.

The symbols of a node are numbers, so that a symbol may have several characters.
"""

from collections.abc import Sequence
import re
from typing import NamedTuple, NoReturn

from tasks.automata import description

# Stand for themselves after a backslash only.
_RESERVED = '()[]{}|&^*+?.\\'
# Are operators unless the alphabet has them.
_OPTIONAL = '~$'
_CONTROLS = {'n': '\n', 't': '\t', 'r': '\r', 'f': '\f', 'v': '\v'}
_CLASSES = {
  'd': re.compile(r'\d'),
  'w': re.compile(r'\w'),
  's': re.compile(r'\s'),
}
_REPETITION = re.compile(r'\{(\d+)\}|\{(\d*),(\d*)\}', re.ASCII)
_POSTFIX = {'*': (0, None), '+': (1, None), '?': (0, 1)}


class Node(NamedTuple):
  """A part of an expression.

  Attributes:
    kind: 'symbols', one of some; 'concatenation'; 'begin' and 'end', anchors;
      '|', '&' and '^', of two parts or more; 'repeat'; '~', the complement.
    parts: The nodes below it.
    symbols: Of 'symbols'.
    bounds: Of 'repeat', the least and the most; None for any number.
    position: Where it stands.
  """

  kind: str
  parts: Sequence['Node'] = ()
  symbols: Sequence[int] = ()
  bounds: tuple[int, int | None] = (1, 1)
  position: int = 0


def parse(regex: str, alphabet: Sequence[str]) -> Node:
  """Returns the tree of an expression.

  Args:
    regex: See `regex.from_regex`.
    alphabet: Its symbols.

  Raises:
    ValueError: If it doesn't parse; it says where.
  """
  parser = _Parser(regex, alphabet)
  node = parser.alternatives()
  if parser.position < len(regex):  # Only a bracket ends the outermost group.
    parser.fail(parser.position, "')' closes nothing")
  _check_anchors(node, parser, is_begin=True, is_end=True)
  return node


def _check_anchors(node: Node, parser, is_begin: bool, is_end: bool) -> None:
  """Raises a ValueError if an anchor stands inside of the string."""
  if node.kind == 'begin' and not is_begin:
    parser.fail(
      node.position,
      "'^' is an anchor, and strings do not begin there (a symbol is \\^)",
    )
  if node.kind == 'end' and not is_end:
    parser.fail(
      node.position,
      "'$' is an anchor, and strings do not end there (a symbol must be in the"
      ' alphabet)',
    )
  if node.kind in ('repeat', '^'):
    is_begin = is_end = False
  in_row = node.kind == 'concatenation'
  solid = [
    i for i, p in enumerate(node.parts) if p.kind not in ('begin', 'end')
  ]
  for i, part in enumerate(node.parts):
    _check_anchors(
      part,
      parser,
      is_begin and not (in_row and solid and i > solid[0]),
      is_end and not (in_row and solid and i < solid[-1]),
    )


class _Parser:
  """Recursive descent over the characters of an expression."""

  def __init__(self, regex: str, alphabet: Sequence[str]):
    self.position = 0
    self._regex = regex
    self._alphabet = alphabet
    self._number = {symbol: i for i, symbol in enumerate(alphabet)}
    self._longest = max(map(len, alphabet))
    self._operators = set(_RESERVED) | {
      c for c in _OPTIONAL if c not in self._number
    }

  def fail(self, position: int, problem: str) -> NoReturn:
    raise ValueError(
      f'Regex {self._shown()} does not parse at position {position}:'
      f' {description.one_line(problem)}.'
    )

  def _shown(self):
    whole = repr(self._regex)
    return whole if len(whole) <= 100 else f'{whole[:100]} ...'

  def _unknown(self, position: int, symbol: str) -> NoReturn:
    raise ValueError(
      f'Regex {self._shown()}, position {position}: symbol {symbol!r} is not in'
      f' the alphabet {description.one_line(", ".join(self._alphabet))}, which'
      ' is what --alphabet says.'
    )

  def _peek(self) -> str:
    """Returns the operator that is next; '' at the end, 'symbol' if none."""
    self._skip_spaces()
    character = self._regex[self.position : self.position + 1]
    if not character or (character in self._operators and character != '\\'):
      return character
    return 'symbol'

  def _skip_spaces(self):
    """Skips what may divide symbols of several characters."""
    if self._longest > 1 and ' ' not in self._number:
      while self._regex[self.position : self.position + 1].isspace():
        self.position += 1

  def alternatives(self) -> Node:
    """Parses what stands in a group: concatenations and what joins them."""
    node = self._concatenation()
    while self._peek() and self._peek() in '|&^':
      operator, position = self._peek(), self.position
      if operator != '|' and not node.parts:
        self.fail(position, f'{operator!r} has nothing to its left')
      self.position += 1
      right = self._concatenation()
      if operator != '|' and not right.parts:
        self.fail(position, f'{operator!r} has nothing to its right')
      if node.kind == operator:  # Flat, so that many need no deep recursion.
        node.parts.append(right)
      else:
        node = Node(operator, [node, right], position=position)
    return node

  def _concatenation(self) -> Node:
    node = Node('concatenation', [], position=self.position)
    while (following := self._peek()) not in ('', '|', '&', ')'):
      if following == '^':
        if any(part.kind != 'begin' for part in node.parts):
          break  # It is the shuffle.
        node.parts.append(Node('begin', position=self.position))
        self.position += 1
      elif following == '$':
        node.parts.append(Node('end', position=self.position))
        self.position += 1
      else:
        node.parts.append(self._repetition())
    return node

  def _repetition(self) -> Node:
    """Parses a symbol or a group, and how often it comes."""
    node = self._atom()
    while (following := self._peek()) and following in '*+?{':
      position = self.position
      if following == '{':
        bounds = self._bounds()
      else:
        bounds = _POSTFIX[following]
        self.position += 1
      if node.kind == 'repeat' and {bounds, node.bounds} <= set(
        _POSTFIX.values()
      ):
        # As a** is a*, and a?+ too.
        if bounds != node.bounds:
          node = node._replace(bounds=(0, None))
        continue
      node = Node('repeat', [node], bounds=bounds, position=position)
    return node

  def _bounds(self) -> tuple[int, int | None]:
    match = _REPETITION.match(self._regex, self.position)
    if not match:
      self.fail(
        self.position, "'{' does not start a repetition like {2} or {1,3}"
      )
    exactly, least, most = match.groups()
    for bound in match.groups():
      if len(bound or '') > 9 or int(bound or 0) > description.MAX_STATES:
        self.fail(
          self.position,
          f'{match.group()[:80]} repeats more than'
          f' {description.MAX_STATES:,} times',
        )
    if least and most and int(least) > int(most):
      self.fail(
        self.position, f'{match.group()} has its bounds in the wrong order'
      )
    self.position = match.end()
    if exactly is not None:
      return int(exactly), int(exactly)
    return int(least or 0), int(most) if most else None

  def _atom(self) -> Node:
    following, position = self._peek(), self.position
    if following == '(':
      return self._group()
    if following == '[':
      return self._set()
    if following == '.':
      self.position += 1
      every = range(len(self._alphabet))
      return Node('symbols', symbols=every, position=position)
    if following == '~':
      self.position += 1
      if self._peek() in ('', *'|&^)$*+?{'):
        self.fail(position, "'~' has nothing to its right")
      return Node('~', [self._atom()], position=position)
    if following in ('*', '+', '?', '{'):
      self.fail(position, f'{following!r} has nothing to repeat')
    if following in (']', '}'):
      self.fail(position, f'{following!r} closes nothing')
    return Node('symbols', symbols=self._symbols(), position=position)

  def _group(self) -> Node:
    opened = self.position
    self.position += 1
    if self._regex.startswith('?', self.position):
      if not self._regex.startswith('?:', self.position):
        self.fail(
          self.position,
          "'?' has nothing to repeat; groups are (...) or (?:...)",
        )
      self.position += 2
    node = self.alternatives()
    if self._peek() != ')':
      self.fail(opened, "'(' is never closed")
    self.position += 1
    # A group of its own, that no operator after it is joined with.
    return Node('concatenation', [node], position=opened)

  def _set(self) -> Node:
    """Parses [...]: some symbols, ranges of them, or all others."""
    opened = self.position
    self.position += 1
    is_negated = self._regex.startswith('^', self.position)
    self.position += is_negated
    found, is_first = set(), True
    while True:
      self._skip_spaces()
      if self.position >= len(self._regex) or (
        is_first and self._regex[self.position] == ']'
      ):
        self.fail(opened, "'[' does not start a list of symbols like [ab]")
      if self._regex[self.position] == ']':
        break
      found.update(self._range(is_first))
      is_first = False
    self.position += 1
    if is_negated:
      found = set(range(len(self._alphabet))) - found
    return Node('symbols', symbols=sorted(found), position=opened)

  def _range(self, is_first: bool) -> Sequence[int]:
    """Parses a symbol of a set, or a range of single characters."""
    position, regex = self.position, self._regex
    low = self._character()
    is_range = (
      low is not None
      and regex.startswith('-', self.position)
      and not regex.startswith('-]', self.position)
      and not (regex[position] == '-' and is_first)
    )
    if not is_range:
      self.position = position
      return self._symbols(is_in_set=True)
    self.position += 1
    high = self._character()
    if high is None or high < low:
      self.fail(position, f'{regex[position : self.position]} is no range')
    found = [
      i
      for i, symbol in enumerate(self._alphabet)
      if len(symbol) == 1 and low <= symbol <= high
    ]
    if not found:
      self.fail(
        position,
        f'the range {regex[position : self.position]} has no symbol of the'
        f' alphabet {", ".join(self._alphabet)}',
      )
    return found

  def _character(self) -> str | None:
    r"""Takes one character, perhaps escaped; None for a class like \d."""
    character = self._regex[self.position : self.position + 1]
    self.position += 1
    if character != '\\':
      return character or None
    escaped = self._regex[self.position : self.position + 1]
    self.position += 1
    if escaped.isalnum():
      return _CONTROLS.get(escaped)
    return escaped or None

  def _symbols(self, is_in_set: bool = False) -> Sequence[int]:
    r"""Parses a symbol, the longest that stands here, or a class like \d."""
    start = self.position
    escaped = self._regex[start + 1 : start + 2]
    if self._regex[start] == '\\' and escaped.isalnum():
      if escaped.lower() in _CLASSES:
        self.position += 2
        pattern, is_other = _CLASSES[escaped.lower()], escaped.isupper()
        return [
          i
          for i, symbol in enumerate(self._alphabet)
          if bool(pattern.fullmatch(symbol)) != is_other
        ]
      if escaped not in _CONTROLS:
        hint = ' (word boundaries cannot be asked for)' * (escaped in 'bB')
        self.fail(
          start,
          f'\\{escaped} is no escape{hint}; those are \\d \\w \\s \\D \\W \\S'
          f' \\n \\t \\r \\f \\v, and a backslash before {_RESERVED} ~ $ - and'
          ' other signs',
        )
    # The characters here, as far as any symbol goes, and where each one ends.
    text, ends = '', []
    while len(text) < self._longest and self.position < len(self._regex):
      character = self._regex[self.position]
      is_operator = (
        character == ']' if is_in_set else character in self._operators
      )
      if character != '\\' and is_operator:
        break
      plain = self._character()
      if plain is None:
        break
      text += plain
      ends.append(self.position)
    for length in range(len(text), 0, -1):
      if text[:length] in self._number:
        self.position = ends[length - 1]
        return [self._number[text[:length]]]
    if not text:
      self.fail(start, "'\\\\' stands before nothing")
    self._unknown(start, text[: 1 if self._longest == 1 else None])
