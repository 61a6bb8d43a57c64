"""Numbers of a report, against their definition."""

import dataclasses

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from experiments.sweeps import numbers, paper, spreadsheet, tables
from tests.experiments.sweeps import made


@st.composite
def _measured(draw):
  """Draws any runs, in any order, with lengths 1..T beyond training."""
  runs = draw(
    st.lists(
      st.tuples(st.sampled_from([1e-4, 3e-4, 1e-3]), st.integers(0, 4)),
      min_size=1,
      unique=True,
    )
  )
  num_lengths = draw(st.integers(41, 45))
  value = st.integers(0, 512).map(lambda n: n / 512)
  row = st.lists(value, min_size=num_lengths, max_size=num_lengths)
  accuracy = draw(st.lists(row, min_size=len(runs), max_size=len(runs)))
  return made.result('table1', 'parity_check/rnn', {'': accuracy}, runs=runs)


@hypothesis.given(_measured())
def test_numbers_equal_the_definition(result):
  scores = {}
  for run, row in zip(result.runs, result.accuracy[''], strict=True):
    total = 0
    for length in range(result.training_length + 1, len(row) + 1):
      total += row[length - 1]
    score = 100 * total / (len(row) - result.training_length)
    scores.setdefault(run['learning_rate'], []).append(score)
  everything = [score for of_rate in scores.values() for score in of_rate]
  averages = {rate: sum(s) / len(s) for rate, s in scores.items()}
  found = numbers.measure(result, '', paper.EXTRAPOLATION)
  assert found.max == pytest.approx(max(everything))
  assert found.avg == pytest.approx(max(averages.values()))
  assert found.mean == pytest.approx(sum(everything) / len(everything))
  assert found.learning_rates
  for rate in found.learning_rates:
    assert averages[rate] == pytest.approx(found.avg)


def test_perfect_is_right_at_every_length_beyond_training_of_every_test():
  accuracy = np.zeros((9, 500))
  accuracy[:3, 40:] = 1
  elsewhere = accuracy.copy()
  elsewhere[1, 499] = 0.998
  elsewhere[5] = 1
  result = dataclasses.replace(
    made.FAITHFUL,
    accuracy={'': accuracy.tolist(), 'p=0.1': elsewhere.tolist()},
  )
  assert numbers.num_perfect(result) == 2
  assert numbers.num_perfect(made.FAITHFUL) == 0


@pytest.mark.parametrize(
  ('accuracy', 'expected'),
  [
    # Trained up to 2; None is not tested, and what is not is not wrong.
    ([[1, 1, 1, None, 1], [1, 1, 1, 1, 1], [1, 1, 1, None, 0.5]], 2),
    # Nothing beyond training is tested.
    ([[0.5, 0.6], [1, 1]], 0),
    ([[1, 1, None], [1, 1, None]], 0),
  ],
)
def test_perfect_where_not_all_is_tested(accuracy, expected):
  result = dataclasses.replace(
    made.FAITHFUL, training_length=2, accuracy={'': accuracy}
  )
  assert numbers.num_perfect(result) == expected
  if expected:
    # A test that has nothing beyond training does not take it away.
    short = {**result.accuracy, 'short': [[0.5, 0.5]] * len(accuracy)}
    result = dataclasses.replace(result, accuracy=short)
    assert numbers.num_perfect(result) == expected


def test_where_nothing_is_tested_nothing_is_measured():
  untested = [[None] * 500] * len(made.FAITHFUL.runs)
  result = dataclasses.replace(made.FAITHFUL, accuracy={'': untested})
  assert np.isnan(numbers.measure(result, '', paper.EXTRAPOLATION).max)
  entries = numbers.tables([result])['table1']
  assert all(entry.ours is None for entry in entries)


def test_where_the_training_length_is_not_tested_there_is_a_dash():
  accuracy = np.full((9, 500), 0.5).astype(object)
  accuracy[:, :99] = None
  of_tests = {test: accuracy.tolist() for test in made.TABLE_2.accuracy}
  found = numbers.tables([dataclasses.replace(made.TABLE_2, accuracy=of_tests)])
  _, rows = tables.accuracies(found['table2'])
  shown = {
    tuple(row[0].split(', ')[1:]): set(row[2:])
    for row in rows
    if row[1] == 'measured'
  }
  assert '- / - / -' in shown['p=0.1', paper.SAME_LENGTH]
  assert '50.0 / 50.0 / 50.0' in shown['p=0.1', paper.EXTRAPOLATION]
  assert ',nan' not in spreadsheet.comma_separated(found)


def test_a_field_newer_than_a_result_is_no_difference():
  experiment = dict(made.FAITHFUL.experiment)
  del experiment['warmup_steps']
  older = dataclasses.replace(made.FAITHFUL, experiment=experiment)
  cell = made.cell('table1', 'parity_check/regular_gpt_c2')
  assert numbers.differences(older, cell) == []
  experiment['embedding_dim'] = 64
  assert numbers.differences(older, cell) == ['embedding_dim 64 (preset: 256)']
  # An RNN does not read it.
  cell = made.cell('table1', 'parity_check/rnn')
  assert not any('embedding' in x for x in numbers.differences(older, cell))


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'preset': 'table9'}, 'table9/parity_check/regular_gpt_c2'),
    ({'model': 'gru'}, 'table1/parity_check/gru'),
    ({'accuracy': {'p=2': made.FAITHFUL.accuracy['']}}, 'p=2'),
  ],
)
def test_a_cell_of_no_preset_is_refused(fields, message):
  result = dataclasses.replace(made.FAITHFUL, **fields)
  with pytest.raises(ValueError, match=message):
    numbers.tables([result])


def test_where_nothing_is_beyond_training_it_is_said():
  result = dataclasses.replace(
    made.FAITHFUL, accuracy={'': np.full((9, 40), 1.0).tolist()}
  )
  assert numbers.num_perfect(result) == 0
  entries = numbers.tables([result])['table1']
  _, rows = tables.accuracies(entries)
  shown = [row for row in rows if row[1] == 'measured' and '§' in str(row)]
  assert len(shown) == 1
  assert '§ Nothing beyond training is tested' in tables.legend(entries)
  _, (row, *_) = tables.provenance(entries)
  assert 'trained up to 40, tested none beyond' in row
  whole = numbers.tables([made.FAITHFUL])['table1']
  assert '§' not in tables.legend(whole) + str(tables.accuracies(whole))


@hypothesis.given(
  _measured(), st.sampled_from(['own', 'table1_extra', 'smoke'])
)
def test_outside_the_papers_tables_choice_never_sees_the_test(result, preset):
  result = dataclasses.replace(result, preset=preset)
  trained = np.array(result.accuracy[''])[:, : result.training_length]
  rates = numbers.learning_rates(result)
  on_training = [trained[numbers.runs_at(result, [r])].mean() for r in rates]
  measured = numbers.measure(result, '', paper.EXTRAPOLATION)
  found = measured.learning_rates
  best = np.round(on_training, 9)
  assert found == [
    r for r, x in zip(rates, best, strict=True) if x == max(best)
  ]
  score_R = numbers.scores_of_runs(result, '', paper.EXTRAPOLATION)
  pairs = zip(score_R, result.runs, strict=True)
  chosen = [x for x, run in pairs if run['learning_rate'] in found]
  assert measured.avg == pytest.approx(sum(chosen) / len(chosen))
  # A cell with several tests or kinds of strings has one rate.
  own = result.accuracy['']
  for accuracy in (
    {'p': own},
    {'p': own, 'p, pairs': own[::-1]},
    {'': own, 'pairs': own[::-1]},
    {'p': own, 'q': own},
  ):
    several = dataclasses.replace(result, accuracy=accuracy)
    for test in accuracy:
      for setting in (paper.SAME_LENGTH, paper.EXTRAPOLATION):
        assert numbers.chosen(several, test, setting)[0] == found
  # Nothing is chosen where no training length is tested.
  untested = np.array(result.accuracy[''])
  untested[:, : result.training_length] = np.nan
  blind = dataclasses.replace(result, accuracy={'': untested.tolist()})
  assert numbers.chosen(blind, '') == (rates, list(range(len(result.runs))))


def test_how_a_rate_is_chosen_is_said():
  assert 'sees the test' in tables.choice(['table1', 'table2_small'])
  assert 'sees the test' not in tables.choice(['own', 'recipe'])
  both = tables.choice(['table1_small', 'recipe'])
  assert 'sees the test' in both
  assert 'training lengths' in both
