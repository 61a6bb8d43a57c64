"""Sweeps that users define: what a file of cells may say, and what it gives."""

import dataclasses
import json

import hypothesis
from hypothesis import strategies as st
import pytest

from experiments.sweeps import (
  numbers,
  own,
  presets,
  report,
  results,
  sweep,
  tables,
)
from tests.experiments.sweeps import made

_NO_MODULES = {'task_module': [], 'model_module': []}
_CELLS = {
  'base': {'training_steps': 3, 'max_range_test_length': 50},
  'tasks': {'pairs': {'regex': '(01|10)*'}, 'tomita_4': {}},
  'models': {
    'rnn': {'architecture_params': {'hidden_size': 4}},
    'gpt': {'architecture': 'regular_gpt', 'chunk_size': 3},
  },
  'learning_rates': [0.001, 0.003],
  'seeds': [0, 1],
  'tests': {'tomita_4': {'as trained': {}}},
  'about': 'Mine.',
}


def _read(tmp_path, cells, **modules):
  path = tmp_path / 'mine.json'
  path.write_text(json.dumps(cells))
  return own.read(str(path), {**_NO_MODULES, **modules})


def test_a_file_of_cells_is_as_a_preset(tmp_path):
  preset = _read(tmp_path, _CELLS)
  assert preset == presets.Preset(**_CELLS)
  found = {cell.name: cell for cell in presets.cells(preset)}
  assert list(found) == [
    'pairs/rnn',
    'pairs/gpt',
    'tomita_4/rnn',
    'tomita_4/gpt',
  ]
  experiment = found['pairs/rnn'].experiment
  assert (experiment.regex, experiment.task) == ('(01|10)*', 'parity_check')
  assert experiment.architecture == 'rnn'
  assert found['tomita_4/gpt'].experiment.task == 'tomita_4'
  assert len(found['pairs/gpt'].runs) == 4
  assert list(found['tomita_4/rnn'].tests) == ['as trained']


def test_an_automaton_is_a_file_or_json(tmp_path):
  (tmp_path / 'ab.att').write_text('0 1 a a\n1 0 b b\n0\n')
  path = str(tmp_path / 'ab.att')
  cells = {'tasks': {'ab': {'automaton': path}}, 'models': {'rnn': {}}}
  preset = _read(tmp_path, cells)
  (cell,) = presets.cells(preset)
  assert cell.experiment.automaton['alphabet'] == ['a', 'b']
  assert cell.runs == [(0.001, seed) for seed in (0, 1, 2)]
  own.keep('mine', preset, str(tmp_path / 'results'))
  assert own.kept(str(tmp_path / 'results')) == {'mine': preset}


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({'cells': []}, "it has 'cells'; what it may have is base, tasks"),
    ({'tasks': {}}, 'it has no tasks'),
    ({'models': ['rnn']}, 'models must be a JSON object'),
    ({'tasks': {'../a': {}}}, "'../a' is no name of a folder"),
    ({'tasks': {'a' * 101: {}}}, 'is no name of a folder'),
    ({'models': {'rnn': {'hidden': 3}}}, "models, rnn has 'hidden'; what it"),
    ({'base': {'seed': 1}}, 'base has seed; give a list, seeds'),
    ({'base': {'batch_size': '4'}}, 'batch_size must be'),
    ({'seeds': 3}, 'seeds must be a list of numbers'),
    ({'seeds': [1, 1]}, 'seeds must differ'),
    ({'seeds': [-1]}, 'seed must be at least 0'),
    ({'learning_rates': []}, 'learning_rates must be a list'),
    ({'learning_rates': ['a']}, 'learning_rate must be'),
    ({'tests': {'d_2': {}}}, "tests has 'd_2'; what it may have is pairs"),
    ({'tests': {'pairs': {'p': 1}}}, "test 'p' of pairs must be a JSON object"),
    ({'about': 1}, 'about must be text'),
    (
      {'tasks': {'a': {'automaton': '/absent.att'}}, 'tests': {}},
      r'absent\.att',
    ),
  ],
)
def test_what_a_file_must_not_say_is_one_line(change, message, tmp_path):
  with pytest.raises(ValueError, match=message) as caught:
    _read(tmp_path, {**_CELLS, **change})
  assert 'mine.json: ' in str(caught.value)
  assert len(str(caught.value).splitlines()) == 1


_JSON = st.recursive(
  st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
  lambda children: (
    st.lists(children, max_size=3)
    | st.dictionaries(st.sampled_from(['task', 'a', 'seed']), children)
  ),
  max_leaves=6,
)


@hypothesis.given(st.dictionaries(st.sampled_from([*_CELLS]), _JSON), st.data())
def test_whatever_it_says_it_is_read_or_refused(tmp_path_factory, cells, data):
  whole = json.dumps({**_CELLS, **cells})
  cut = data.draw(st.integers(0, len(whole)))
  path = tmp_path_factory.getbasetemp() / 'hostile.json'
  for text in (whole, whole[:cut]):
    path.write_text(text)
    try:
      own.read(str(path), _NO_MODULES)
    except ValueError as error:
      assert len(str(error).splitlines()) == 1


def test_a_file_runs_no_module_that_is_not_named_again(tmp_path):
  cells = {**_CELLS, 'tasks': {'a': {'task_module': 'os'}}, 'tests': {}}
  with pytest.raises(ValueError, match='to trust it, give --task_module=os'):
    _read(tmp_path, cells)
  with pytest.raises(ValueError, match='to trust it, give --task_module=os'):
    _read(tmp_path, cells, task_module=['json'], model_module=['os'])
  preset = _read(tmp_path, cells, task_module=['os'])
  assert presets.cells(preset)[0].experiment.task_module == 'os'
  with pytest.raises(ValueError, match="names no model_module 'os'"):
    _read(tmp_path, cells, task_module=['os'], model_module=['os'])


@pytest.mark.parametrize(
  ('values', 'name'),
  [
    ({'regex': '(01)*', 'architecture': 'rnn'}, 'regex/rnn'),
    ({'chunk_size': 3}, 'parity_check/regular_gpt'),
    (
      {'task_module': 'my.task', 'model_module': 'my.model'},
      'my.task/my.model',
    ),
    ({'task_module': 'm', 'task': 'T', 'seed': None}, 'T/regular_gpt'),
  ],
)
def test_flags_are_a_sweep_of_one_cell(values, name):
  sweep_name, preset, fields = own.chosen(None, None, values)
  assert (sweep_name, fields) == ('own', {})
  (cell,) = presets.cells(preset)
  assert cell.name == name
  for field, value in values.items():
    if value is not None:
      assert getattr(cell.experiment, field) == value
  assert len(cell.runs) == 3


def test_what_is_no_sweep(tmp_path):
  with pytest.raises(ValueError, match='one of --preset and --cells'):
    own.chosen('smoke', 'mine.json', {})
  with pytest.raises(ValueError, match='Give --preset, --cells, or flags'):
    own.chosen(None, None, {'task': None})
  with pytest.raises(ValueError, match='none of a preset'):
    own.chosen(None, f'{tmp_path}/smoke.json', {})


def test_flags_stand_in_place_of_what_all_cells_share():
  preset = presets.Preset(**_CELLS)
  cells = presets.cells(sweep.narrowed(preset, batch_size=3, log_every=None))
  assert {cell.experiment.batch_size for cell in cells} == {3}
  with pytest.raises(ValueError, match=r'--chunk_size belongs .*, gpt'):
    sweep.narrowed(preset, chunk_size=2)
  with pytest.raises(ValueError, match='--task belongs'):
    sweep.narrowed(preset, task='d_2')


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'training_steps': 0}, 'training_steps must be at least 1'),
    (
      {'max_range_test_length': 40},
      r'pairs/rnn: .*\(40\) must exceed .*\(40\)',
    ),
  ],
)
def test_a_score_needs_training_and_longer_strings(fields, message, tmp_path):
  preset = sweep.narrowed(presets.Preset(**_CELLS), **fields)
  with pytest.raises(ValueError, match=message):
    sweep.sweep('mine', preset, str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


def test_a_sweep_is_kept_with_what_was_there(tmp_path):
  preset = presets.Preset(**_CELLS)
  for model in ('rnn', 'gpt'):
    own.keep('mine', sweep.narrowed(preset, models=[model]), str(tmp_path))
  assert own.kept(str(tmp_path)) == {'mine': preset}
  (tmp_path / 'smoke').mkdir()
  (tmp_path / 'mine' / 'cells.json').rename(tmp_path / 'smoke' / 'cells.json')
  with pytest.raises(ValueError, match='smoke is a preset of ours'):
    own.kept(str(tmp_path))


def test_its_report_shows_what_is_measured_and_what_is_missing(
  tmp_path, capsys
):
  preset = presets.Preset(**_CELLS)
  cell = presets.cells(preset)[0]
  result = dataclasses.replace(
    made.FAITHFUL,
    preset='mine',
    task=cell.task,
    model=cell.model,
    experiment=dataclasses.asdict(cell.experiment),
    runs=[
      {'learning_rate': rate, 'seed': seed, 'diverged_at': None}
      for rate, seed in cell.runs
    ],
    accuracy={'': [[1.0] * 40 + [0.5] * 10] * 4},
    curves={'step': [3], 'loss': [[0.1]] * 4, 'accuracy': [[0.5]] * 4},
  )
  folder = str(tmp_path / 'results')
  own.keep('mine', preset, folder)
  results.save(result, results.path(folder, 'mine', cell))
  report.report(str(tmp_path), None, None, None)
  text = capsys.readouterr().out
  assert '### mine: 1 of 4 cells measured' in text
  assert '| pairs ' in text and '50.0 / 50.0 / 50.0' in text
  assert 'missing' in text and 'Mine. Mean accuracy' in text
  assert '| paper' not in text and '‡' not in text
  assert 'data:image/png' in (tmp_path / 'report.html').read_text()
  # Without its description nobody knows what was meant to be measured.
  with pytest.raises(ValueError, match='No preset has the cell mine/pairs/rnn'):
    numbers.tables([result])
  assert tables.num_measured(
    numbers.tables([result], {'mine': preset})['mine']
  ).startswith('1 of 4')


def test_a_file_of_cells_is_measured(tmp_path):
  tiny = dataclasses.asdict(presets.PRESETS['smoke'])['base']
  cells = {
    'base': {**tiny, 'sequence_length': 5, 'max_range_test_length': 8},
    'tasks': {'pairs': {'regex': '(01|10)*'}},
    'models': {'rnn': {'architecture_params': {'hidden_size': 4}}},
    'seeds': [0, 1],
  }
  preset = _read(tmp_path, cells)
  assert sweep.sweep('mine', preset, str(tmp_path / 'run'))
  assert sweep.sweep('mine', preset, str(tmp_path / 'run'))  # Nothing to do.
  (result,) = results.load_all(str(tmp_path / 'run' / 'results'))
  assert (result.preset, result.task, result.model) == ('mine', 'pairs', 'rnn')
  assert len(result.runs) == 2
