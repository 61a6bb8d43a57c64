"""Accuracy on pairs at edit distance 1, by length, beside that on others."""

import csv
import dataclasses
import json

import jax
import numpy as np
import pytest

from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  adversarial,
  builders,
  config,
  limits,
  models,
  run,
)
from tests.experiments.formal import tiny

_TINY = dataclasses.replace(
  tiny.TINY,
  regex='(01)*',
  adversarial=True,
  min_range_test_length=2,
  range_test_batch_size=6,
)


def _of_last_symbol(task):
  """A model that says 1 where the last symbol is a 1."""

  def apply(params, tokens, target, *unused, **unused_too):
    del params, target
    return jax.nn.one_hot(tokens[:, -1], task.output_size)

  return models.Model(lambda rng: np.zeros(()), apply, width=1)


def test_accuracy_is_that_on_the_pairs():
  """Of (01)*: all positives end in 1; the negatives by how they were made."""
  task = builders.make_task(_TINY)
  model = _of_last_symbol(task)
  found = adversarial.evaluate(_TINY, task, model, np.zeros(2))
  assert found.shape == (2, 9)
  np.testing.assert_array_equal(found[0], found[1])
  assert np.isnan(found[:, 0]).all()
  draws = adversarial.pairs.PairSampler(task.machine, 9).sample(
    adversarial.range_evaluation.TEST_SEED, range(2, 10), 3
  )
  for length, (tokens, answers) in draws.items():
    assert tokens.shape == (3, 2, length)
    expected = (tokens[..., -1] == answers).mean()
    np.testing.assert_allclose(found[0, length - 1], expected)
  assert 0.5 < np.nanmean(found) < 1


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'task': 'reverse_string'}, 'ReverseString has no automaton'),
    ({'task': 'modular_arithmetic'}, 'does not take all strings'),
    ({'task': 'aaaa'}, 'does not take all strings'),
    ({'task': 'd_12', 'max_range_test_length': 10**7}, 'too long'),
    (
      {'min_range_test_length': 10},
      r'min_range_test_length \(10\) must not exceed max_range_test_length \(9',
    ),
  ],
)
def test_what_cannot_be_is_refused_first(fields, message):
  with pytest.raises(ValueError, match=message):
    experiment = dataclasses.replace(_TINY, regex='', **fields)
    task, model = builders.make_task_and_model(experiment)
    limits.check(experiment, task, model)


def test_one_more_line_in_the_table_and_the_files(tmp_path, capsys):
  run.train_and_evaluate(_TINY, str(tmp_path))
  shown = capsys.readouterr().out
  assert 'accuracy, lengths 2..5 ' in shown
  assert 'accuracy, lengths 6..9 (score)' in shown
  assert 'adversarial accuracy, lengths 6..9' in shown
  rows = list(csv.reader(tiny.read(tmp_path, 'range_evaluation.csv').split()))
  assert rows[0] == ['length', 'accuracy', 'adversarial']
  assert [int(row[0]) for row in rows[1:]] == list(range(2, 10))
  contents = json.loads(tiny.read(tmp_path, 'range_evaluation.json'))
  assert set(contents['accuracy']) == set(map(str, range(2, 10)))
  pairs = contents['others']['adversarial']
  assert pairs['accuracy'] == {row[0]: float(row[2]) for row in rows[1:]}
  mean = np.mean([float(row[2]) for row in rows[5:]])
  np.testing.assert_allclose(pairs['summary']['score'], mean)
  np.testing.assert_allclose(
    contents['summary']['score'],
    np.mean([float(row[1]) for row in rows[5:]]),
  )
  run.evaluate(str(tmp_path), str(tmp_path / 'to_11'), max_range_test_length=11)
  longer = json.loads(tiny.read(tmp_path, 'to_11/range_evaluation.json'))
  # The same pairs, whatever else is tested.
  for length, accuracy in pairs['accuracy'].items():
    assert longer['others']['adversarial']['accuracy'][length] == accuracy


def test_a_task_without_short_strings_is_not_asked_for_them(tmp_path):
  """Neither by the checks, nor in training, nor in the evaluation."""
  experiment = dataclasses.replace(
    _TINY,
    regex='',
    adversarial=False,
    task_module='tests.experiments.formal.own_tasks',
    task='NoShortStrings',
    curriculum_params={'values': [3, 4]},
    min_range_test_length=3,
  )
  run.train_and_evaluate(experiment, str(tmp_path))
  contents = json.loads(tiny.read(tmp_path, 'range_evaluation.json'))
  assert set(contents['accuracy']) == set(map(str, range(3, 10)))
  for fields in ({'min_range_test_length': 2}, {'curriculum_params': {}}):
    other = dataclasses.replace(experiment, **fields)
    with pytest.raises(ValueError, match=r'length [12]: ValueError: too short'):
      builders.make_task(other)


def test_older_experiments_are_tested_from_length_1(tmp_path):
  """A workdir from before there were pairs, or a shortest length, is read."""
  fields = dataclasses.asdict(tiny.TINY)
  for name in ('min_range_test_length', 'adversarial'):
    del fields[name]
  (tmp_path / 'config.json').write_text(json.dumps({'experiment': fields}))
  held = workdir_lib.load(str(tmp_path), config.Experiment)
  assert held.experiment.min_range_test_length == 1
  assert not held.experiment.adversarial
