"""Range evaluation: its mean is over strings, whatever they are split into."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.formal import (
  builders,
  config,
  evaluation,
  models,
  range_evaluation,
  report,
  training,
)

_TINY = config.Experiment(
  task='stack_manipulation',
  architecture='rnn',
  architecture_params={'hidden_size': 4},
  max_range_test_length=6,
  range_test_batch_size=12,
)


def test_parts_of_unequal_counts_are_not_averaged():
  """Outputs of this task count up to their terminator only.

  A fault of the public code: the mean of the parts' accuracies is not the
  accuracy of all.
  """
  task, model = builders.make_task_and_model(_TINY)
  params = training.init_state(_TINY, model).params
  whole, in_parts = (
    range_evaluation.evaluate(
      _TINY, task, dataclasses.replace(model, sub_batch_size=size), params
    ).accuracy
    for size in (None, 5)
  )
  np.testing.assert_allclose(in_parts, whole, atol=1e-6)
  assert 0 < whole.mean() < 1


@pytest.mark.parametrize('weights', [1, 4 * 2 * 36, 10**9])
def test_attention_is_tested_in_parts_that_caches_hold(weights, monkeypatch):
  """One string at a time, a few, or all 12."""
  experiment = dataclasses.replace(
    _TINY,
    task='parity_check',
    architecture='looped_transformer',
    architecture_params={'width': 8, 'num_heads': 2},
  )
  task, model = builders.make_task_and_model(experiment)
  monkeypatch.setattr(models, '_CACHED_WEIGHTS', weights)
  at_once = {1: 1, 4 * 2 * 36: 4, 10**9: 12}[weights]
  assert model.tested_at_once(12, 6) == at_once
  assert dataclasses.replace(model, heads=0).tested_at_once(12, 6) == 12
  sizes = []

  def apply(params, tokens, *args, **kwargs):
    sizes.append(len(tokens))
    return model.apply(params, tokens, *args, **kwargs)

  params = training.init_state(experiment, model).params
  found = range_evaluation.evaluate(
    experiment, task, dataclasses.replace(model, apply=apply), params
  )
  whole = range_evaluation.evaluate(
    experiment, task, dataclasses.replace(model, heads=0), params
  )
  np.testing.assert_allclose(found.accuracy, whole.accuracy, atol=1e-6)
  assert min(sizes) == at_once


def test_what_is_no_number_is_wrong():
  """To `argmax` NaN is the largest: the class of the first would be right."""
  task, model = builders.make_task_and_model(_TINY)
  params = training.init_state(_TINY, model).params

  def broken(params, tokens, *args, **options):
    logits = model.apply(params, tokens, *args, **options)
    return logits.at[::2, :, 1].set(jnp.nan)

  class Right(type(task)):
    def accuracy_fn(self, output, target):
      return jnp.ones(target.shape[:-1])

  found = range_evaluation.evaluate(
    _TINY, Right(), dataclasses.replace(model, apply=broken), params
  )
  assert (found.accuracy > 0).all() and (found.accuracy < 1).all()


def test_runs_are_tested_on_the_same_strings():
  task, model = builders.make_task_and_model(_TINY)
  params = training.init_state(_TINY, model).params
  twice = jax.tree.map(lambda x: np.concatenate([x, x]), params)
  accuracies = range_evaluation.evaluate(_TINY, task, model, twice).accuracy
  np.testing.assert_array_equal(accuracies[0], accuracies[1])


def test_runs_keep_their_places():
  task, model = builders.make_task_and_model(_TINY)
  runs = [(1e-3, seed, seed) for seed in range(3)]
  params = training.init_state(_TINY, model, runs).params
  together = range_evaluation.evaluate(_TINY, task, model, params).accuracy
  for i in range(len(runs)):
    alone = jax.tree.map(lambda x, i=i: x[i : i + 1], params)
    found = range_evaluation.evaluate(_TINY, task, model, alone)
    np.testing.assert_allclose(found.accuracy[0], together[i], atol=1e-6)
  assert len(np.unique(together, axis=0)) == len(runs)


@pytest.mark.parametrize(
  ('training_length', 'expected'), [(0, 2.5), (1, 3.0), (3, 4.0), (4, None)]
)
def test_score_begins_right_after_the_training_lengths(
  training_length, expected
):
  """A fault of the public example: it began one length late."""
  assert range_evaluation.score([1, 2, 3, 4], training_length) == expected


@pytest.mark.parametrize(
  ('worst', 'where', 'shown'),
  [
    (0.25, 'length 3', '0.2500'),
    (0.99999, 'length 3', '>0.9999'),
    (1.0, 'every length', '1.0000'),
  ],
)
def test_the_table_says_where_a_model_is_worst(worst, where, shown):
  accuracies = np.array([1, 1, worst, 1, worst])
  tests = {'': evaluation.Test(accuracies[None])}
  table = report.table(_TINY, tests, 0.5)
  line = next(x for x in table.splitlines() if x.startswith('worst'))
  assert line.split('  ')[0] == f'worst accuracy, at {where}'
  assert line.endswith(f'  {shown}')
  num_strings = _TINY.range_test_batch_size
  assert f'strings of each length {num_strings}' in ' '.join(table.split())


@pytest.mark.parametrize(
  'fields',
  [
    {'regex': '(01|10)*'},  # No string of odd length is in it.
    {'task': 'stack_manipulation'},  # Not all of its outputs count.
  ],
  ids=['one answer', 'many answers'],
)
def test_constant_answers_are_as_good_as_models_that_give_them(fields):
  experiment = config.Experiment(
    **fields, max_range_test_length=6, range_test_batch_size=32
  )
  task = builders.make_task(experiment)

  def apply(params, tokens, target, **unused):
    del tokens, unused
    answer = jax.nn.one_hot(params, task.output_size)
    return jnp.broadcast_to(answer, target.shape)

  model = models.Model(lambda rng: jnp.zeros(()), apply, width=1)
  every_answer = np.arange(task.output_size)
  found = range_evaluation.evaluate(experiment, task, model, every_answer)
  np.testing.assert_allclose(found.answers, found.accuracy, atol=1e-6)
  best = evaluation.best_constant(evaluation.Test(*found), training_length=4)
  assert best == pytest.approx(found.accuracy[:, 4:].mean(-1).max())
  if 'regex' in fields:
    assert best == 0.75  # "No", at lengths 5 and 6.


@pytest.mark.parametrize('longest', [3, 6])
def test_the_table_says_what_a_constant_answer_scores(longest):
  experiment = dataclasses.replace(_TINY, sequence_length=3)
  answers = np.array([[0, 0, 0.25, 1, 0.5, 0.5], [1, 1, 0.75, 0, 0.5, 0.5]])
  test = evaluation.Test(np.ones((1, longest)), answers[:, :longest])
  table = report.table(experiment, {'': test}, 0.5)
  line = next(x for x in table.splitlines() if 'constant' in x)
  assert line.split('  ')[0] == 'the best constant answer'
  expected = {3: 2.75 / 3, 6: 2 / 3}[longest]
  assert line.endswith(f'  {expected:.4f}')
