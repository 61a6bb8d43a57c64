"""An experiment that takes no time, and what to do with it."""

import os

from experiments.formal import builders, config, training

# Few levels, which are what tracing and compiling take their time for.
TINY = config.Experiment(
  chunk_size=5,
  embedding_dim=8,
  num_heads=2,
  sequence_length=5,
  batch_size=4,
  training_steps=6,
  max_range_test_length=9,
  range_test_batch_size=4,
  log_every=2,
  checkpoint_every=2,
)

# Sizes of our own architectures, which others refuse, at their defaults.
NO_SIZES = {
  name: getattr(config.Experiment, name)
  for name in ('chunk_size', 'embedding_dim', 'num_heads')
}


def train(experiment, workdir):
  task, model = builders.make_task_and_model(experiment)
  return training.train(experiment, str(workdir), task, model).params


def read(workdir, name):
  with open(os.path.join(workdir, name), encoding='utf-8') as f:
    return f.read()
