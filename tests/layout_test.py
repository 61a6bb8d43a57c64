"""Arrows point one way: which folder may import which, and how long files are.

A new module needs no line here; a new folder, or a new arrow between two, is a
decision, and is made in `_ARROWS`.
"""

import ast
import graphlib
import pathlib

import pytest

_REPOSITORY = pathlib.Path(__file__).parents[1]
_MAX_LINES = 400

_MODELS_AND_TASKS = ('regulargpt_jax', 'tasks')
# What each folder may import, besides itself and other people's packages.
_ARROWS = {
  'regulargpt_jax': (),
  'tasks': (),
  # What tasks are made of.
  'tasks/automata': ('tasks/composition', 'tasks/task', 'tasks/text_files'),
  'experiments/engine': (),
  'experiments/formal': ('experiments/engine', *_MODELS_AND_TASKS),
  'experiments/sweeps': ('experiments/engine', 'experiments/formal'),
  'experiments/text': ('experiments/engine',),
  'experiments/language': (
    'experiments/engine',
    'experiments/text',
    'regulargpt_jax',
  ),
  'experiments/analysis': (
    'experiments/engine',
    'experiments/formal',
    'experiments/language',
    'experiments/text',
    *_MODELS_AND_TASKS,
  ),
  'launch': ('experiments',),
  'benchmarks': ('experiments', 'regulargpt_jax'),
}
_TOP = {folder.split('/')[0] for folder in _ARROWS} | {'tests'}


def _files(folder):
  return sorted((_REPOSITORY / folder).rglob('*.py'))


def _imports(path):
  """Yields what a file imports of ours, within functions too, as paths.

  `from a import b` gives a/b, though b may be no module: what is asked is only
  in which folder it lies.
  """
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
      assert not node.level, f'{path}: imports are absolute.'
      names = [f'{node.module}.{alias.name}' for alias in node.names]
    else:
      continue
    for name in names:
      if name.split('.')[0] in _TOP:
        yield name.replace('.', '/')


def _is_in(name, folders):
  """Whether a module or folder lies in one of the folders."""
  return any(f'{name}/'.startswith(f'{folder}/') for folder in folders)


def _wrong_arrows(folder):
  """Returns what a folder imports and must not, a line each."""
  allowed = (folder, *_ARROWS[folder])
  return [
    f'{path.relative_to(_REPOSITORY)} imports {name}'
    for path in _files(folder)
    for name in _imports(path)
    if not _is_in(name, allowed)
  ]


@pytest.mark.parametrize('folder', sorted(_ARROWS))
def test_a_folder_imports_only_what_is_below_it(folder):
  assert not _wrong_arrows(folder)


def test_no_circle():
  graphlib.TopologicalSorter(
    {
      folder: [
        below for below in _ARROWS if below != folder and _is_in(below, arrows)
      ]
      for folder, arrows in _ARROWS.items()
    }
  ).prepare()


def test_every_module_is_in_a_room():
  inside = {path for folder in _ARROWS for path in _files(folder)}
  outside = {path for top in _TOP - {'tests'} for path in _files(top)} - inside
  assert outside == {_REPOSITORY / 'experiments' / '__init__.py'}


def test_no_file_is_too_long():
  assert not [
    str(path.relative_to(_REPOSITORY))
    for top in _TOP
    for path in _files(top)
    if len(path.read_text().splitlines()) > _MAX_LINES
  ]
