"""Comparisons: hand-computed numbers, all that is measured, what differs."""

import csv
import dataclasses
import io
import json

from matplotlib import image
import numpy as np
import pytest

from experiments.engine import workdir as workdir_lib
from experiments.formal import config, evaluation, report
from experiments.sweeps import comparison, results
from tests import refusals
from tests.experiments.sweeps import made

_EXPERIMENT = config.Experiment(
  sequence_length=4, max_range_test_length=10, architecture='rnn'
)


def _run(folder, accuracy, **fields):
  """Writes the evaluation of a run."""
  folder.mkdir()
  experiment = dataclasses.replace(
    _EXPERIMENT, max_range_test_length=len(accuracy), **fields
  )
  tests = {'': evaluation.Test(np.array(accuracy)[None])}
  report.save(experiment, tests, 0.5, str(folder))
  return str(folder)


@pytest.fixture
def places(tmp_path):
  short = _run(tmp_path / 'short', [1.0] * 4 + [0.5] * 4)
  longer = _run(
    tmp_path / 'longer',
    [1.0] * 6 + [0.75, 0.25] + [0.0] * 2,
    sequence_length=6,
    learning_rate=0.01,
    log_every=7,
    regex='0' * 50,
  )
  return [short, longer]


def test_numbers_by_hand(places, tmp_path, capsys):
  output = tmp_path / 'compared'
  comparison.compare(places, str(output))
  text = capsys.readouterr().out
  rows = [
    [cell.strip() for cell in line.split('|')[1:-1]]
    for line in text.splitlines()
    if line.startswith('|')
  ]
  assert rows[0][-1] == 'on 7..8'
  assert rows[2] == [
    places[0],
    '4',
    '100.0',
    '5..8',
    '50.0',
    '50.0 at 5',
    '50.0',
    '1',
    '0 of 1',
    '50.0',
  ]
  assert rows[3][1:] == [
    '6',
    '100.0',
    '7..10',
    '25.0',
    '0.0 at 9',
    '50.0',
    '1',
    '0 of 1',
    '50.0',
  ]
  differing = {row[0]: row[1:] for row in rows[6:]}
  assert differing.keys() == {
    'learning_rate',
    'sequence_length',
    'task',
    'regex',
    'max_range_test_length',
  }
  assert differing['learning_rate'] == ['0.001', '0.01']
  assert differing['regex'][0] == '-'
  assert differing['task'] == ['parity_check', '-']
  assert differing['regex'][1].startswith('0' * 40 + '... (')
  lines = list(csv.reader(io.StringIO((output / 'comparison.csv').read_text())))
  assert lines[0] == ['length', *places]
  assert lines[7:] == [
    ['7', '0.5', '0.75'],
    ['8', '0.5', '0.25'],
    ['9', '', '0.0'],
    ['10', '', '0.0'],
  ]
  assert image.imread(output / 'comparison.png').std() > 0
  assert places[0] in (output / 'comparison.md').read_text()


def test_lengths_that_one_is_not_tested_on_are_not_compared(
  places, tmp_path, capsys
):
  nan = float('nan')
  gaps = _run(tmp_path / 'gaps', [nan] * 6 + [1.0, nan, 0.5])
  comparison.compare([places[1], gaps], str(tmp_path))
  rows = [
    [cell.strip() for cell in line.split('|')[1:-1]]
    for line in capsys.readouterr().out.splitlines()
    if line.startswith('|')
  ]
  assert rows[0][-1] == 'on 7..9'
  assert [row[3] for row in rows[2:4]] == ['7..10', '7..9']
  assert [row[-1] for row in rows[2:4]] == ['37.5', '75.0']  # Of 7 and 9.


def test_measured_cells_stand_beside_runs(places, tmp_path, capsys):
  folder = tmp_path / 'sweep' / 'results'
  for result in (made.FAITHFUL, made.EXTRA, made.TABLE_2):
    cell = made.cell(result.preset, f'{result.task}/{result.model}')
    results.save(result, results.path(str(folder), result.preset, cell))
  file = str(folder / 'table1' / 'parity_check' / 'regular_gpt_c2.json')
  sweep = str(tmp_path / 'sweep')
  comparison.compare([sweep, file, places[0]], str(tmp_path / 'compared'))
  text = capsys.readouterr().out
  for name in (
    f'{sweep}: table1/parity_check/regular_gpt_c2',
    f'{sweep}: table2/parity_check/transformer, p=0.1',
    file,
    places[0],
  ):
    assert f'| {name} ' in text
  # The runs of the best learning rates, as the report has it, and said so.
  extra = f'{sweep}: table1_extra/even_pairs/regular_gpt_c2_extra'
  for name, score, runs in ((file, '70.0', '3 of 9'), (extra, '85.0', '9')):
    (line,) = (x for x in text.splitlines() if x.startswith(f'| {name} '))
    cells = [cell.strip() for cell in line.split('|')]
    assert (cells[5], *cells[8:10]) == (score, runs, '0 of 9')
  assert '[0.0001, 0.0003, 0.0005]' in text
  assert 'a choice that sees the test' in text
  (line,) = (line for line in text.splitlines() if line.startswith('| seed'))
  assert '[0, 1, 2]' in line


def test_what_was_compiled_was_trained_on_nothing(places, tmp_path, capsys):
  compiled = _run(tmp_path / 'compiled', [1.0] * 8, training_steps=0)
  comparison.compare([places[0], compiled], str(tmp_path / 'compared'))
  line = capsys.readouterr().out.splitlines()[3]
  cells = [cell.strip() for cell in line.split('|')[2:-1]]
  assert cells[:4] == ['-', '-', '1..8', '100.0']
  assert cells[6:] == ['1', '1 of 1', '100.0']


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    (lambda c: {**c, 'accuracy': {'1': 2.0}}, 'leave 0..1'),
    (lambda c: {**c, 'accuracy': {'1': 'a'}}, 'leave 0..1'),
    (lambda c: {**c, 'accuracy': {'99': 1.0}}, 'not within 1..8'),
    (lambda c: {**c, 'accuracy': {}}, 'not within 1..8'),
    (lambda c: {**c, 'accuracy': {'a': 1.0}}, 'invalid literal'),
    (lambda c: {**c, 'chance': None}, 'leave 0..1'),
    (lambda c: {**c, 'experiment': {'batch': 1}}, 'batch'),
    (lambda c: {**c, 'experiment': {'data_dir': ''}}, 'data_dir'),
    (lambda c: [], 'range_evaluation.json'),
    (lambda c: {}, 'it has no'),
  ],
)
def test_a_damaged_evaluation_is_one_line(change, message, places):
  with open(f'{places[0]}/range_evaluation.json', encoding='utf-8') as f:
    contents = json.load(f)
  with open(f'{places[0]}/range_evaluation.json', 'w', encoding='utf-8') as f:
    json.dump(change(contents), f)
  with refusals.one_line(message):
    report.load(places[0])


def test_what_cannot_be_compared(places, tmp_path):
  def refused(message, *given):
    with pytest.raises(ValueError, match=message):
      comparison.compare(given, str(tmp_path / 'compared'))

  refused('--workdirs names no folder')
  refused('same folder twice', places[0], places[0])
  refused('--workdirs has an empty name', places[0], '')
  file = f'{places[0]}/range_evaluation.json'
  refused('it is no measured cell of a sweep, which has preset', file)
  refused('There is no folder', places[0], str(tmp_path / 'absent'))
  (tmp_path / 'new').mkdir()
  workdir_lib.claim(_EXPERIMENT, str(tmp_path / 'new'))
  refused('nothing to compare', places[0], str(tmp_path / 'new'))
  assert not (tmp_path / 'compared').exists()


def test_of_many_what_differs_is_a_row_each(tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(comparison, '_MAX_COLUMNS', 2)
  folder = tmp_path / 'results'
  cell = made.cell('table2', 'parity_check/transformer')
  results.save(made.TABLE_2, results.path(str(folder), 'table2', cell))
  comparison.compare([str(folder)], str(tmp_path / 'compared'))
  lines = capsys.readouterr().out.partition('What differs:')[2].splitlines()
  assert 'task_params at test' in lines[2]
  assert [line.split('|')[1].strip()[-5:] for line in lines[4:9]] == [
    f'p={p}' for p in (0.1, 0.3, 0.5, 0.7, 0.9)
  ]


def test_tests_of_a_sweep_differ_in_their_parameters(tmp_path, capsys):
  folder = tmp_path / 'sweep' / 'results'
  cell = made.cell('table2', 'parity_check/transformer')
  file = results.path(str(folder), 'table2', cell)
  results.save(made.TABLE_2, file)
  for place in (str(tmp_path / 'sweep'), file):
    comparison.compare([place], str(tmp_path / 'compared'))
    lines = capsys.readouterr().out.splitlines()
    (line,) = (x for x in lines if x.startswith('| task_params at test'))
    assert '"probability": 0.1' in line and '"probability": 0.9' in line
