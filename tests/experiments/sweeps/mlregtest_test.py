"""A sweep over a folder of automata, and its report by class."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from experiments.formal import builders
from experiments.sweeps import (
  grid,
  mlregtest,
  presets,
  report,
  results,
  sweep,
)
from tests.tasks import automata

_TINY = dataclasses.replace(
  presets.PRESETS['mlregtest'],
  base={
    **presets.PRESETS['mlregtest'].base,
    'embedding_dim': 8,
    'num_heads': 2,
    'batch_size': 4,
    'training_steps': 3,
    'sequence_length': 4,
    'curriculum_params': {'values': [3, 4]},
    'min_range_test_length': 3,
    'max_range_test_length': 6,
    'range_test_batch_size': 8,
  },
)


@pytest.fixture
def folder(tmp_path):
  path = tmp_path / 'automata'
  path.mkdir()
  (path / '02.01.Zp.1.2.0.att').write_text(automata.ATT)
  (path / 'mine.dot').write_text(automata.DOT)
  (path / 'README.md').write_text('Not an automaton.')
  return path


def test_each_automaton_of_a_folder_is_a_task(folder):
  preset = presets.with_tasks(presets.PRESETS['mlregtest'], str(folder))
  cells = grid.cells(preset)
  assert [cell.name for cell in cells] == [
    f'{task}/{model}'
    for task in ('02.01.Zp.1.2.0', 'mine')
    for model in ('rnn', 'regular_gpt_c2', 'regular_gpt_c2_extra')
  ]
  for cell in cells:
    task = builders.make_task(cell.experiment)
    assert task.input_size == 2
    curriculum = builders.make_curriculum(cell.experiment)
    assert curriculum.lengths(9) == set(range(20, 30))


def test_what_is_no_folder_of_automata(folder, tmp_path):
  with pytest.raises(ValueError, match='for --preset=mlregtest'):
    presets.with_tasks(presets.PRESETS['smoke'], str(folder))
  mlregtest_preset = presets.PRESETS['mlregtest']
  with pytest.raises(ValueError, match=r'Cannot read .*absent'):
    presets.with_tasks(mlregtest_preset, str(tmp_path / 'absent'))
  with pytest.raises(ValueError, match='has no automaton: no file whose name'):
    presets.with_tasks(mlregtest_preset, str(tmp_path))
  (folder / 'mine.att').write_text(automata.ATT)
  with pytest.raises(ValueError, match='two automata called mine'):
    presets.with_tasks(mlregtest_preset, str(folder))
  (folder / 'mine.att').write_text('0 1 a b')
  (folder / 'mine.dot').unlink()
  with pytest.raises(ValueError, match=r'mine\.att: line 1: input'):
    presets.with_tasks(mlregtest_preset, str(folder))


def test_a_cell_is_measured_once_and_holds_no_automaton(
  folder, tmp_path, capsys
):
  preset = presets.with_tasks(_TINY, str(folder))
  preset = sweep.narrowed(preset, ['mine'], ['rnn'])
  measured = str(tmp_path / 'results')
  assert sweep.sweep('mlregtest', preset, str(tmp_path / 'a'), measured)
  (result,) = results.load_all(measured)
  sizes = result.experiment['automaton']
  assert (sizes['states'], sizes['symbols']) == (2, 2)
  assert set(sizes) == {'states', 'symbols', 'sha256'}
  assert set(result.accuracy) == {'', 'adversarial'}
  for test in result.accuracy:
    accuracies = results.accuracies(result, test)
    assert accuracies.shape == (2, 6)
    assert np.isnan(accuracies).tolist() == [[True] * 2 + [False] * 4] * 2
  capsys.readouterr()
  assert sweep.sweep('mlregtest', preset, str(tmp_path / 'b'), measured)
  assert 'Train' not in capsys.readouterr().err
  (folder / 'mine.dot').write_text(automata.DOT.replace('s1 -> s1', 's1 -> s0'))
  other = presets.with_tasks(_TINY, str(folder))
  other = sweep.narrowed(other, ['mine'], ['rnn'])
  with pytest.raises(ValueError, match='of another experiment: automaton'):
    sweep.sweep('mlregtest', other, str(tmp_path / 'b'), measured)


def _result(task, model, short, long, adversarial):
  """Returns a result of two learning rates; trained on 2..3, tested on 2..5.

  Args:
    task: Its name.
    model: Its name.
    short: Accuracy on random strings of training lengths, by rate.
    long: Beyond.
    adversarial: On pairs of all lengths.
  """

  def rows(short, long):
    return [[None, s, s, n, n] for s, n in zip(short, long, strict=True)]

  return results.Result(
    preset='mlregtest',
    task=task,
    model=model,
    experiment={
      'automaton': {'states': 3, 'symbols': 4, 'sha256': '0'},
      'training_steps': 7,
    },
    runs=[
      {'learning_rate': rate, 'seed': 0, 'diverged_at': None}
      for rate in (1e-3, 3e-3)
    ],
    training_length=3,
    chance=0.5,
    accuracy={
      '': rows(short, long),
      'adversarial': rows(adversarial, adversarial),
    },
    curves={'step': [], 'loss': [[], []], 'accuracy': [[], []]},
    wall_time_s={'training': 1.0},
    date='2023-05-05',
    environment={'device': 'cpu'},
  )


_C2 = 'regular_gpt_c2'
_MEASURED = [
  # The second rate is better on long strings, and must not be chosen for it.
  _result('04.03.TSL.2.1.9', _C2, [1.0, 0.9], [0.5, 1.0], [0.75, 1.0]),
  _result('04.03.TSL.2.1.8', _C2, [0.5, 0.6], [0.5, 0.7], [0.5, 0.8]),
  _result('04.03.SL.2.1.9', _C2, [1.0, 1.0], [0.9, 0.8], [None, None]),
  _result('04.03.SL.2.1.9', 'rnn', [0.7, 0.8], [0.5, 0.25], [0.5, 0.5]),
  _result('mine', _C2, [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]),
  _result('mine', 'rnn', [0.5, 0.5], [1.0, 0.5], [0.5, 0.5]),
]


def test_tables_by_class_and_by_language():
  languages = [mlregtest.measure(result) for result in _MEASURED]
  both = [1e-3, 3e-3]
  rates = [[1e-3], [3e-3], both, [3e-3], both, both]
  assert [x.learning_rates for x in languages] == rates
  header, rows = mlregtest.by_class(languages)
  assert header == ['class', 'languages', 'model', 'SR', 'SA', 'LR', 'LA']
  # Of TSL rnn has no language: it is in no mean, of any model.
  assert rows == [
    ['SL', '1', _C2, '100.0', '-', '85.0', '-'],
    ['', '', 'rnn', '80.0', '50.0', '25.0', '50.0'],
    ['other', '1', _C2, '50.0', '50.0', '50.0', '50.0'],
    ['', '', 'rnn', '50.0', '50.0', '75.0', '50.0'],
    ['all', '2', _C2, '75.0', '50.0', '67.5', '50.0'],
    ['', '', 'rnn', '65.0', '50.0', '50.0', '50.0'],
  ]
  of_one_model = [x for x in languages if x.result.model == _C2]
  assert mlregtest.by_class(of_one_model)[1][1:] == [
    ['TSL', '2', _C2, '80.0', '77.5', '60.0', '77.5'],
    ['other', '1', _C2, '50.0', '50.0', '50.0', '50.0'],
    ['all', '4', _C2, '77.5', '68.3', '63.8', '68.3'],
  ]
  header, rows = mlregtest.by_language(languages)
  assert [row[0] for row in rows if row[0]] == sorted(
    {r.task for r in _MEASURED}
  )
  assert rows[0][1:] == ['3', '4', _C2, '100.0', '-', '85.0', '-']
  assert rows[1][:4] == ['', '', '', 'rnn']


def test_the_legend_says_what_differs():
  languages = [mlregtest.measure(result) for result in _MEASURED]
  legend = mlregtest.legend(languages)
  assert 'Trained for 7 steps on random strings of 2 to 3 symbols.' in legend
  assert 'LR: of 4 to 5.' in legend and 'Chance is 50.' in legend
  assert 'diverged' not in legend
  assert 'on them: 04.03.TSL.2.1.8, 04.03.TSL.2.1.9.' in legend
  other = dataclasses.replace(
    _MEASURED[-1],
    chance=1 / 3,
    experiment={**_MEASURED[-1].experiment, 'training_steps': 9999},
    runs=[{**run, 'diverged_at': 3} for run in _MEASURED[-1].runs],
  )
  legend = mlregtest.legend([*languages[2:-1], mlregtest.measure(other)])
  assert 'Trained for 7, 9,999 steps' in legend
  assert 'Chance is 33, 50.' in legend
  assert 'count as frozen: mine/rnn.' in legend
  # These are smaller than the preset's, and all of them alike but for steps.
  assert 'Not as the preset: ' in legend
  assert 'training_steps 9999 (preset: 2000)' in legend
  assert 'not measured on them' not in legend


def test_without_pairs_their_columns_are_empty():
  accuracy = {'': _MEASURED[0].accuracy['']}
  language = mlregtest.measure(
    dataclasses.replace(_MEASURED[0], accuracy=accuracy)
  )
  assert language.percent['SR'] == 100
  assert np.isnan(language.percent['SA'])
  assert mlregtest.by_class([language])[1][0][3:] == ['100.0', '-', '50.0', '-']
  text = mlregtest.comma_separated([language.result])
  assert 'nan' not in text


def test_a_model_of_no_preset_is_refused():
  result = dataclasses.replace(_MEASURED[-1], model='gru')
  with pytest.raises(ValueError, match='has the cell mlregtest/mine/gru'):
    mlregtest.sections([result])


def test_the_report_has_them(tmp_path, capsys):
  for result in _MEASURED:
    path = tmp_path / 'results' / 'mlregtest' / result.task
    results.save(result, str(path / f'{result.model}.json'))
  report.report(None, str(tmp_path / 'results'), str(tmp_path / 'out'), None)
  shown = capsys.readouterr().out
  assert '### mlregtest: 6 cells measured' in shown
  assert '| SL    | 1         | regular_gpt_c2 | 100.0 | -    |' in shown
  assert 'of 2 to 3 symbols' in ' '.join(shown.split())
  *text, page = shown.splitlines()
  assert page.startswith('page: ')
  assert max(len(line) for line in text if not line.startswith('|')) <= 80
  page = (tmp_path / 'out' / 'report.html').read_text()
  assert '<th scope="row">SL</th>' in page
  rows = list(csv.DictReader((tmp_path / 'out' / 'mlregtest.csv').open()))
  assert len(rows) == 6
  assert rows[0]['class'] == 'SL'
  assert float(rows[0]['SR_percent']) == 100
  assert json.loads((tmp_path / 'results/mlregtest/mine/rnn.json').read_text())[
    'accuracy'
  ][''][0][:2] == [None, 0.5]
