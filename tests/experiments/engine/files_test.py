"""Paths that are refused, in one line and before anything is made."""

import os

import pytest

from experiments.engine import files, locks
from tests import refusals


@pytest.mark.parametrize(
  'use',
  [
    files.make_folder,
    files.names,
    files.exists,
    files.read,
    lambda path: files.write_atomically(path, ''),
    lambda path: locks.locked(path).__enter__(),
  ],
)
@pytest.mark.parametrize(
  ('path', 'message'),
  [
    ('s3://bucket/run', 's3:// neither'),
    ('foo://run', 'foo:// neither'),
    ('file:///tmp/run', 'file:// neither'),
    ('run_\udcff', 'must be UTF-8'),
  ],
)
def test_a_path_of_another_kind_is_one_line(
  use, path, message, tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  with refusals.one_line(message) as info:
    use(path)
  assert repr(path)[1:-1] in str(info.value)
  assert not list(tmp_path.iterdir())


def test_paths_become_absolute(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert files.absolute('a/../b') == os.path.join(tmp_path, 'b')


def test_files_below_a_folder(tmp_path):
  (tmp_path / 'b' / 'c').mkdir(parents=True)
  for name in ('b/c/2', 'b/1', 'a', '.hidden'):
    (tmp_path / name).touch()
  assert files.below(tmp_path) == ['.hidden', 'a', 'b/1', 'b/c/2']
  assert files.below(tmp_path / 'none') == []
