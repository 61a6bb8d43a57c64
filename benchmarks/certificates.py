"""Which share of models that differ in seed is proved right at every length.

python -m benchmarks.certificates
"""

import json
import tempfile
import time

from absl import flags
import jax
import numpy as np

from benchmarks import timing
from experiments.analysis import certificate
from experiments.analysis import subject as subject_lib
from experiments.formal import builders, config, training

_TASKS = flags.DEFINE_list('tasks', ['parity_check'], 'Regular tasks.')
_SEEDS = flags.DEFINE_integer('seeds', 16, 'Models of each task.')
_TOGETHER = flags.DEFINE_integer('together', 8, 'Models trained at a time.')
_STEPS = flags.DEFINE_integer('steps', 3000, 'Steps of training.')
_DIM = flags.DEFINE_integer('embedding_dim', 8, 'Width of the models.')
_EXTRA = flags.DEFINE_integer('max_extra_levels', 1, 'As of launch.train.')
_CONTRACTION = flags.DEFINE_float('contraction_weight', 0.1, 'Likewise.')
_SPREAD = flags.DEFINE_float('spread_weight', 0.0, 'Likewise.')
_NODES = flags.DEFINE_float('node_weight', 0.0, 'Likewise.')
_PARAMS = flags.DEFINE_string('architecture_params', '{}', 'Likewise.')
_MAX_CHUNKS = flags.DEFINE_integer(
  'max_chunks', certificate.MAX_CHUNKS, 'As of launch.certify.'
)


def _row(task_name):
  experiment = config.Experiment(
    task=task_name,
    embedding_dim=_DIM.value,
    num_heads=2,
    contraction_weight=_CONTRACTION.value,
    spread_weight=_SPREAD.value,
    node_weight=_NODES.value,
    architecture_params=json.loads(_PARAMS.value),
    sequence_length=8,
    max_extra_levels=_EXTRA.value,
    batch_size=64,
    training_steps=_STEPS.value,
    learning_rate=5e-3,
    schedule='cosine',
    checkpoint_every=0,
    log_every=0,
  )
  task, model = builders.make_task_and_model(experiment)
  num_proved, train_s, seconds = 0, 0.0, []
  for first in range(0, _SEEDS.value, _TOGETHER.value):
    seeds = range(first, min(first + _TOGETHER.value, _SEEDS.value))
    runs = [(experiment.learning_rate, seed, seed) for seed in seeds]
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as workdir:
      params = training.train(experiment, workdir, task, model, runs).params
    params = jax.tree.map(np.asarray, params)
    train_s += time.process_time() - begun
    for i in range(len(runs)):
      begun = time.process_time()
      one = jax.tree.map(lambda x, i=i: x[i : i + 1], params)
      subject = subject_lib.make(experiment, task, model, one)
      num_proved += certificate.is_proved_right(subject, _MAX_CHUNKS.value)
      seconds.append(time.process_time() - begun)
  return [
    task_name,
    f'{num_proved} of {_SEEDS.value}',
    f'{train_s / _SEEDS.value:.1f}',
    f'{max(seconds):.1f}',
  ]


def main():
  """Prints the table."""
  timing.print_table(
    f'Trained for {_STEPS.value} steps, D = {_DIM.value}, CPU time',
    ['task', 'proved', 'training, s a model', 'longest proof, s'],
    [_row(name) for name in _TASKS.value],
  )


if __name__ == '__main__':
  timing.run(main)
