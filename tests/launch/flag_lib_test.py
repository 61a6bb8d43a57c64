"""What all commands share, without starting one."""

import os
import sys

import jax
import pytest

from launch import flag_lib


@pytest.mark.parametrize(
  ('home', 'expected'),
  [
    ('/tmp/caches', '/tmp/caches/regulargpt_jax'),
    ('', '~/.cache/regulargpt_jax'),
    ('caches', '~/.cache/regulargpt_jax'),
    (None, '~/.cache/regulargpt_jax'),
  ],
)
def test_compiled_programs_go_into_the_folder_of_caches(
  home, expected, monkeypatch
):
  monkeypatch.delenv('XDG_CACHE_HOME', raising=False)
  if home is not None:
    monkeypatch.setenv('XDG_CACHE_HOME', home)
  before = jax.config.jax_compilation_cache_dir
  try:
    flag_lib.keep_compilations()
    found = jax.config.jax_compilation_cache_dir
  finally:
    jax.config.update('jax_compilation_cache_dir', before)
  assert found == os.path.expanduser(expected)


def test_what_nobody_reads_any_more_ends_without_an_error(monkeypatch):
  reader, writer = os.pipe()
  with open(writer, 'w') as stdout:
    monkeypatch.setattr(sys, 'stdout', stdout)
    assert not flag_lib._has_no_reader()
    os.close(reader)
    assert flag_lib._has_no_reader()
    flag_lib._print_to_nobody()
    print('x' * 2**20)
