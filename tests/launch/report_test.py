"""The report as a user runs it."""

import pathlib

import numpy as np
import pytest

from experiments.sweeps import grid, presets, results
from tests.launch import commands

_CELL = grid.cells(presets.PRESETS['smoke'])[0]


@pytest.fixture
def workdir(tmp_path):
  num_runs = len(_CELL.runs)
  result = results.make(
    'smoke',
    _CELL,
    diverged_at=[-1] * num_runs,
    training_length=8,
    chance=0.5,
    accuracy={'': np.full((num_runs, 20), 0.75)},
    metrics=[],
    wall_time_s={'training': 1.0, 'evaluation': 2.0},
  )
  results.save(result, results.path(str(tmp_path / 'results'), 'smoke', _CELL))
  return tmp_path


def test_prints_the_table_and_writes_the_pages(workdir):
  status, stdout, stderr = commands.run('report', f'--workdir={workdir}')
  assert status == 0, stderr
  assert '75.0 / 75.0 / 75.0' in stdout
  assert str(workdir / 'report.html') in stdout
  assert {path.name for path in workdir.iterdir()} == {
    'results',
    'report.md',
    'report.csv',
    'report.html',
  }


def test_damaged_result_is_one_line_that_names_it(workdir):
  path = pathlib.Path(results.path(str(workdir / 'results'), 'smoke', _CELL))
  path.write_text(path.read_text()[:-9])
  status, _, stderr = commands.run('report', f'--results={workdir / "results"}')
  assert status == 1
  (line,) = stderr.splitlines()
  assert line.startswith('Error: ')
  assert str(path) in line


def test_a_run_has_no_report(tmp_path):
  (tmp_path / 'config.json').write_text('{}')
  for flag in ('workdir', 'results'):
    status, _, stderr = commands.run('report', f'--{flag}={tmp_path}')
    assert status == 1
    assert 'holds a trained run, not a sweep' in stderr
  assert [path.name for path in tmp_path.iterdir()] == ['config.json']
