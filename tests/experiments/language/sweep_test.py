"""Presets and their report beside the paper's numbers."""

import dataclasses
import functools
import json
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.engine import results as results_lib
from experiments.language import (
  config,
  evaluation,
  paper,
  presets,
  report,
  sweep,
  sweep_report,
)
from experiments.sweeps import results
from tests.experiments.language import texts

_TABLE_3 = presets.PRESETS['table3']


def _save(
  folder, model, seed, value, diverged=False, difference=None, **fields
):
  fields = {'vocab_size': 50257, 'fingerprint': 'one'} | fields
  experiment = presets.experiment(_TABLE_3, model, seed, **fields)
  perplexities = {
    length: evaluation.Perplexity(value + length, 0.5, 3.0)
    for length in (() if diverged else _TABLE_3.lengths)
  }
  path = folder / model / f'seed_{seed}.json'
  path.parent.mkdir(parents=True, exist_ok=True)
  results_lib.save_json(
    str(path),
    report.contents(
      experiment,
      experiment,
      perplexities,
      {
        length: evaluation.Difference(difference, 0.01)
        for length in (() if difference is None else _TABLE_3.lengths[1:])
      },
      1000,
      40_000,
      81_000_000,
      diverged,
    ),
  )
  return path


def test_table_3_is_the_paper_s():
  assert {model for model, _ in paper.TABLE_3} == set(_TABLE_3.models)
  assert {length for _, length in paper.TABLE_3} == set(_TABLE_3.lengths)
  assert len(paper.TABLE_3) == 40
  assert tuple(_TABLE_3.lengths) == config.LENGTHS
  for model in _TABLE_3.models:
    experiment = presets.experiment(_TABLE_3, model, 2)
    assert (experiment.seed, experiment.model_init_seed) == (2, 2)
    assert experiment.learning_rate == 6e-4
    assert experiment.schedule == 'constant' and not experiment.warmup_steps
    assert experiment.batch_size == 32 and experiment.sequence_length == 512
    assert experiment.training_steps == 50_000 and not experiment.weight_decay
    assert experiment.precision == 'bfloat16'


@pytest.mark.parametrize('model', _TABLE_3.models)
def test_table_3_has_the_paper_s_sizes(model):
  """81 M with K = 6, 123 M with K = 12, as the baselines (appendix B)."""
  experiment = dataclasses.replace(
    presets.experiment(_TABLE_3, model, 0), vocab_size=50257
  )
  params = jax.eval_shape(
    config.make_model(experiment).init,
    jax.random.key(0),
    jax.ShapeDtypeStruct((1, 1), jnp.int32),
  )
  millions = sum(x.size for x in jax.tree.leaves(params)) / 1e6
  small = model.endswith('_6')
  assert (81 if small else 123) <= millions < (82 if small else 124)


def test_report(tmp_path, capsys):
  for seed, value in enumerate((10.0, 20.0, 60.0)):
    _save(tmp_path, 'alibi', seed, value, difference=math.log(value / 10))
  # Results that know of no differences have none in the report.
  _save(tmp_path, 'kerple', 0, 5.0, difference=1.0)
  _save(tmp_path, 'kerple', 1, 5.0)
  _save(tmp_path, 't5', 0, 5.0, batch_size=16, accumulation_steps=2)
  _save(tmp_path, 't5', 2, 0.0, diverged=True, batch_size=16)
  _save(tmp_path, 'regular_gpt_32_6', 0, 0.0, diverged=True)
  sweep_report.write('table3', str(tmp_path))
  text = (tmp_path / 'report.md').read_text()
  assert text in capsys.readouterr().out
  rows = [
    [cell.strip() for cell in line.strip('|').split(' | ')]
    for line in text.splitlines()
    if line.startswith('|')
  ]
  assert rows[0] == ['model', '512', '1,024', '2,048', '4,096', '8,192']
  at = {row[0]: i for i, row in enumerate(rows)}
  assert rows[at['alibi']][1] == '542.00 ± 0.50'  # The mean over seeds.
  # 1, 2 and 6 times, by the mean of the logarithms: 12^(1/3).
  assert rows[at['alibi'] + 1][:2] == ['- difference', '']
  assert rows[at['alibi'] + 1][2:] == ['+128.94 ± 2.29%'] * 4
  assert rows[at['alibi'] + 2][:2] == ['- paper', '24.53']
  assert rows[at['kerple'] + 1][0] == '- paper'
  assert rows[at['t5']][1] == '517.00 ± 0.50 †'
  assert rows[at['regular_gpt_32_6']][1] == 'diverged'
  assert rows[at['regular_gpt_256_6']][1:] == ['missing'] * 5
  assert rows[at['regular_gpt_64_6'] + 1][-1] == '1,175.91'
  joined = ' '.join(text.split())
  alibi = joined.split('- alibi:')[1].split(' - ')[0]
  assert 'of seeds 0, 1, 2 (the preset has 0, 1, 2)' in alibi
  assert '40,000 of 50,000 steps' in alibi
  assert 'not as the preset says' not in alibi
  t5 = joined.split('- t5:')[1].split(' - ')[0]
  assert 'of seeds 0, 2 (the preset has 0, 1, 2), seed 2 diverged at' in t5
  assert '40,000 of 50,000 steps' in t5
  assert t5.endswith('not as the preset says: batch_size 16 (preset: 32)')
  for line in text.splitlines():
    assert len(line) <= 80 or line.startswith('|')
  assert '† Without the seeds that diverged' in text
  assert (tmp_path / 'report.png').read_bytes().startswith(b'\x89PNG')
  lines = (tmp_path / 'report.csv').read_text().splitlines()
  assert len(lines) == 16
  assert 't5,512,1,517.0,0.5,517.0,517.0,,' in lines
  assert 'alibi,512,3,542.0,0.5,522.0,572.0,,' in lines
  (line,) = (x for x in lines if x.startswith('alibi,8192,'))
  *_, difference, error = map(float, line.split(',')[1:])
  assert difference == pytest.approx(math.log(12) / 3) and error == 0.01


def test_a_report_of_nothing_but_diverged_models(tmp_path, capsys):
  _save(tmp_path, 'alibi', 0, 0.0, diverged=True)
  sweep_report.write('table3', str(tmp_path))
  assert '| diverged |' in capsys.readouterr().out


def test_results_are_read_as_written(tmp_path):
  path = _save(tmp_path, 'alibi', 1, 3.5, difference=0.25)
  found = report.load_json(str(path))['perplexity']
  assert found[512] == evaluation.Perplexity(515.5, 0.5, 3.0)
  assert list(found) == list(_TABLE_3.lengths)
  found = report.load_json(str(path))['difference']
  assert found[1024] == evaluation.Difference(0.25, 0.01)
  assert list(found) == list(_TABLE_3.lengths[1:])


def test_results_without_differences_are_read(tmp_path):
  """As those were that were measured before there were any."""
  path = _save(tmp_path, 'alibi', 1, 3.5)
  contents = json.loads(path.read_text())
  del contents['difference']
  path.write_text(json.dumps(contents))
  sweep_report.write('table3', str(tmp_path))
  assert '- difference' not in (tmp_path / 'report.md').read_text()


def _change(keys, value):
  """Returns a function that puts a value into nested dictionaries."""

  def change(text):
    contents = json.loads(text)
    *path, last = keys
    functools.reduce(dict.__getitem__, path, contents)[last] = value
    return json.dumps(contents)

  return change


@pytest.mark.parametrize(
  'damage',
  [
    lambda text: '',
    lambda text: '{}',
    lambda text: '[1]',
    lambda text: text[: len(text) // 2],
    _change(['perplexity'], 3),
    _change(['perplexity', '512', 'perplexity'], '24.5'),
    _change(['perplexity', '512', 'perplexity'], math.nan),
    _change(['perplexity', '512', 'perplexity'], 0.5),
    _change(['perplexity', '512', 'standard_error'], -1.0),
    _change(['perplexity', '512'], {'loss': 1.0}),
    _change(['difference', '1024', 'loss'], math.nan),
    _change(['difference', '1024', 'standard_error'], -1.0),
    _change(['difference', '512'], {'loss': 1.0, 'standard_error': 1.0}),
    _change(['difference', '500'], {'loss': 1.0, 'standard_error': 1.0}),
    _change(['step'], '1000'),
    _change(['num_sequences'], None),
    _change(['num_parameters'], -1),
    _change(['diverged'], 0),
    _change(['environment'], {}),
    _change(['experiment', 'fingerprint'], ''),
    _change(['experiment', 'seed'], 7),
    _change(['experiment', 'depth'], 7),
    _change(['num_sequences'], 7),
    _change(['evaluated_on', 'fingerprint'], 'another'),
    _change(['perplexity', '512', 'loss'], 10**400),
    lambda text: '[' * 100_000,
    _change(['experiment', 'chunk_size'], 'two'),
  ],
)
def test_damaged_results_are_refused(damage, tmp_path):
  path = _save(tmp_path, 'alibi', 0, 1.0, difference=0.5)
  path.write_text(damage(path.read_text()))
  with pytest.raises(ValueError, match='seed_0'):
    sweep_report.write('table3', str(tmp_path))


def test_the_repository_s_results_are_whole():
  repository = pathlib.Path(__file__).parents[3]
  for folder in (repository / 'results' / 'language').iterdir():
    found = sweep_report.load(folder.name, str(folder))
    assert any(found.values())


def test_a_folder_without_results_has_no_table(tmp_path, capsys):
  sweep_report.write('table3', str(tmp_path))
  printed = capsys.readouterr().out
  assert printed == f'{tmp_path} holds no results of table3 yet.\n'
  assert not list(tmp_path.iterdir())


def test_an_unknown_model_is_refused(tmp_path):
  with pytest.raises(ValueError, match=r'no model .* here, but kerple, t5'):
    sweep.sweep('table3', str(tmp_path), models=['rnn'])


@pytest.mark.parametrize(
  ('given', 'message'),
  [
    ({'models': []}, 'models must not be empty'),
    ({'seeds': []}, 'seeds must not be empty'),
    ({'models': ['t5', 't5']}, 'models must differ'),
    ({'seeds': [1, 1]}, 'seeds must differ'),
  ],
)
def test_lists_are_refused_as_of_the_other_sweep(given, message, tmp_path):
  with pytest.raises(ValueError, match=message):
    sweep.sweep('table3', str(tmp_path), **given)


def test_infinite_perplexities_are_drawn():
  curve = {
    8: evaluation.Perplexity(5.0, 1.0, 1.0),
    16: evaluation.perplexity(np.array([1e4, 2e4])),
  }
  assert report.picture({'a model': curve}, 8).startswith(b'\x89PNG')


def test_other_results_ignore_language_models(tmp_path):
  _save(tmp_path / 'language' / 'table3', 'alibi', 0, 1.0)
  assert not list(results.load_all(str(tmp_path)))


def test_a_sweep_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
  data_dir = texts.prepare(tmp_path)
  base = {
    name: getattr(texts.TINY, name)
    for name in ('embedding_dim', 'num_heads', 'sequence_length', 'batch_size')
  }
  preset = presets.Preset(
    {**base, 'num_layers': 1, 'training_steps': 3, 'validation_batches': 1},
    {'alibi': {'architecture': 'gpt_lm'}, 'other': {'chunk_size': 4}},
    lengths=(5, 10),
    num_sequences=4,
    seeds=(0, 1),
  )
  monkeypatch.setitem(presets.PRESETS, 'tiny', preset)
  workdir = tmp_path / 'runs'

  def measure(**kwargs):
    sweep.sweep(
      'tiny', str(workdir), models=['alibi'], data_dir=data_dir, **kwargs
    )
    return {
      path.stem: path.stat().st_mtime_ns
      for path in workdir.glob('results/tiny/alibi/*.json')
    }

  measure(seeds=[3], learning_rate=1e29)
  assert '| diverged |' in capsys.readouterr().out
  (workdir / 'results/tiny/alibi/seed_3.json').unlink()
  first = measure(seeds=[1], training_time_s=0)
  assert first.keys() == {'seed_1'}
  second = measure()
  assert second.keys() == {'seed_0', 'seed_1'}
  assert second['seed_1'] == first['seed_1']  # It had a result.
  assert measure(report_only=True) == second
  out = ' '.join(capsys.readouterr().out.split())
  assert 'of seeds 0, 1 (the preset has 0, 1), 1 and 3 of 3 steps' in out
  assert '| other | missing |' in out
  with pytest.raises(ValueError, match='another experiment: training_steps 3 '):
    measure(training_steps=4)
  other = tmp_path / 'other'
  other.mkdir()
  data_dir = texts.prepare(other, seed=1)
  with pytest.raises(ValueError, match='trained on another text'):
    measure()


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({}, 'Give --data_dir'),
    ({'data_dir': 'none'}, 'none holds no prepared text'),
    ({'seeds': [0, -1]}, 'seed must be at least 0'),
    ({'training_steps': 0}, 'training_steps must be at least 1'),
    ({}, '9192 tokens; the split has'),
  ],
)
def test_what_is_impossible_fails_before_any_training(
  fields, message, tmp_path
):
  if 'split' in message:
    fields = {'data_dir': texts.prepare(tmp_path)}
  with pytest.raises((ValueError, OSError), match=message):
    sweep.sweep('table3', str(tmp_path / 'runs'), **fields)
  assert not (tmp_path / 'runs').exists()


def test_models_of_unlike_texts_share_no_table(tmp_path):
  _save(tmp_path, 'alibi', 0, 20.0, fingerprint='one')
  sweep_report.load('table3', str(tmp_path))
  _save(tmp_path, 't5', 0, 20.0, fingerprint='another')
  with pytest.raises(ValueError, match='trained on other texts'):
    sweep_report.load('table3', str(tmp_path))


def test_a_result_of_other_levels_is_of_another_experiment():
  preset = presets.PRESETS['tiny_deep']
  found, wanted = (
    presets.experiment(preset, name, 0)
    for name in ('regular_gpt_4_2', 'regular_gpt_4_2_levels_3')
  )
  (difference,) = sweep_report.differences(
    {'experiment': dataclasses.asdict(found)}, wanted
  )
  assert difference.startswith('max_levels 0')
