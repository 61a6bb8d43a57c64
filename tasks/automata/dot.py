"""Reading automata in graphviz's language, as AALpy and LearnLib write them."""

from html import entities
import re

from tasks.automata import description, dot_syntax

# A character's name, or its number.
ENTITY = r'&(?:[A-Za-z]\w*|#\d{1,7}|#[xX][\da-fA-F]{1,6});'
_START = re.compile(r'__start\d*')
_EPSILONS = ('ε', '<eps>', '<epsilon>', 'epsilon')
_INVISIBLE = ('none', 'point', 'plaintext', 'plain')


def read(text: str) -> description.Description:
  """Returns what a text says.

  A node is a state, named by its label, an edge a transition by the symbol that
  is its label. An accepting state is a `doublecircle`; a label `state|output`
  of every state makes it a Moore machine. The start is the node that an edge
  of a node `__start0` leads to, or of any node that isn't drawn.

  In AALpy's and LearnLib's files, which have the former, an edge is one symbol;
  in those with the latter, which people write by hand, `a, b` is two, and `ε`
  none.

  Raises:
    ValueError: If it isn't such a graph.
  """
  graph = dot_syntax.parse(text)
  entered = {edge.target for edge in graph.edges}
  sources = {
    name
    for name, attributes in graph.nodes.items()
    if name not in entered
    and (
      _START.fullmatch(name)
      or attributes.get('shape') in _INVISIBLE
      or attributes.get('style') == 'invis'
    )
  }
  has_lists = not any(_START.fullmatch(name) for name in sources)
  nodes = {n: a for n, a in graph.nodes.items() if n not in sources}
  starts = dict.fromkeys(
    edge.target for edge in graph.edges if edge.source in sources
  )
  if not starts:
    raise ValueError(
      'No state is the start: there is no edge `__start0 -> state`.'
    )
  accepting = {
    name
    for name, attributes in nodes.items()
    if attributes.get('shape') == 'doublecircle'
    or attributes.get('peripheries') == '2'
  }
  names, outputs = _labels(nodes, bool(accepting))
  edges = []
  for edge in graph.edges:
    if edge.source in sources:
      continue
    label = _unescaped(edge.attributes.get('label', ''))
    if not (label.strip(', \n') if has_lists and label != ',' else label):
      raise ValueError(
        f'line {edge.line}: the edge {edge.source!r} -> {edge.target!r} has no'
        ' label, which is its symbol.'
      )
    symbols = [label]
    if has_lists and label != ',':
      parts = [part.strip() for part in re.split('[,\n]', label)]
      symbols = [None if p in _EPSILONS else p for p in parts if p]
    edges += [
      description.Edge(names[edge.source], symbol, names[edge.target])
      for symbol in symbols
    ]
  symbols = {edge.symbol for edge in edges} - {None}
  if not symbols:
    raise ValueError('It has no edge between states that is a symbol.')
  if not accepting and outputs is None:
    hint = ''
    if all('/' in symbol for symbol in symbols):
      hint = ' (Mealy machines, of edges input/output, cannot be read.)'
    raise ValueError(
      'No state is accepting: none is a doublecircle, and not every one has an'
      f' output, label="state|output".{hint}'
    )
  return description.Description(
    description.in_order(list(symbols)),
    list(names.values()),
    [names[name] for name in starts],
    edges,
    [names[name] for name in names if name in accepting],
    outputs,
  )


def _labels(nodes, is_acceptor) -> tuple[dict[str, str], dict | None]:
  """Returns the states' names by the nodes', and outputs by the former."""
  labels = {
    name: attributes.get('label', r'\N') for name, attributes in nodes.items()
  }
  parts = {name: _record(label, name) for name, label in labels.items()}
  is_moore = not is_acceptor and all(len(part) == 2 for part in parts.values())
  names = {}
  for node, label in labels.items():
    name = parts[node][0] if is_moore else _unescaped(label, node)
    names[node] = name or node or '""'
  if len(set(names.values())) < len(names):
    names = {node: node or '""' for node in names}
  if not is_moore:
    return names, None
  return names, {names[node]: part[1] for node, part in parts.items()}


def _record(label: str, node: str) -> list[str]:
  """Returns the fields of a label as `{ state | output }`."""
  label = label.strip()
  if label.startswith('{') and label.endswith('}'):
    label = label[1:-1]
  fields = re.fullmatch(r'((?:[^\\|]|\\.)*)\|(.*)', label, re.DOTALL)
  parts = fields.groups() if fields else [label]
  return [
    _unescaped(re.sub('^ *<[^<>]*>', '', part), node).strip() for part in parts
  ]


def _character(entity: str) -> str:
  """Returns what an entity means; itself, if nothing."""
  name = entity[1:-1]
  if name[0] != '#':
    code = entities.name2codepoint.get(name)
  else:
    code = int(name[2:], 16) if name[1] in 'xX' else int(name[1:])
  is_one = code is not None and code < 0x110000 and not 0xD800 <= code < 0xE000
  return chr(code) if is_one else entity


def _unescaped(label: str, node: str = '') -> str:
  r"""Returns a label's text.

  `\\` is a backslash, `\n` a new line, `&amp;` an ampersand.
  """

  def plain(match):
    character = match.group(1)
    if character is None:
      return _character(match.group())
    if character in 'nlr':
      return '\n'
    return node if character == 'N' else character

  return re.sub(rf'\\(.)|{ENTITY}', plain, label, flags=re.DOTALL)
