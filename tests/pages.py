"""README.md and the other pages, as what they tell a reader to do.

Fenced `bash` and `python`, and commands in backticks in the text, are steps. A
Python snippet whose first line is `# <path>.py` is that file.
"""

from collections.abc import Iterator, Mapping
import pathlib
import re
import shlex
from typing import NamedTuple

REPOSITORY = pathlib.Path(__file__).parents[1]
NAMES = [
  'README.md',
  'CONTRIBUTING.md',
  'results/README.md',
  *sorted(f'docs/{path.name}' for path in (REPOSITORY / 'docs').glob('*.md')),
]

_STEP = re.compile(
  r'^```(?P<language>\w*)\n(?P<block>.*?)^```$|`(?P<span>[^`]+)`', re.M | re.S
)
_LINK = re.compile(r'\]\(([^)]+)\)')
_COMMAND = re.compile(r'(\w+ -n \d+ )?python -m ')


class Step(NamedTuple):
  """What a page says to do: `bash`, or `python`."""

  language: str
  text: str


def read(name: str) -> str:
  """Returns a page's text."""
  return (REPOSITORY / name).read_text()


def steps(name: str) -> Iterator[Step]:
  """Yields a page's steps, but for files, from top to bottom."""
  for found in _STEP.finditer(read(name)):
    language, text = found['language'], found['block']
    if language == 'python' and not file_name(text):
      yield Step('python', text)
    elif language == 'bash':
      yield Step('bash', text)
    elif found['span'] and _COMMAND.match(found['span']):
      yield Step('bash', ' '.join(found['span'].split()) + '\n')


def spans(name: str) -> list[str]:
  """Returns what stands in backticks in a page's text."""
  return [
    found['span'] for found in _STEP.finditer(read(name)) if found['span']
  ]


def links(name: str) -> list[str]:
  """Returns where a page's links and pictures point, but for the web."""
  targets = _LINK.findall(read(name))
  return [target for target in targets if '://' not in target]


def headings(text: str) -> set[str]:
  """Returns a page's headings as links name them."""
  return {
    re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')
    for heading in re.findall(r'^#+ (.+)$', text, re.M)
  }


def file_name(snippet: str) -> str | None:
  """Returns which file a snippet is, if it is one."""
  found = re.match(r'# (\S+\.py)\n', snippet)
  return found and found[1]


def write_files(folder: pathlib.Path) -> None:
  """Writes the files that pages show."""
  for page in NAMES:
    for found in _STEP.finditer(read(page)):
      path = found['language'] == 'python' and file_name(found['block'])
      if path:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(found['block'])


def script(name: str, python: str, stubs: Mapping[str, str]) -> str:
  """Returns a page as a script for bash, which stops at the first error.

  Args:
    name: Of the page.
    python: Body of the function that `python` is.
    stubs: Bodies of other programs' functions.
  """
  lines = ['set -eu']
  for program, body in {'python': python, **stubs}.items():
    lines.append(f'{program}() {{\n{body}\n}}')
  for step in steps(name):
    if step.language == 'bash':
      lines.append(step.text)
    else:
      lines.append(f'python -c {shlex.quote(step.text)}')
  return '\n'.join(lines)
