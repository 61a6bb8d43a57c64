"""A model learns, and is right on longer strings."""

import dataclasses

import pytest

from experiments.formal import builders, range_evaluation
from tests.experiments.formal import tiny


@pytest.mark.parametrize(
  'name',
  ['parity_check', pytest.param('even_pairs', marks=pytest.mark.slow)],
)
def test_tiny_model_generalizes(name, tmp_path):
  """Trained on 1..16, above 95% on 17..40."""
  experiment = dataclasses.replace(
    tiny.TINY,
    task=name,
    chunk_size=2,
    embedding_dim=32,
    num_heads=4,
    sequence_length=16,
    batch_size=64,
    training_steps=600,
    learning_rate=2e-3,
    max_extra_levels=2,
    max_range_test_length=40,
    range_test_batch_size=128,
    log_every=0,
    checkpoint_every=0,
  )
  params = tiny.train(experiment, tmp_path)
  task, model = builders.make_task_and_model(experiment)
  accuracies = range_evaluation.evaluate(
    experiment, task, model, params
  ).accuracy[0]
  assert range_evaluation.score(accuracies, 16) > 0.95
