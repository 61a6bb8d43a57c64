"""Writing automata: JSON, graphviz as AALpy writes it, and AT&T's text."""

from collections.abc import Callable, Mapping
import json
import os
import re
from typing import Any

from tasks.automata import att, dot


def to_json(fields: Mapping[str, Any]) -> str:
  """Returns the JSON text of an automaton.

  Args:
    fields: Of the automaton, see `fields`; so for the other writers.
  """
  return json.dumps(fields, indent=2, ensure_ascii=False) + '\n'


def to_dot(fields: Mapping[str, Any]) -> str:
  """Returns what graphviz draws, and AALpy and LearnLib read.

  Raises:
    ValueError: If an output has white space at an end, which readers drop, or
      a name a zero byte.
  """
  for output in fields.get('outputs', {}).values():
    if output != output.strip():
      raise ValueError(
        f'The output {output!r} has white space at an end, which a .dot does'
        ' not keep; write .json.'
      )
  node = {state: f's{i}' for i, state in enumerate(fields['states'])}
  outputs = fields.get('outputs')
  accepting = set(fields.get('accepting', ()))
  if outputs is None and not accepting:
    # Without a doublecircle only what a state answers says that it rejects.
    outputs = dict.fromkeys(node, 'FALSE')
  lines = ['digraph automaton {']
  for state, name in node.items():
    label, shape = _escaped(state), 'circle'
    if outputs is not None:
      label = f'{_in_record(label)}|{_in_record(_escaped(outputs[state]))}'
      shape = 'record, style=rounded'
    elif state in accepting:
      shape = 'doublecircle'
    lines.append(f'{name} [label="{label}", shape={shape}];')
  for state, row in fields['transitions'].items():
    for symbol, following in row.items():
      lines.append(
        f'{node[state]} -> {node[following]} [label="{_escaped(symbol)}"];'
      )
  lines.append('__start0 [label="", shape=none];')
  lines.append(f'__start0 -> {node[fields["start"]]} [label=""];')
  text = '\n'.join([*lines, '}']) + '\n'
  if '\0' in text:
    raise ValueError('A name has a zero byte, as no .dot has; write .json.')
  return text


def _escaped(text: str) -> str:
  r"""Returns the inside of a quoted label."""
  text = re.sub(f'(?={dot.ENTITY})&', '&amp;', text)
  return text.replace('\\', r'\\').replace('"', r'\"').replace('\n', r'\n')


def _in_record(label: str) -> str:
  r"""Escapes what divides the fields of a record."""
  for mark in '{}|<>':
    label = label.replace(mark, f'\\{mark}')
  return label


def to_att(fields: Mapping[str, Any]) -> str:
  """Returns AT&T's text of an automaton, its states as numbers.

  Raises:
    ValueError: If it has more than two answers, or a symbol has white space or
      means "no symbol" or a space there.
  """
  if 'outputs' in fields:
    raise ValueError(
      'The format .att has no machines of more than two answers; write .json or'
      ' .dot.'
    )
  for symbol in fields['alphabet']:
    is_other = symbol in att.EPSILONS or att.SPACE in symbol or '\0' in symbol
    if is_other or symbol != ''.join(symbol.split()):
      raise ValueError(
        f'The symbol {symbol!r} cannot stand in the format .att; write .json or'
        ' .dot.'
      )
  number = {state: i for i, state in enumerate(fields['states'])}
  start = fields['start']
  lines = []
  # The first line's state is the start.
  for state in (start, *(q for q in number if q != start)):
    for symbol, following in fields['transitions'][state].items():
      row = (number[state], number[following], symbol, symbol)
      lines.append('\t'.join(map(str, row)))
  lines += [str(number[state]) for state in fields['accepting']]
  return '\n'.join(lines) + '\n'


# By the ending of a file's name.
FORMATS: dict[str, Callable[[Mapping[str, Any]], str]] = {
  '.json': to_json,
  '.dot': to_dot,
  '.att': to_att,
}


def to_text(fields: Mapping[str, Any], path: str | os.PathLike) -> str:
  """Returns the contents of a file, in the format that its name says.

  Raises:
    ValueError: If it says none, or the automaton doesn't fit it.
  """
  ending = os.path.splitext(os.fspath(path))[1].lower()
  if ending not in FORMATS:
    raise ValueError(
      f'The format of {path} is unknown: its name must end in one of'
      f' {", ".join(FORMATS)}.'
    )
  return FORMATS[ending](fields)
