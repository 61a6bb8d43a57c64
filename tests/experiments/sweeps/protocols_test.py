"""Protocols of other papers: what is trained, scored and chosen."""

import csv
import dataclasses

import numpy as np
import pytest

from experiments.formal import builders, config
from experiments.sweeps import (
  grid,
  numbers,
  presets,
  protocol_report,
  protocols,
  results,
  sweep,
)
from experiments.sweeps import report as sweep_report
from tests.experiments.sweeps import made

# Trained lengths, tested lengths, and the first that is scored.
_LENGTHS = {
  'chomsky': ((1, 40), (1, 500), 41),
  'xlstm': ((3, 40), (3, 256), 40),
  'word_problems': ((1, 32), (1, 512), 33),
}


@pytest.mark.parametrize('name', _LENGTHS)
def test_lengths_are_the_protocols(name):
  assert set(_LENGTHS) == set(protocols.PRESETS) == set(protocols.PROTOCOLS)
  trained, tested, first = _LENGTHS[name]
  for cell in grid.cells(presets.PRESETS[name])[:2]:
    experiment = cell.experiment
    curriculum = builders.make_curriculum(experiment)
    assert curriculum.bounds(experiment.training_steps) == trained
    assert (
      experiment.min_range_test_length,
      experiment.max_range_test_length,
    ) == tested
    if name != 'word_problems':
      grown = 75 * (trained[1] - trained[0])
      assert curriculum.bounds(grown)[1] == 39
      assert curriculum.bounds(grown + 1) == trained
      # A few late steps still have all lengths.
      late = {curriculum.sample_sequence_length(4000 + i) for i in range(900)}
      assert late == set(range(trained[0], 41))
    result = _result(name, cell.name, [0.5] * 4, [0.5] * 4)
    assert numbers.longest_unscored(result) == first - 1
    assert 'scored from' not in protocol_report.legend(name, [result])


def test_published_numbers_are_of_cells():
  for name, protocol in protocols.PROTOCOLS.items():
    preset = presets.PRESETS[name]
    for (task, model), published in protocol.published.items():
      assert task in preset.tasks
      assert model in preset.models
      assert all(0 <= x.percent <= 100 and x.source for x in published)


@pytest.mark.parametrize(
  ('preset', 'model', 'source', 'row'),
  [
    ('chomsky', 'transformer', 'Deletang', (96.4, 24.2, 52.0, 61.9)),
    ('chomsky', 'lstm', 'Deletang', (100.0, 100.0, 100.0, 100.0)),
    ('chomsky', 'regular_gpt_c2', 'Chi', (100.0, 96.4, 100.0, 100.0)),
    ('xlstm', 'slstm', 'Beck', (None, 100.0, 100.0, None)),
    ('xlstm', 'slstm', 'Grazzi', (None, 78.7, 100.0, None)),
    ('xlstm', 'slstm', 'SLiCE', (100.0, 27.7, 100.0, 32.5)),
    ('xlstm', 'mlstm', 'Grazzi', (None, 4.0, 8.7, None)),
    ('xlstm', 'transformer', 'Grazzi', (None, 3.1, 2.2, None)),
    ('xlstm', 'transformer', 'SLiCE', (90.0, 24.0, 52.0, 24.0)),
    ('xlstm', 'mamba_2_0_1', 'Mamba-3', (None, 47.8, 0.9, None)),
    ('xlstm', 'gated_delta_net_-1_1', 'Mamba-3', (None, 99.3, 100.0, None)),
    ('xlstm', 'gated_delta_product_-1_1', 'SLiCE', (100, 78.4, 98.0, 46.3)),
    ('xlstm', 'rwkv_7_0_1', 'SLiCE', (88.0, 40.0, 51.0, 38.0)),
    ('xlstm', 'lstm', 'SLiCE', (100.0, 99.9, 100.0, 100.0)),
    ('xlstm', 'pd_ssm', 'Terzic', (99.7, 96.2, 99.9, 99.5)),
  ],
)
def test_published_numbers_are_as_printed(preset, model, source, row):
  published = protocols.PROTOCOLS[preset].published
  tasks = 'even_pairs', 'modular_arithmetic', 'parity_check', 'cycle_navigation'
  for task, percent in zip(tasks, row, strict=True):
    found = [
      x.percent
      for x in published.get((task, model), ())
      if x.source.startswith(source)
    ]
    assert found == ([] if percent is None else [percent])


def _result(preset, name, short, scored, **fields):
  """Returns a result of two rates with two seeds.

  Args:
    preset: The protocol's.
    name: Of the cell.
    short: Accuracy of each run on all lengths below the first scored one.
    scored: On all others.
    **fields: Others of the result.
  """
  _, (shortest, longest), first = _LENGTHS[preset]
  accuracy = np.repeat(np.array(scored)[:, None], longest, axis=1)
  accuracy[:, : first - 1] = np.array(short)[:, None]
  accuracy = accuracy.astype(object)
  accuracy[:, : shortest - 1] = None
  return made.result(
    preset,
    name,
    {'': accuracy},
    runs=[(1e-3, 0), (1e-3, 1), (3e-3, 0), (3e-3, 1)],
    training_steps=presets.PRESETS[preset].base['training_steps'],
    **fields,
  )


_CELL = 'parity_check/gated_delta_net_-1_1'


@pytest.mark.parametrize(
  ('preset', 'mean', 'best'),
  # Of 0.6 and 1.0; the other rate is better, which the choice must not see.
  [('chomsky', 80.0, 100.0), ('xlstm', 60.0, 100.0)],
)
def test_scores_and_the_choice_that_does_not_see_them(preset, mean, best):
  result = _result(preset, _CELL, [1.0, 0.9, 0.8, 0.9], [0.6, 1.0, 1.0, 1.0])
  score = protocol_report.measure(result)
  assert score.learning_rates == [1e-3]
  assert score.trained == pytest.approx(95)
  assert (score.mean, score.best) == (pytest.approx(mean), best)
  assert (score.perfect, score.runs) == (1, 2)


def test_rates_between_which_nothing_chooses_are_all_shown():
  result = _result('chomsky', _CELL, [1.0, 0.9, 0.9, 1.0], [0.6, 0.8, 1.0, 1.0])
  score = protocol_report.measure(result)
  assert score.learning_rates == [1e-3, 3e-3]
  assert score.trained == pytest.approx(95)
  assert (score.mean, score.best) == (pytest.approx(85), 100)
  assert (score.perfect, score.runs) == (2, 4)
  _, rows = protocol_report.overview('chomsky', [result])
  assert rows == [[result.model, '85.0, 2 of 4 (95)']]


def test_one_wrong_string_is_not_perfect_and_ends_are_scored():
  result = _result('xlstm', _CELL, [1.0] * 4, [1.0] * 4)
  for at in (40, 256):
    accuracy = np.array(result.accuracy[''], object)
    accuracy[0, at - 1] = 0.5
    score = protocol_report.measure(
      dataclasses.replace(result, accuracy={'': accuracy.tolist()})
    )
    assert score.perfect == 3
    # Scaled, the mean over 217 lengths and four runs.
    assert score.mean == pytest.approx(100 - 100 / 217 / 4)


@pytest.mark.parametrize(
  ('preset', 'trained', 'first'),
  [
    ('word_problems', 64, 65),
    ('xlstm', 64, 64),
    # Of few steps: the range that is scored stays.
    ('xlstm', 3, 40),
    ('chomsky', 14, 41),
  ],
)
def test_what_is_scored_is_not_trained_on(preset, trained, first):
  name = 'S3/rnn' if preset == 'word_problems' else _CELL
  result = _result(preset, name, [0.5] * 4, [0.5] * 4)
  accuracy = np.array(result.accuracy[''], object)
  accuracy[:, trained:] = 0.0
  accuracy[:, :trained] = 1.0
  accuracy[:, first - 1 :] = 0.5
  result = dataclasses.replace(
    result, accuracy={'': accuracy.tolist()}, training_length=trained
  )
  score = protocol_report.measure(result)
  assert score.trained == 100
  assert score.best == pytest.approx(0 if preset == 'xlstm' else 50)
  said = f'{name}: trained to {trained}, scored from {first}.'
  assert said in protocol_report.legend(preset, [result])


@pytest.mark.parametrize(
  'fields', [{'accuracy': {'p=0.5': [[1.0] * 500] * 4}}, {'chance': 1.0}]
)
def test_what_cannot_be_scored_is_refused(fields):
  result = _result('chomsky', _CELL, [1.0] * 4, [1.0] * 4)
  with pytest.raises(ValueError, match=f'chomsky/{_CELL} has no test of'):
    protocol_report.of([dataclasses.replace(result, **fields)])


def test_older_results_have_fewer_fields():
  result = _result('chomsky', _CELL, [1.0] * 4, [1.0] * 4)
  for name in ('training_steps', 'range_test_batch_size'):
    del result.experiment[name]
  (section,) = protocol_report.sections([result])
  default = config.Experiment().range_test_batch_size
  assert f'of each length {default})' in section.legend
  assert protocol_report.comma_separated([result])


@pytest.mark.parametrize(
  ('fields', 'expected'),
  [
    ({'sequence_length': 20}, {'max_sequence_length': 20}),
    ({'curriculum': 'regular_increase'}, {'max_sequence_length': 40}),
    ({'training_steps': 7000}, {'max_sequence_length': 40}),
    ({'curriculum': 'uniform'}, None),
  ],
)
def test_curricula_follow_what_is_asked_for(fields, expected):
  found = sweep.narrowed(presets.PRESETS['chomsky'], **fields)
  usual = presets.PRESETS['chomsky'].base['curriculum_params']
  params = {} if expected is None else usual | expected
  assert found.base['curriculum_params'] == params
  cell = grid.cells(found)[0]
  longest = builders.make_curriculum(cell.experiment).bounds(5000)[1]
  assert longest == fields.get('sequence_length', 40)


@pytest.mark.parametrize('trained', [32, 48])
def test_what_trained_prefixes_get_is_said(trained):
  result = _result('word_problems', 'S3/rnn', [1.0] * 4, [0.5] * 4)
  result = dataclasses.replace(result, training_length=trained)
  scores = []
  for length in range(trained + 1, 513):
    right = [1] * trained + [result.chance] * (length - trained)
    scores.append(sum(right) / length)
  expected = 100 * sum(scores) / len(scores)
  assert protocol_report.floor(result) == pytest.approx(expected)
  said = f'guesses beyond, gets {expected:.1f} (S3).'
  assert said in protocol_report.legend('word_problems', [result])
  # Of lengths that are tested alone, and of two trained otherwise both.
  accuracy = np.array(result.accuracy[''], object)
  accuracy[:, :99] = None
  longer = dataclasses.replace(result, accuracy={'': accuracy.tolist()})
  expected_longer = 100 * sum(scores[99 - trained :]) / 413
  assert protocol_report.floor(longer) == pytest.approx(expected_longer)
  said = f'gets {expected:.1f} (S3), {expected_longer:.1f} (S3).'
  assert said in protocol_report.legend('word_problems', [result, longer])
  accuracy[:, trained:] = None
  nothing = dataclasses.replace(result, accuracy={'': accuracy.tolist()})
  assert protocol_report.floor(nothing) is None
  other = _result('chomsky', _CELL, [1.0] * 4, [0.5] * 4)
  for preset, unscored in (('word_problems', nothing), ('chomsky', other)):
    assert 'guesses beyond' not in protocol_report.legend(preset, [unscored])


def test_further_tests_are_refused(tmp_path):
  preset = sweep.narrowed(
    presets.PRESETS['chomsky'], ['parity_check'], ['rnn'], adversarial=True
  )
  with pytest.raises(ValueError, match='own strings alone, not on adversarial'):
    sweep.sweep('chomsky', preset, str(tmp_path))
  assert not [*tmp_path.iterdir()]


def test_lengths_that_are_not_tested_do_not_count():
  result = _result('chomsky', _CELL, [1.0] * 4, [0.25, 0.75, 0.0, 0.0])
  accuracy = np.array(result.accuracy[''], object)
  accuracy[:, :99] = None
  result = dataclasses.replace(result, accuracy={'': accuracy.tolist()})
  score = protocol_report.measure(result)
  assert (score.mean, score.best) == (25.0, 75.0)
  _, ((*_, mean, best, _, trained, _, _),) = protocol_report.table(
    'chomsky', [result]
  )
  assert (mean, best, trained) == ('25.0', '75.0', '-')
  _, ((_, entry),) = protocol_report.overview('chomsky', [result])
  assert entry == '25.0 (-)'
  (line,) = csv.DictReader(
    protocol_report.comma_separated([result]).splitlines()
  )
  assert (line['mean'], line['trained']) == ('25.0', '')


def test_reports_show_scores_beside_published_ones(tmp_path):
  measured = [
    _result('chomsky', 'even_pairs/rnn', [1.0] * 4, [1.0] * 4),
    _result('xlstm', _CELL, [1.0] * 4, [0.75] * 4),
    _result('xlstm', 'parity_check/slstm', [1.0] * 4, [0.5] * 4),
    dataclasses.replace(
      _result('word_problems', 'A5/looped_log', [0.5] * 4, [0.25] * 4),
      chance=1 / 60,
    ),
  ]
  measured[0].experiment['training_steps'] = 777
  for result in measured:
    cell = made.cell(result.preset, f'{result.task}/{result.model}')
    results.save(
      result, results.path(str(tmp_path / 'in'), result.preset, cell)
    )
  sweep_report.report(None, str(tmp_path / 'in'), str(tmp_path / 'out'), None)
  text = (tmp_path / 'out' / 'report.md').read_text()
  rows = [
    [field.strip() for field in line.split('|')[1:-1]]
    for line in text.splitlines()
    if line.startswith('|')
  ]
  # In the order of the preset, a task's name once.
  of_xlstm = [row for row in rows if row[1] in ('slstm', _CELL.split('/')[1])]
  assert [row[0] for row in of_xlstm] == ['parity_check', '']
  assert of_xlstm[1][1:7] == [
    *(_CELL.split('/')[1], '50.0', '50.0', '0 of 4', '100.0'),
    '0.001, 0.003',
  ]
  assert of_xlstm[1][7].startswith('100.0 (Mamba-3, 2026, scaled')
  total = len(grid.cells(presets.PRESETS['xlstm']))
  assert f'### xlstm: 2 of {total} cells measured' in text
  assert 'Not as the preset: every cell: training_steps' in ' '.join(
    text.split()
  )
  assert 'with jax 0.10.2, at commits 0123456789.' in ' '.join(text.split())
  assert 'is scored, of each length 16)' in ' '.join(text.split())
  assert 'xlstm' in (tmp_path / 'out' / 'report.html').read_text()
  lines = list(csv.DictReader((tmp_path / 'out' / 'protocols.csv').open()))
  assert [line['mean'] for line in lines][-1] == '0.0'
  assert {line['runs'] for line in lines} == {'4'}
  assert {line['commit'] for line in lines} == {'0123456789abcdef'}
  assert {line['strings_of_each_length'] for line in lines} == {'16'}
  assert len(lines) == 4
  with pytest.raises(ValueError, match='No preset has the cell'):
    protocol_report.by_preset([dataclasses.replace(measured[0], model='x')])


def test_a_protocol_is_measured_and_reported(tmp_path, capsys):
  """A cell of xlstm, tiny: its shortest strings are not tested."""
  preset = sweep.narrowed(
    presets.PRESETS['xlstm'],
    ['parity_check'],
    ['rnn'],
    [1e-3],
    [0],
    training_steps=2,
    warmup_steps=0,
    batch_size=4,
    range_test_batch_size=2,
    smallest_bucket=256,
    log_every=1,
  )
  assert sweep.sweep('xlstm', preset, str(tmp_path))
  sweep_report.report(str(tmp_path), None, None, None)
  printed = ' '.join(capsys.readouterr().out.split())
  assert '| parity_check | rnn |' in printed
  assert 'The model is that of the last step' in printed
