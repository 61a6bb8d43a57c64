"""Reports: hand-computed numbers, nothing hidden, pages that stand alone."""

import csv
import dataclasses
import io
import pathlib
import re

import numpy as np
import pytest

from experiments.engine import results as results_lib
from experiments.sweeps import (
  grid,
  numbers,
  paper,
  presets,
  protocols,
  results,
  spreadsheet,
  tables,
)
from experiments.sweeps import pictures as sweep_pictures
from experiments.sweeps import report as sweep_report
from tests.experiments.sweeps import made

_REPOSITORY = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('sweep') / 'results'
  for result in made.ALL:
    cell = made.cell(result.preset, f'{result.task}/{result.model}')
    results.save(result, results.path(str(folder), result.preset, cell))
  return folder


@pytest.fixture(scope='module')
def written(folder):
  """The folder of the report that is written by default."""
  sweep_report.report(str(folder.parent), None, None, None)
  return folder.parent


def test_no_cell_is_a_formula():
  hostile = dataclasses.replace(
    made.SHORT,
    environment={**made.SHORT.environment, 'git_commit': '=1+1', 'jax': '@A1'},
    date='-2+3',
  )
  text = spreadsheet.comma_separated(numbers.tables([hostile]))
  lines = list(csv.DictReader(io.StringIO(text, newline='')))
  (line,) = (line for line in lines if line['status'] == 'measured')
  assert line['git_commit'] == "'=1+1"
  assert line['date'] == "'-2+3"
  for line in lines:
    for name, text in line.items():
      assert not text.startswith(('=', '+', '@')), (name, text)
      is_number = name.startswith('difference')
      assert is_number or not text.startswith('-'), (name, text)


def _lines(written):
  with open(written / 'report.csv', newline='', encoding='utf-8') as f:
    return list(csv.DictReader(f))


def _line(lines, *key):
  (found,) = (line for line in lines if tuple(line.values())[: len(key)] == key)
  return found


def test_numbers_by_hand(written):
  lines = _lines(written)
  line = _line(lines, 'table1', 'parity_check', 'regular_gpt_c2')
  expected = {
    'max_percent': 85,
    'avg_percent': 70,
    'mean_percent': 60,
    'paper_max_percent': 100,
    'paper_avg_percent': 100,
    'difference_max': -15,
    'difference_avg': -30,
    'best_learning_rates': 3e-4,
    'runs': 9,
    'training_steps': 100_000,
    'longest_length': 500,
  }
  assert {name: float(line[name]) for name in expected} == expected
  assert line['status'] == 'measured'
  assert line['not_as_preset'] == ''
  line = _line(lines, 'table1_extra', 'even_pairs', 'regular_gpt_c2_extra')
  assert float(line['avg_percent']) == 85
  # No rate is better than another.
  assert line['best_learning_rates'] == '0.0001, 0.0003, 0.0005'
  assert line['paper_avg_percent'] == line['difference_avg'] == ''
  same_length, extrapolation = (
    _line(lines, 'table2', 'parity_check', 'transformer', 'p=0.9', setting)
    for setting in (paper.SAME_LENGTH, paper.EXTRAPOLATION)
  )
  assert float(same_length['avg_percent']) == 90
  assert float(same_length['difference_avg']) == 12.8
  assert float(extrapolation['avg_percent']) == 50
  assert float(extrapolation['difference_avg']) == 0
  assert same_length['paper_max_percent'] == ''


def _rows(text, title):
  """Returns a Markdown section's tables, as cells by row."""
  section = text.split(f'### {title}')[1].split('###')[0]
  return [
    [cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
    for line in section.splitlines()
    if line.startswith('|')
  ]


def test_markdown_has_the_papers_numbers_beside_ours(written):
  text = (written / 'report.md').read_text()
  rows = _rows(text, 'table1:')
  at = [row[0] for row in rows].index('parity_check')
  column = rows[0].index('regular_gpt_c2')
  assert [(row[1], row[column]) for row in rows[at : at + 3]] == [
    ('measured', '85.0 / 70.0 / 60.0'),
    ('paper', '100.0 / 100.0'),
    ('difference', '-15.0 / -30.0'),
  ]
  # Ours, named as such, beside the faithful ones.
  at = [row[0] for row in rows].index('even_pairs')
  column = rows[0].index('regular_gpt_c2_extra (ours)')
  assert rows[at][column] == '85.0 / 85.0 / 85.0'
  assert rows[at + 1][column] == ''
  assert rows[at][rows[0].index('regular_gpt_c2')] == 'missing'
  rows = _rows(text, 'table2:')
  labels = [row[0] for row in rows]
  at = labels.index('parity_check, p=0.9, same length')
  column = rows[0].index('transformer')
  assert rows[at][column] == '90.0 / 90.0 / 90.0'
  assert rows[at + 1][column] == '- / 77.2'
  assert rows[at + 2][column] == '- / +12.8'


def test_every_number_of_a_preset_is_shown_or_missing(written):
  lines = _lines(written)
  for name in ('table1', 'table1_extra', 'table2'):
    # Table 2 has two settings for each test.
    assert [
      (line['task'], line['model'], line['test'])
      for line in lines
      if line['preset'] == name and line['setting'] == paper.EXTRAPOLATION
    ] == [
      (cell.task, cell.model, test)
      for cell in grid.cells(presets.PRESETS[name])
      for test in cell.tests
    ]
  measured = {
    (line['preset'], line['task'], line['model'])
    for line in lines
    if line['status'] == 'measured'
  }
  assert measured == {(r.preset, r.task, r.model) for r in made.ALL}
  for line in lines:
    assert (line['status'] == 'missing') == (line['avg_percent'] == '')
  text = (written / 'report.md').read_text()
  assert '### table1: 3 of 72 cells measured' in text
  assert '### table2: 1 of 3 cells measured' in text
  assert 'smoke' not in text


def test_what_is_not_as_the_preset_and_what_diverged_is_said(written):
  difference = (
    'training_steps 1000 (preset: 100000); 2 runs of learning rate 0.0003 and'
    ' seeds 0, 1 (preset: 9 runs of learning rates 0.0001, 0.0003, 0.0005 and'
    ' seeds 0, 1, 2)'
  )
  line = _line(_lines(written), 'table1', 'cycle_navigation', 'rnn')
  assert line['not_as_preset'] == difference
  assert (line['training_steps'], line['diverged_runs']) == ('1000', '1')
  for name in ('report.md', 'report.html'):
    text = (written / name).read_text()
    assert '80.0 / 60.0 / 60.0 † ‡' in text
    assert text.count('‡') == text.count('†') == 2  # It, and the legend.
    joined = ' '.join(text.split())
    assert difference in joined
    assert 'learning rate 0.0003, seed 1, at step 700' in joined


def test_each_cell_says_how_it_was_measured_what_is_usual_once(written):
  text = (written / 'report.md').read_text()
  joined = ' '.join(text.split())
  assert (
    'Unless it is said otherwise: chance: 50.0; diverged: none; steps: 100000;'
    ' lengths: trained up to 40, tested 41..500; device: 2 x NVIDIA H100; date:'
    ' 2023-05-05; versions: jax 0.10.2, flax 0.12.8, Python 3.11.7; commit:'
    ' 0123456789 - ' in joined
  )
  assert (
    '- parity_check, regular_gpt_c2: learning rate: 0.0003; score of each'
    ' run by learning rate: 0.0001: 60.0 50.0 70.0, 0.0003: 75.0 70.0 65.0,'
    ' 0.0005: 85.0 30.0 35.0; perfect runs: 0 of 9; training + evaluation:'
    ' 1:02:03 + 0:01:01 - ' in joined
  )
  # One cell alone says all of itself.
  alone = (
    '- parity_check, transformer: chance: 50.0; learning rate: 0.0001, 0.0003,'
  )
  assert alone in joined
  for line in text.splitlines():
    assert len(line) <= 80 or line.startswith('|')


def test_markdown_tables_are_rectangular_whatever_a_file_says(written):
  text = (written / 'report.md').read_text()
  assert '<' not in text
  for title in ('table1:', 'table2:'):
    rows = _rows(text, title)
    assert len({len(row) for row in rows}) == 1


def test_perfect_runs_of_many_seeds_have_an_interval():
  """Wilson's: (k + z^2 / 2 +- z sqrt(k (n - k) / n + z^2 / 4)) / (n + z^2)."""
  beyond = [1.0] * 48 + [0.5] * 16
  accuracy = np.repeat(np.array(beyond)[:, None], 500, axis=1)
  result = made.result('perfect', 'parity_check/recipe_c2', {'': accuracy})
  (entries,) = numbers.tables([result]).values()
  header, (row,) = tables.provenance(entries)
  z = 1.959964
  half = z * (48 * 16 / 64 + z**2 / 4) ** 0.5
  low, high = ((48 + z**2 / 2 + sign * half) / (64 + z**2) for sign in (-1, 1))
  assert row[header.index('perfect runs')] == (
    f'48 of 64 (95%: {100 * low:.0f}..{100 * high:.0f}%)'
  )


def test_every_model_has_a_style_of_its_own():
  models = {
    model
    for name, preset in presets.PRESETS.items()
    if name not in protocols.PRESETS  # Whose reports have no picture.
    for model in preset.models
  }
  assert set(sweep_pictures.STYLES) == models
  for name in ('color', 'linestyle', 'marker'):
    assert len({str(s[name]) for s in sweep_pictures.STYLES.values()}) == len(
      models
    )


def test_with_results_nothing_is_written_unless_asked_for(
  folder, tmp_path, capsys, written
):
  before = sorted(folder.rglob('*'))
  sweep_report.report(None, str(folder), None, None)
  assert sorted(folder.rglob('*')) == before
  printed = capsys.readouterr().out
  assert f'# Report\n\n{printed[:-1]}' == (written / 'report.md').read_text()
  output = tmp_path / 'new' / 'folder'
  sweep_report.report(None, str(folder), str(output), None)
  for name in ('report.md', 'report.csv', 'report.html'):
    assert (output / name).read_text() == (written / name).read_text()


@pytest.mark.parametrize(
  ('workdir', 'folder', 'message'),
  [
    (None, None, 'neither'),
    ('', '', 'neither'),
    ('a', 'b', 'both'),
    (None, 'absent', 'no folder absent'),
    ('absent', None, 'no folder absent'),
  ],
)
def test_bad_input_is_named(workdir, folder, message, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'empty').mkdir()
  with pytest.raises(ValueError, match=message):
    sweep_report.report(workdir, folder, None, None)


def _between(text):
  return text.split(sweep_report.BEGIN)[1].split(sweep_report.END)[0]


def test_page_is_renewed_between_its_markers(folder, tmp_path):
  page = tmp_path / 'page.md'
  frame = f'Before.\n{sweep_report.BEGIN}{{}}{sweep_report.END}\nAfter.\n'
  page.write_text(frame.format('old'))
  for _ in range(2):
    sweep_report.report(None, str(folder), None, str(page))
    text = page.read_text()
    assert text == frame.format(_between(text))
    assert '85.0 / 70.0 / 60.0' in text


def test_without_results_nothing_is_written(tmp_path, capsys):
  page = tmp_path / 'page.md'
  page.write_text(f'{sweep_report.BEGIN}old{sweep_report.END}')
  before = page.read_bytes()
  (tmp_path / 'empty').mkdir()
  sweep_report.report(str(tmp_path / 'empty'), None, None, str(page))
  assert capsys.readouterr().out == 'Nothing is measured yet.\n'
  assert page.read_bytes() == before
  assert not list((tmp_path / 'empty').iterdir())


def test_a_page_is_renewed_last(folder, tmp_path):
  page = tmp_path / 'page.md'
  page.write_text(f'{sweep_report.BEGIN}old{sweep_report.END}')
  (tmp_path / 'file').touch()
  with pytest.raises(OSError):
    sweep_report.report(None, str(folder), str(tmp_path / 'file'), str(page))
  assert 'old' in page.read_text()
  page.write_bytes(b'\xff')
  with pytest.raises(ValueError, match=r'page\.md is not text in UTF-8'):
    sweep_report.report(None, str(folder), str(tmp_path / 'new'), str(page))
  assert not (tmp_path / 'new').exists()


def test_page_without_markers_is_refused_and_kept(folder, tmp_path):
  page = tmp_path / 'page.md'
  for text in ('', f'{sweep_report.END}\n{sweep_report.BEGIN}\n'):
    page.write_text(text)
    with pytest.raises(ValueError, match=re.escape(str(page))):
      sweep_report.report(None, str(folder), None, str(page))
    assert page.read_text() == text


def test_a_page_that_asks_for_what_is_not_measured_is_kept(folder, tmp_path):
  page = tmp_path / 'page.md'
  begin = sweep_report.BEGIN.replace('results', 'results of xlstm')
  page.write_text(f'{begin}old{sweep_report.END}')
  with pytest.raises(ValueError, match='results of xlstm; there are none'):
    sweep_report.report(None, str(folder), None, str(page))
  assert 'old' in page.read_text()


@pytest.mark.parametrize('page', ['results.md', 'state_tracking.md'])
def test_the_repository_shows_its_results(page):
  found = sweep_report.measured(str(_REPOSITORY / results_lib.FOLDER))
  path = _REPOSITORY / 'docs' / page
  assert sweep_report.renewed(str(path), *found) == path.read_text()
