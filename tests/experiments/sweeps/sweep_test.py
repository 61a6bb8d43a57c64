"""Sweeps: what a run in one gives, what is skipped, and what is refused."""

import dataclasses
import json
import math
import os
import signal

import jax
import numpy as np
import pytest

from experiments.engine import checkpoints, metrics, stopping
from experiments.engine import workdir as workdir_lib
from experiments.formal import builders, config, training
from experiments.sweeps import grid, presets, results, sweep
from tests import refusals

_TINY = sweep.narrowed(presets.PRESETS['smoke'], ['parity_check'], ['rnn'])


def _train(cell, workdir, runs):
  task, model = builders.make_task_and_model(cell.experiment)
  workdir.mkdir()
  return training.train(cell.experiment, str(workdir), task, model, runs)


@pytest.mark.parametrize(
  'model',
  [
    pytest.param('rnn', marks=pytest.mark.slow),
    pytest.param('regular_gpt_c2', marks=pytest.mark.slow),
    'regular_gpt_c3_extra',
  ],
)
def test_run_in_a_sweep_equals_run_alone(model, tmp_path):
  """To 1e-5 after 20 steps: only the order of sums may differ."""
  preset = sweep.narrowed(presets.PRESETS['smoke'], ['cycle_navigation'])
  (cell,) = (c for c in grid.cells(preset) if c.model == model)
  runs = [(rate, seed, seed) for rate, seed in cell.runs]
  few = min(cell.experiment.max_extra_levels, 1)  # Each takes time to compile.
  experiment = dataclasses.replace(cell.experiment, max_extra_levels=few)
  cell = dataclasses.replace(cell, experiment=experiment)
  together = _train(cell, tmp_path / 'together', runs)
  alone = _train(cell, tmp_path / 'alone', [runs[2]])
  for many, one in zip(
    jax.tree.leaves(together.params), jax.tree.leaves(alone.params), strict=True
  ):
    np.testing.assert_allclose(many[2], one[0], atol=1e-5)
  rows = [
    row for row in metrics.read(str(tmp_path / 'together')) if row['run'] == 2
  ]
  expected = metrics.read(str(tmp_path / 'alone'))
  assert len(rows) == len(expected) > 2
  for row, other in zip(rows, expected, strict=True):
    assert row['step'] == other['step']
    np.testing.assert_allclose(row['loss'], other['loss'], atol=1e-5)


def test_diverged_run_is_frozen_and_disturbs_nobody(tmp_path):
  (cell,) = grid.cells(_TINY)
  good = (1e-3, 0, 0)
  both = _train(cell, tmp_path / 'both', [good, (1e29, 1, 1)])
  alone = _train(cell, tmp_path / 'alone', [good])
  assert both.diverged_at[0] == -1
  assert 0 <= both.diverged_at[1] < cell.experiment.training_steps
  for many, one in zip(
    jax.tree.leaves(both.params), jax.tree.leaves(alone.params), strict=True
  ):
    assert np.isfinite(many).all()
    np.testing.assert_allclose(many[0], one[0], atol=1e-5)
  # Valid JSON, and no lines of the run since then.
  for row in metrics.read(str(tmp_path / 'both')):
    assert row['run'] == 0 or row['step'] <= both.diverged_at[1]
    assert np.isfinite(row['loss'])


def test_finished_cells_are_skipped_and_others_refused(tmp_path, capsys):
  workdir, folder = str(tmp_path / 'w'), str(tmp_path / 'results')
  assert sweep.sweep('smoke', _TINY, workdir, folder)
  (result,) = results.load_all(folder)
  assert set(result.accuracy) == {f'p=0.{i}' for i in (1, 3, 5, 7, 9)}
  assert len(result.runs) == 4
  assert all(
    len(of_run) == 20 for runs in result.accuracy.values() for of_run in runs
  )
  assert result.curves['step'] == [5, 10, 15, 20]
  (file,) = tmp_path.glob('results/*/*/*.json')
  before = file.read_bytes()
  capsys.readouterr()
  # Another workdir: the result alone tells that there is nothing to do.
  assert sweep.sweep('smoke', _TINY, str(tmp_path / 'other'), folder)
  assert file.read_bytes() == before
  assert 'Train' not in capsys.readouterr().err
  longer = sweep.narrowed(_TINY, training_steps=21)
  with pytest.raises(ValueError, match=r'training_steps 20 \(here: 21\)'):
    sweep.sweep('smoke', longer, str(tmp_path / 'other'), folder)
  with pytest.raises(ValueError, match='seeds 0, 1 '):
    sweep.sweep('smoke', sweep.narrowed(_TINY, seeds=[5]), workdir, folder)


def test_time_budget_saves_and_goes_on(tmp_path, capsys, monkeypatch):
  once = dataclasses.replace(_TINY, tests={})
  assert sweep.sweep('smoke', once, str(tmp_path / 'once'))
  workdir = str(tmp_path / 'twice')
  with monkeypatch.context() as patch:
    patch.setattr(
      stopping.ReasonToStop,
      '__call__',
      lambda self, step: stopping.TIME_IS_OVER if step == 13 else 0,
    )
    assert not sweep.sweep('smoke', once, workdir)
  assert 'The time is over: saved step 13' in capsys.readouterr().err
  assert not list((tmp_path / 'twice').glob('results/*/*/*.json'))
  assert sweep.sweep('smoke', once, workdir)
  assert 'Resuming from step 13' in capsys.readouterr().err
  other = str(tmp_path / 'other')
  assert not sweep.sweep('smoke', once, other, time_budget_s=0)
  first, second = (
    next(iter(results.load_all(str(tmp_path / name / 'results'))))
    for name in ('once', 'twice')
  )
  assert first.accuracy == second.accuracy
  assert first.curves == second.curves


def test_parts_are_all_cells_and_none_twice():
  cells = grid.cells(presets.PRESETS['smoke'])
  for number in (1, 3, 100):
    parts = [
      sweep.part_of(cells, f'{i}/{number}') for i in range(1, number + 1)
    ]
    names = [cell.name for part in parts for cell in part]
    assert sorted(names) == sorted(cell.name for cell in cells)
    if number == 3:  # None of them has all the slow models.
      assert all(len({c.model for c in part}) == 6 for part in parts)


@pytest.mark.parametrize(
  'part', ['', '1', '0/2', '3/2', 'a/b', '1/2/3', '-1/2']
)
def test_part_that_is_none(part):
  with pytest.raises(ValueError, match='part must be as 1/4'):
    sweep.part_of([], part)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'seeds': [0, -1]}, 'seed must be at least 0'),
    ({'seeds': [0, 2**32]}, 'seed must be at most'),
    ({'learning_rates': [1e-3, math.nan]}, 'learning_rate must be'),
    ({'learning_rates': [1e-3, 0.0]}, 'learning_rate must be positive'),
    ({'tasks': []}, 'tasks must not be empty'),
  ],
)
def test_every_run_of_a_preset_is_possible(fields, message):
  with pytest.raises(ValueError, match=message):
    grid.cells(sweep.narrowed(presets.PRESETS['smoke'], **fields))


def test_sizes_that_no_model_reads_are_refused():
  smoke = presets.PRESETS['smoke']
  with pytest.raises(ValueError, match='--thickness is an option of regular'):
    sweep.narrowed(smoke, models=['rnn'], thickness=3)
  with pytest.raises(ValueError, match='--embedding_dim is not for rnn'):
    sweep.narrowed(smoke, models=['rnn'], embedding_dim=99)
  both = sweep.narrowed(smoke, embedding_dim=16)
  assert {c.experiment.embedding_dim for c in grid.cells(both)} == {16}


def test_models_may_share_a_size_that_some_do_not_read():
  chosen = {'tasks': ['even_pairs'], 'embedding_dim': 16}
  xlstm = presets.PRESETS['xlstm']
  with refusals.one_line('--embedding_dim is not for mamba_2, whose sizes'):
    sweep.narrowed(xlstm, models=['mamba_2_0_1'], **chosen)
  models = ['mamba_2_0_1', 'transformer', 'rnn']
  widths = [
    builders.make_task_and_model(cell.experiment)[1].width
    for cell in grid.cells(sweep.narrowed(xlstm, models=models, **chosen))
  ]
  assert sorted(widths) == [16, 64, 64]


def test_a_trained_run_is_no_place_for_a_sweep(tmp_path):
  (tmp_path / 'config.json').touch()
  preset = sweep.narrowed(presets.PRESETS['smoke'], models=['rnn'])
  with pytest.raises(ValueError, match='trained run: give another --workdir'):
    sweep.sweep('smoke', preset, str(tmp_path))
  assert [path.name for path in tmp_path.iterdir()] == ['config.json']


def test_what_a_preset_does_not_have():
  preset = presets.PRESETS['smoke']
  with pytest.raises(ValueError, match=r'no task .*here, but even_pairs'):
    sweep.narrowed(preset, tasks=['a'])
  with pytest.raises(ValueError, match=r'no model .*here, but rnn'):
    sweep.narrowed(preset, models=['b'])
  with pytest.raises(ValueError, match='seeds must differ'):
    sweep.narrowed(preset, seeds=[1, 1])


def test_config_of_a_cell_names_its_runs(tmp_path):
  experiment = config.Experiment()
  runs = [(1e-3, 0, 0), (1e-3, 1, 1)]
  workdir_lib.claim(experiment, str(tmp_path), runs)
  assert workdir_lib.load(str(tmp_path), config.Experiment).runs == runs
  workdir_lib.claim(experiment, str(tmp_path), runs)
  with pytest.raises(ValueError, match='runs '):
    workdir_lib.claim(experiment, str(tmp_path))
  assert len(json.loads((tmp_path / 'config.json').read_text())['runs']) == 2


def test_presets_train_in_buckets():
  """Of Table 1's step half would be padding in one bucket."""
  for cell in grid.cells(presets.PRESETS['table1'])[:3]:
    task, model = builders.make_task_and_model(cell.experiment)
    widths = builders.bucket_widths(cell.experiment, task, model, 40)
    assert widths == (8, 16, 32, 40)


def test_a_signal_during_the_last_checkpoint_stops(tmp_path, monkeypatch):
  save = checkpoints.Checkpoints.save

  def signalled(self, step, state):
    save(self, step, state)
    if step == 20:
      os.kill(os.getpid(), signal.SIGTERM)

  monkeypatch.setattr(checkpoints.Checkpoints, 'save', signalled)
  once = dataclasses.replace(_TINY, tests={})
  with pytest.raises(stopping.RunInterruptedError):
    sweep.sweep('smoke', once, str(tmp_path))
  monkeypatch.undo()
  assert sweep.sweep('smoke', once, str(tmp_path))


@pytest.mark.parametrize('name', presets.PRESETS)
def test_how_much_is_done_may_be_said_for_all_cells(name):
  preset = presets.PRESETS[name]
  if not preset.tasks:  # Of a user's automata.
    preset = dataclasses.replace(preset, tasks={'d_2': {}})
  amounts = {
    'training_steps': 2,
    'warmup_steps': 1,
    'batch_size': 3,
    'max_range_test_length': 60,
    'range_test_batch_size': 5,
  }
  cells = grid.cells(sweep.narrowed(preset, **amounts))
  assert len(cells) == len(preset.tasks) * len(preset.models)
  for cell in cells:
    assert amounts.items() <= vars(cell.experiment).items()
