"""Sweeps that users define: what a file of cells may say, and what it gives."""

import dataclasses
import html
import json

import hypothesis
from hypothesis import strategies as st
import pytest

from experiments.formal import registries
from experiments.sweeps import (
  grid,
  numbers,
  own,
  presets,
  report,
  results,
  sweep,
  tables,
)
from tests import refusals
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
  assert preset == grid.Preset(**_CELLS)
  found = {cell.name: cell for cell in grid.cells(preset)}
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
  (cell,) = grid.cells(preset)
  assert cell.experiment.automaton['alphabet'] == ['a', 'b']
  assert cell.runs == [(0.001, seed) for seed in (0, 1, 2)]
  own.keep('mine', preset, str(tmp_path / 'results'))
  assert own.kept(str(tmp_path / 'results')) == {'mine': preset}
  automaton = json.loads(json.dumps(cell.experiment.automaton))
  del automaton['transitions'][automaton['start']]['b']
  cells['tasks'] = {'ab': {'automaton': automaton}}
  (cell,) = grid.cells(_read(tmp_path, cells))
  assert 'sink' in cell.experiment.automaton['states']


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
    ({'base': {'batch_size': '4'}}, 'base: batch_size must be'),
    ({'seeds': 3}, r'seeds must be a list \(each of it a whole number'),
    ({'seeds': [1, 1]}, 'seeds must differ'),
    ({'seeds': [1, 1.0]}, r'seeds must be a list \(each of it a whole number'),
    ({'learning_rates': [1, 1.0]}, 'learning_rates must differ'),
    ({'seeds': [-1]}, 'pairs/rnn: seed must be at least 0'),
    ({'learning_rates': []}, 'learning_rates must not be empty'),
    (
      {'learning_rates': ['a']},
      r'learning_rates must be a list \(each of it a finite',
    ),
    ({'tests': {'d_2': {}}}, "tests has 'd_2'; what it may have is pairs"),
    ({'tests': {'pairs': {'p': 1}}}, "test 'p' of pairs must be a JSON object"),
    ({'tests': {'pairs': {}}}, 'tests of pairs must not be empty'),
    ({'tests': {'pairs': {'': {}}}}, "'' is no name of a test"),
    ({'tests': {'pairs': {'a, b': {}}}}, "'a, b' is no name of a test"),
    ({'tests': {'pairs': {'../a': {}}}}, 'is no name of a test'),
    ({'tests': {'pairs': {'adversarial': {}}}}, 'and not adversarial'),
    ({'base': {'strings': {'file': 3}}}, 'base: strings must be the path of'),
    ({'base': {'test_strings': {'f': 7}}}, 'base: test_strings must be the'),
    ({'base': {'task_module': ['a']}}, 'base: task_module must be text'),
    ({'base': {'model_module': 5}}, 'base: model_module must be text'),
    ({'base': {'automaton': ['a']}}, 'base: automaton must be a JSON object'),
    (
      {'tasks': {'a': {'automaton': {'states': []}}}, 'tests': {}},
      "tasks, a: The field 'alphabet' is missing",
    ),
    ({'base': {'task': 'd_2'}}, "tomita_4/rnn: it is called .* says 'd_2'"),
    ({'base': {'regex': '0'}}, "our task tomita_4, but base says '0'"),
    ({'base': {'architecture': 'lstm'}}, 'it is called as our model rnn'),
    ({'about': 1}, 'about must be text'),
    ({'base': {'thickness': 2}, 'models': {'rnn': {}}}, '--thickness is an'),
    ({'models': {'rnn': {'num_heads': 2}, 'lstm': {}}}, '--num_heads is not'),
    (
      {'tasks': {'a': {'automaton': '/absent.att'}}, 'tests': {}},
      r'absent\.att',
    ),
  ],
)
def test_what_a_file_must_not_say_is_one_line(change, message, tmp_path):
  with refusals.one_line(message) as caught:
    _read(tmp_path, {**_CELLS, **change})
  assert 'mine.json: ' in str(caught.value)


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
  assert grid.cells(preset)[0].experiment.task_module == 'os'
  with pytest.raises(ValueError, match="names no model_module 'os'"):
    _read(tmp_path, cells, task_module=['os'], model_module=['os'])


@pytest.mark.parametrize(
  ('values', 'name'),
  [
    ({'architecture': 'rnn', 'architecture_params': {}}, 'parity_check/rnn'),
    ({'regex': '(01)*', 'architecture': 'rnn'}, 'regex/rnn'),
    ({'chunk_size': 3}, 'parity_check/regular_gpt'),
    (
      {'task_module': 'my.task', 'model_module': 'my.model'},
      'my.task/my.model',
    ),
    ({'task_module': 'm', 'task': 'T', 'seed': None}, 'T/regular_gpt'),
    ({'answers': 'prefixes'}, 'parity_check_prefixes/regular_gpt'),
    ({'regex': '1*', 'answers': 'prefixes'}, 'regex_prefixes/regular_gpt'),
  ],
)
def test_flags_are_a_sweep_of_one_cell(values, name, tmp_path):
  sweep_name, preset, fields = own.chosen(None, None, values)
  assert (sweep_name, fields) == ('own', {})
  (cell,) = grid.cells(preset)
  assert cell.name == name
  for field, value in values.items():
    if value is not None:
      assert getattr(cell.experiment, field) == value
  # What is of the task or of the model is not of all cells.
  assert not set(preset.base) & set(own.OF_CELLS)
  assert len(cell.runs) == 3
  # What is kept of it for its report can be read.
  own.keep(sweep_name, preset, str(tmp_path))
  assert own.kept(str(tmp_path)) == {sweep_name: preset}


def test_flags_that_the_model_does_not_read_are_refused():
  transformer = {'architecture': 'transformer_encoder'}
  for fields in ({'embedding_dim': 16}, {'num_heads': 2}):
    with pytest.raises(ValueError, match='is not for lstm; its sizes are'):
      own.chosen(None, None, {'architecture': 'lstm', **fields})
    own.chosen(None, None, {**transformer, **fields})
  for fields in ({'chunk_size': 3}, {'thickness': 2}, {'preset': 'language'}):
    with pytest.raises(ValueError, match='an option of regular_gpt only'):
      own.chosen(None, None, {**transformer, **fields})


def test_what_is_no_sweep(tmp_path):
  with pytest.raises(ValueError, match='one of --preset and --cells'):
    own.chosen('smoke', 'mine.json', {})
  with pytest.raises(ValueError, match='Give --preset, --cells, or flags'):
    own.chosen(None, None, {'task': None})
  for name in ('smoke', 'language', 'own', 'a b'):
    with pytest.raises(ValueError, match='gives the sweep its name, which'):
      own.chosen(None, f'{tmp_path}/{name}.json', {})


def test_flags_stand_in_place_of_what_all_cells_share():
  preset = grid.Preset(**_CELLS)
  cells = grid.cells(sweep.narrowed(preset, batch_size=3, log_every=None))
  assert {cell.experiment.batch_size for cell in cells} == {3}
  with pytest.raises(ValueError, match=r'--chunk_size .* sets it for gpt'):
    sweep.narrowed(preset, chunk_size=2)
  with pytest.raises(ValueError, match=r'--task .* for the tasks and models'):
    sweep.narrowed(preset, task='d_2')


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'training_steps': 0}, 'pairs/rnn: training_steps must be at least 1'),
    (
      {'max_range_test_length': 40},
      r'pairs/rnn: .*\(40\) must exceed .*\(40\)',
    ),
  ],
)
def test_a_score_needs_training_and_longer_strings(fields, message, tmp_path):
  preset = sweep.narrowed(grid.Preset(**_CELLS), **fields)
  with pytest.raises(ValueError, match=message):
    sweep.sweep('mine', preset, str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize(
  ('task', 'params', 'message'),
  [
    ('parity_check', {'probabilty': 0.1}, 'probabilty'),
    ('pairs', {'probability': 0.1}, '--task_params is not for --regex'),
    ('sized', {'n': 3}, 'test has 3 .* and 5 answers, .* training 2 and 2'),
    ('sized', {'n': 2}, None),
  ],
)
def test_tests_are_tried_before_training(task, params, message, monkeypatch):
  tasks = registries.TASK_BUILDERS

  def sized(n=2):
    return tasks['tomita_4' if n == 2 else 'cycle_navigation']()

  monkeypatch.setitem(tasks, 'sized', sized)
  fields = _CELLS['tasks'].get(task, {})
  preset = grid.Preset(
    **{**_CELLS, 'tasks': {task: fields}, 'tests': {task: {'other': params}}}
  )
  (cell, *_) = grid.cells(preset)
  if message is None:
    made = sweep._make(cell)
    assert list(made.tests) == ['other']
    return
  with pytest.raises(ValueError, match=message) as caught:
    sweep._make(cell)
  assert str(caught.value).startswith(f"{cell.name}, the test 'other': ")


def test_a_part_has_no_tests_of_what_it_leaves_out():
  part = sweep.narrowed(grid.Preset(**_CELLS), tasks=['pairs'])
  assert not part.tests and list(part.tasks) == ['pairs']


def test_the_whole_sweep_is_kept_whatever_is_measured(tmp_path, monkeypatch):
  measured = []
  monkeypatch.setattr(sweep, '_measure', lambda *args: measured.append(args))
  preset = grid.Preset(**_CELLS)
  for part in ({'models': ['gpt']}, {'tasks': ['pairs'], 'training_steps': 2}):
    narrowed = sweep.narrowed(preset, seeds=[1], **part)
    assert sweep.sweep('mine', narrowed, str(tmp_path), whole=preset)
    assert own.kept(str(tmp_path / 'results')) == {'mine': preset}
  assert [args[1].name for args in measured] == [
    'pairs/gpt',
    'tomita_4/gpt',
    'pairs/rnn',
    'pairs/gpt',
  ]


@pytest.mark.parametrize(
  'change',
  [
    {'base': {'training_steps': 4, 'max_range_test_length': 50}},
    {'tasks': {'pairs': {'regex': '1*'}}, 'tests': {}},
    {'models': {'gpt': {'architecture': 'regular_gpt', 'chunk_size': 2}}},
    {'tests': {}},
    {'tests': {**_CELLS['tests'], 'pairs': {'few': {}}}},
    {'seeds': [0]},
    {'learning_rates': [0.001]},
  ],
)
def test_a_sweep_may_grow_but_not_change(change, tmp_path):
  preset = grid.Preset(**_CELLS)
  part = sweep.narrowed(preset, models=['rnn'], tasks=['pairs'])
  own.keep('mine', part, str(tmp_path))
  own.keep('mine', preset, str(tmp_path))
  own.keep('mine', part, str(tmp_path))
  assert own.kept(str(tmp_path)) == {'mine': preset}
  other = grid.Preset(**{**_CELLS, **change})
  with pytest.raises(ValueError, match=f'another sweep .*{next(iter(change))}'):
    own.keep('mine', other, str(tmp_path))
  assert own.kept(str(tmp_path)) == {'mine': preset}


def test_a_sweep_of_a_presets_name_is_in_the_wrong_place(tmp_path):
  own.keep('mine', grid.Preset(**_CELLS), str(tmp_path))
  (tmp_path / 'smoke').mkdir()
  (tmp_path / 'mine' / 'cells.json').rename(tmp_path / 'smoke' / 'cells.json')
  with pytest.raises(ValueError, match='smoke is a preset of ours'):
    own.kept(str(tmp_path))


def test_its_report_shows_what_is_measured_and_what_is_missing(
  tmp_path, capsys
):
  preset = grid.Preset(**_CELLS)
  cell = grid.cells(preset)[0]
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
    accuracy={
      '': [[0.9] * 40 + [0.5] * 10] * 2
      + [[1.0] * 40 + [0.5] * 10, [1.0] * 40 + [0.75] * 10]
    },
    constant={'': 0.75},
    curves={'step': [3], 'loss': [[0.1]] * 4, 'accuracy': [[0.5]] * 4},
  )
  folder = str(tmp_path / 'results')
  own.keep('mine', preset, folder)
  results.save(result, results.path(folder, 'mine', cell))
  report.report(str(tmp_path), None, None, None)
  text = capsys.readouterr().out
  assert '### mine: 1 of 4 cells measured' in text
  assert '| pairs ' in text and '75.0 / 62.5 / 56.2' in text
  assert 'missing' in text and 'Mine. Mean accuracy' in text
  assert '| paper' not in text and '‡' not in text
  joined = ' '.join(text.split())
  assert 'chance: 50.0 (best constant answer: 75.0)' in joined
  assert 'run by learning rate: 0.001: 50.0 50.0, 0.003: 50.0 75.0;' in joined
  for name in ('report.md', 'report.csv', 'report.html'):
    written = html.unescape((tmp_path / name).read_text()).replace('\\', '')
    assert "--regex='(01|10)*'" in written, name
  assert 'data:image/png' in (tmp_path / 'report.html').read_text()
  # Without its description nobody knows what was meant to be measured.
  with pytest.raises(ValueError, match='No preset has the cell mine/pairs/rnn'):
    numbers.tables([result])
  assert tables.num_measured(
    numbers.tables([result], {'mine': preset})['mine']
  ).startswith('1 of 4')


def test_a_file_of_cells_is_measured(tmp_path):
  base = dict(presets.PRESETS['smoke'].base)
  del base['embedding_dim'], base['num_heads']  # An RNN has neither.
  cells = {
    'base': {**base, 'sequence_length': 5, 'max_range_test_length': 8},
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
  # What is refused since a folder is another's leaves nothing there.
  other = dataclasses.replace(preset, seeds=(0,))
  with pytest.raises(ValueError, match='holds a different experiment: runs'):
    sweep.sweep('other', other, str(tmp_path / 'run'))
  assert not (tmp_path / 'run' / 'results' / 'other').exists()
  assert result.constant == {'': 0.6667}  # "No": no odd length has a pair.
