"""The syntax of graphviz's language: nodes, edges, and what is said of them."""

import itertools
import re
from typing import NamedTuple

from tasks.automata import description

_TOKEN = re.compile(
  r"""
    (?P<skipped>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)
  | "(?P<quoted>[^"\\]*(?:\\.[^"\\]*)*)"
  | (?P<word>-?(?:\.\d+|\d+(?:\.\d*)?)|[^\W\d]\w*)
  | (?P<mark>->|--|[{}\[\];,=:])
  | (?P<html><)
  """,
  re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_KEYWORDS = ('strict', 'graph', 'digraph', 'node', 'edge', 'subgraph')


class Edge(NamedTuple):
  """An arrow.

  Attributes:
    source: Name of the node that it leaves.
    target: Name of the node that it enters.
    attributes: As `label`.
    line: Where it stands.
  """

  source: str
  target: str
  attributes: dict[str, str]
  line: int


class Graph(NamedTuple):
  """A directed graph.

  Attributes:
    nodes: Attributes by the node's name, in the order of first mention.
    edges: In their order.
  """

  nodes: dict[str, dict[str, str]]
  edges: list[Edge]


class _Token(NamedTuple):
  kind: str  # 'mark', 'keyword', 'word', 'quoted', or 'end'.
  text: str
  position: int


def parse(text: str) -> Graph:
  """Returns the graph that a text describes; subgraphs are part of it.

  Raises:
    ValueError: If it isn't one directed graph.
  """
  return _Parser(text).graph()


def _tokens(text: str):
  position = 0
  while position < len(text):
    match = _TOKEN.match(text, position)
    if match is None:
      raise _error(
        text, position, f'unexpected {text[position : position + 1]!r}'
      )
    kind, start = match.lastgroup, position
    position = match.end()
    if kind == 'html':
      depth = 1
      while depth:
        bracket = re.compile('[<>]').search(text, position)
        if bracket is None:
          raise _error(text, start, "'<' is never closed")
        depth += 1 if bracket.group() == '<' else -1
        position = bracket.end()
      inner = text[start + 1 : position - 1]
      yield _Token('quoted', re.sub('<[^<>]*>', '', inner), start)
    elif kind == 'word' and match.group().lower() in _KEYWORDS:
      yield _Token('keyword', match.group().lower(), start)
    elif kind == 'quoted':
      # The only escape of the language; those of labels are the reader's.
      joined = match.group(kind).replace('\\\n', '')
      yield _Token(kind, joined.replace('\\"', '"'), start)
    elif kind != 'skipped':
      yield _Token(kind, match.group(), start)
  yield _Token('end', 'the end', len(text))


def _error(text: str, position: int, problem: str) -> ValueError:
  line = text.count('\n', 0, position) + 1
  return ValueError(f'line {line}: {problem}.')


class _Parser:
  """Recursive descent, one token ahead; subgraphs are kept on a list."""

  def __init__(self, text):
    self._text = text
    self._tokens = _tokens(text)
    self._next = next(self._tokens)
    self._graph = Graph({}, [])
    self._line, self._line_position = 1, 0

  def _take(self, kind=None, text=None):
    """Returns the next token, or None if it isn't of the kind or text."""
    token = self._next
    if kind not in (None, token.kind) or text not in (None, token.text):
      return None
    if token.kind != 'end':
      self._next = next(self._tokens)
    return token

  def _expect(self, kind, text, what):
    token = self._take(kind, text)
    if token is None:
      raise self._fail(f'expected {what}, got {self._next.text[:80]!r}')
    return token

  def _fail(self, problem):
    return _error(self._text, self._next.position, problem)

  def _take_name(self):
    return self._take('word') or self._take('quoted')

  def _line_of(self, token):
    """Counts lines onwards from the last token that was asked for."""
    self._line += self._text.count('\n', self._line_position, token.position)
    self._line_position = token.position
    return self._line

  def graph(self):
    self._take('keyword', 'strict')
    self._expect('keyword', 'digraph', '`digraph`')
    self._take_name()
    self._expect('mark', '{', "'{'")
    # What `node [...]` and `edge [...]` said, by the depth of braces.
    defaults = [({}, {})]
    while defaults:
      if self._take('mark', '}'):
        defaults.pop()
        if self._next.text in ('->', '--') and self._next.kind == 'mark':
          raise self._fail('edges of whole subgraphs cannot be read')
      elif self._take('mark', ';'):
        pass
      elif self._take('keyword', 'subgraph'):
        self._take_name()
        self._expect('mark', '{', "'{'")
        defaults.append(tuple(dict(d) for d in defaults[-1]))
      elif self._take('mark', '{'):
        defaults.append(tuple(dict(d) for d in defaults[-1]))
      else:
        self._statement(*defaults[-1])
    self._expect('end', None, 'nothing after the graph')
    return self._graph

  def _statement(self, node_defaults, edge_defaults):
    for keyword, into in (
      ('graph', {}),
      ('node', node_defaults),
      ('edge', edge_defaults),
    ):
      if self._take('keyword', keyword):
        into.update(self._attributes())
        return
    first = self._next
    names = [self._node()]
    if self._take('mark', '='):
      # An attribute of the graph, not a node.
      if not self._take_name():
        raise self._fail('expected a value')
      return
    self._mention(names[0], node_defaults)
    while self._next.kind == 'mark' and self._next.text in ('->', '--'):
      if self._next.text == '--':
        raise self._fail("expected '->', got '--'")
      self._take()
      names.append(self._node())
      self._mention(names[-1], node_defaults)
    attributes = self._attributes()
    if len(names) == 1:
      self._graph.nodes[names[0]].update(attributes)
    line = self._line_of(first)
    description.check_size(1, len(self._graph.edges), 'The automaton')
    for source, target in itertools.pairwise(names):
      self._graph.edges.append(
        Edge(source, target, edge_defaults | attributes, line)
      )

  def _mention(self, name, defaults):
    if name not in self._graph.nodes:
      self._graph.nodes[name] = dict(defaults)
      # A node that isn't drawn is no state.
      description.check_size(len(self._graph.nodes) - 1, 1, 'The automaton')

  def _node(self):
    """Returns the name of a node; its port is left out."""
    token = self._take_name()
    if token is None:
      raise self._fail(f'expected a node or an edge, got {self._next.text!r}')
    while self._take('mark', ':'):
      if not self._take_name():
        raise self._fail('expected a port')
    return token.text

  def _attributes(self):
    """Returns what stands in brackets."""
    attributes = {}
    while self._take('mark', '['):
      while not self._take('mark', ']'):
        name = self._take_name()
        if name is None:
          raise self._fail(
            f"expected name=value or ']', got {self._next.text[:80]!r}"
          )
        value = name
        if self._take('mark', '='):
          value = self._take_name()
          if value is None:
            raise self._fail(f'expected a value of {name.text[:80]!r}')
        attributes[name.text] = value.text
        self._take('mark', ',') or self._take('mark', ';')
    return attributes
