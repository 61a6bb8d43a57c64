"""A result is read as it was written, or refused with the name of its file."""

import dataclasses
import json
import os

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from experiments.sweeps import grid, presets, results
from tests import refusals

_CELL = grid.cells(presets.PRESETS['smoke'])[0]


def _result(**fields):
  num_runs = len(_CELL.runs)
  rng = np.random.default_rng(0)
  made = results.make(
    'smoke',
    _CELL,
    diverged_at=[-1] * (num_runs - 1) + [7],
    training_length=8,
    chance=0.5,
    accuracy={'': rng.random((num_runs, 20))},
    metrics=[
      {'step': step, 'run': run, 'loss': 1 / step, 'accuracy': 0.5}
      for step in range(1, 252)  # Every third one would not be the last.
      for run in range(num_runs)
    ],
    wall_time_s={'training': 1.0, 'evaluation': 2.0},
  )
  return dataclasses.replace(made, **fields)


_RESULT = _result()


def test_read_as_written(tmp_path):
  path = results.path(str(tmp_path), 'smoke', _CELL)
  results.save(_RESULT, path)
  assert results.load(path) == _RESULT
  assert list(results.load_all(str(tmp_path))) == [_RESULT]
  assert [run['diverged_at'] for run in _RESULT.runs] == [None, None, None, 7]
  assert [(r['learning_rate'], r['seed']) for r in _RESULT.runs] == _CELL.runs


def test_curves_are_short_and_keep_the_last_step():
  steps = _RESULT.curves['step']
  assert len(steps) <= 100
  assert steps[-1] == 251
  assert steps == sorted(steps)
  assert np.shape(_RESULT.curves['loss']) == (len(_CELL.runs), len(steps))


@pytest.fixture(scope='module')
def text(tmp_path_factory):
  path = tmp_path_factory.mktemp('text') / 'result.json'
  results.save(_RESULT, str(path))
  return path.read_text()


def _assert_refused(path):
  with refusals.one_line('Cannot read the result') as refused:
    results.load(str(path))
  assert str(path) in str(refused.value)


@hypothesis.given(st.data())
def test_truncated_is_refused(text, tmp_path_factory, data):
  path = tmp_path_factory.getbasetemp() / 'truncated.json'
  # Without its last brace and newline.
  path.write_text(text[: data.draw(st.integers(0, len(text) - 2))])
  _assert_refused(path)


@hypothesis.given(st.data())
def test_a_value_of_another_type_is_refused(text, tmp_path_factory, data):
  path = tmp_path_factory.getbasetemp() / 'other_type.json'
  fields = json.loads(text)
  name = data.draw(st.sampled_from(sorted(fields)))
  other = data.draw(st.sampled_from([None, 'text', 3, [], [[]], {}]))
  hypothesis.assume(
    type(other) is not type(fields[name])
    and not (name == 'chance' and other == 3)
  )
  path.write_text(json.dumps(fields | {name: other}))
  _assert_refused(path)


@pytest.mark.parametrize(
  'fields',
  [
    {'runs': []},
    {'runs': [{'seed': 0}] * 4},
    {'accuracy': {}},
    {'accuracy': {'': [[0.5] * 20] * 3}},
    {'accuracy': {'': [[0.5] * 8] * 4}},
    {'accuracy': {'': [[0.5] * 20] * 3 + [[0.5] * 19]}},
    {'accuracy': {'': [[0.5] * 19 + [1.01]] * 4}},
    {'accuracy': {'': [[0.5] * 19 + [float('nan')]] * 4}},
    {'curves': {'step': [1], 'loss': [[1.0]] * 4}},
    {'curves': {'step': [1], 'loss': [[1.0]] * 4, 'accuracy': [[]] * 4}},
    {'training_length': 0},
    {'training_length': 10**17},
    {'unknown': 1},
    {'accuracy': {'': [['0.5'] * 20] * 4}},
    {'accuracy': {'': [[True] * 20] * 4}},
    {'accuracy': {'': ['0' * 20] * 4}},
    {'accuracy': {'': [[0.5] * 19 + [10**400]] * 4}},
    {'curves': {'step': ['1'], 'loss': [[1.0]] * 4, 'accuracy': [[1.0]] * 4}},
    {'curves': {'step': [1e9], 'loss': [[1.0]] * 4, 'accuracy': [[1.0]] * 4}},
    {'curves': {'step': [10**12], 'loss': [[1.0]] * 4, 'accuracy': [[1]] * 4}},
    {'curves': {'step': [1], 'loss': [['high']] * 4, 'accuracy': [[1]] * 4}},
    {'runs': [{'learning_rate': 0.1, 'seed': 0, 'diverged_at': 10**12}] * 4},
    {'runs': [{'learning_rate': '1', 'seed': 0, 'diverged_at': None}] * 4},
    {'runs': [{'learning_rate': 0.1, 'seed': 10**400, 'diverged_at': 1}] * 4},
    {'runs': [[0.1, 0, None]] * 4},
    {'wall_time_s': {'training': '1 s'}},
    {'wall_time_s': {'training': 10**400}},
  ],
)
def test_impossible_values_are_refused(fields, tmp_path):
  path = tmp_path / 'result.json'
  path.write_text(json.dumps(dataclasses.asdict(_RESULT) | fields))
  _assert_refused(path)


def test_a_result_in_another_cells_place_is_refused(tmp_path):
  other = grid.cells(presets.PRESETS['smoke'])[1]
  path = results.path(str(tmp_path), 'smoke', other)
  results.save(_RESULT, path)
  with pytest.raises(ValueError, match='wrong place') as refused:
    list(results.load_all(str(tmp_path)))
  assert path in str(refused.value)
  assert os.path.join('smoke', 'even_pairs', 'rnn') in str(refused.value)


def test_results_of_one_sweep_are_not_those_of_all(tmp_path):
  results.save(_RESULT, results.path(str(tmp_path), 'smoke', _CELL))
  (tmp_path / 'smoke' / results.DEFINITION).write_text('{}')
  assert list(results.load_all(str(tmp_path))) == [_RESULT]
  with pytest.raises(ValueError, match='wrong place'):
    list(results.load_all(str(tmp_path / 'smoke')))


@pytest.mark.parametrize(
  ('num_wrong', 'stored'), [(0, 1.0), (1, 0.9999), (51_200, 0.0)]
)
def test_only_what_is_all_right_is_stored_as_1(num_wrong, stored):
  accuracy = np.float32(1 - num_wrong / 51_200)
  made = results.make(
    'smoke',
    _CELL,
    diverged_at=[-1] * len(_CELL.runs),
    training_length=8,
    chance=0.5,
    accuracy={'': np.full((len(_CELL.runs), 20), accuracy)},
    metrics=[],
    wall_time_s={},
  )
  assert made.accuracy[''][0] == [stored] * 20


def test_lines_without_what_is_drawn_leave_gaps(tmp_path):
  """A workdir's metrics may have lost lines, and gained others."""
  made = results.make(
    'smoke',
    _CELL,
    diverged_at=[-1] * len(_CELL.runs),
    training_length=8,
    chance=0.5,
    accuracy={'': np.ones((len(_CELL.runs), 20))},
    metrics=[
      {'step': 1, 'run': 0, 'loss': 0.25, 'accuracy': 0.5},
      {'step': 2, 'run': 0, 'speed': 3},
    ],
    wall_time_s={'training': 1.0},
  )
  assert made.curves['loss'][0] == [0.25, None]
  path = results.path(str(tmp_path), 'smoke', _CELL)
  results.save(made, path)
  assert results.load(path) == made
