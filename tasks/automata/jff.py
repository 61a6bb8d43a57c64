"""Reading the files of JFLAP: finite automata and Moore machines, as XML."""

import itertools
from xml.etree import ElementTree
from xml.parsers import expat

from tasks.automata import description

_LINE = 'line'  # Of an element, among its attributes.
_MAX_ELEMENTS = 1_000_000


def read(text: str) -> description.Description:
  """Returns what a text says.

  As in JFLAP, a label of several characters reads one after the other, and an
  empty one reads none.

  Raises:
    ValueError: If it isn't XML, has a document type, or is of another kind of
      machine.
  """
  root = _parse(text)
  if root.tag != 'structure':
    raise ValueError(
      f'Expected the element <structure> of JFLAP, got <{root.tag[:80]}>.'
    )
  kind = (root.findtext('type') or '').strip()
  if kind not in ('fa', 'moore'):
    raise ValueError(
      f"Its type is {kind!r}; only 'fa' and 'moore' can be read."
    )
  names, starts, accepting, outputs = {}, [], [], {}
  for state in root.iter('state'):
    number = _required(state, 'id', state.get('id'))
    if number in names:
      raise ValueError(f'line {state.get(_LINE)}: the state {number!r} again.')
    names[number] = state.get('name') or number
    if state.find('initial') is not None:
      starts.append(number)
    if state.find('final') is not None:
      accepting.append(number)
    outputs[number] = (state.findtext('output') or '').strip() or 'none'
  if len(set(names.values())) < len(names):
    names = {number: number for number in names}
  used, edges, between = set(names.values()), [], []
  for transition in root.iter('transition'):
    ends = [
      _required(transition, tag, transition.findtext(tag))
      for tag in ('from', 'to')
    ]
    for end in ends:
      if end not in names:
        raise ValueError(
          f'line {transition.get(_LINE)}: a transition of the unknown state'
          f' {end!r}.'
        )
    label = transition.findtext('read') or ''
    if len(label) > 1 and kind == 'moore':
      raise ValueError(
        f'line {transition.get(_LINE)}: a Moore machine reads one symbol at a'
        f' time, not {label[:80]!r}.'
      )
    path = [names[ends[0]]]
    for _ in label[1:]:
      name = f'{path[0]}, {len(between)}'
      while name in used:
        name += '_'
      used.add(name)
      between.append(name)
      path.append(name)
      description.check_size(len(between), 1, 'The automaton')
    path.append(names[ends[1]])
    edges += [
      description.Edge(path[i], symbol, path[i + 1])
      for i, symbol in enumerate(label or [None])
    ]
  symbols = {edge.symbol for edge in edges} - {None}
  if not symbols:
    raise ValueError('It has no transition that reads a symbol.')
  return description.Description(
    description.in_order(list(symbols)),
    [*names.values(), *between],
    [names[number] for number in starts],
    edges,
    [names[number] for number in accepting],
    {names[number]: output for number, output in outputs.items()}
    if kind == 'moore'
    else None,
  )


def _required(element: ElementTree.Element, what: str, value: str | None):
  if value is None or not value.strip():
    raise ValueError(
      f'line {element.get(_LINE)}: a {element.tag} without {what!r}.'
    )
  return value.strip()


def _parse(text: str) -> ElementTree.Element:
  """Returns the root; elements know their lines. Entities are not expanded."""
  parser = expat.ParserCreate('utf-8')  # Whatever the file declares.
  builder = ElementTree.TreeBuilder()
  num_elements = itertools.count(1)

  def start(tag, attributes):
    if next(num_elements) > _MAX_ELEMENTS:
      raise ValueError(f'It has more than {_MAX_ELEMENTS:,} elements.')
    builder.start(tag, attributes | {_LINE: str(parser.CurrentLineNumber)})

  def refuse(*_):
    raise ValueError(
      f'line {parser.CurrentLineNumber}: a document type, which no file of'
      ' JFLAP has, is refused.'
    )

  parser.StartElementHandler = start
  parser.EndElementHandler = builder.end
  parser.CharacterDataHandler = builder.data
  parser.StartDoctypeDeclHandler = refuse
  try:
    parser.Parse(text.encode(), True)
  except expat.ExpatError as error:
    raise ValueError(
      f'line {error.lineno}: it is not valid XML:'
      f' {expat.errors.messages[error.code]}.'
    ) from error
  return builder.close()
