"""Range evaluation of one untrained model on every length.

python -m benchmarks.evaluation
"""

import time

from absl import flags
import jax

from benchmarks import timing
from experiments.formal import builders, config, range_evaluation, training

_DIM = flags.DEFINE_integer('embedding_dim', 256, 'Width of the model.')
_TASK = flags.DEFINE_string('task', 'parity_check', 'What to evaluate on.')
_LONGEST = flags.DEFINE_integer('longest', 500, 'Longest string.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 512, 'Strings per length.')


def main():
  """Prints the seconds that an evaluation takes, compilation included."""
  experiment = config.Experiment(
    task=_TASK.value,
    embedding_dim=_DIM.value,
    max_range_test_length=_LONGEST.value,
    range_test_batch_size=_BATCH_SIZE.value,
  )
  task, model = builders.make_task_and_model(experiment)
  state = training.init_state(experiment, model)
  jax.block_until_ready(state)
  start = time.perf_counter()
  range_evaluation.evaluate(experiment, task, model, state.params)
  seconds = time.perf_counter() - start
  timing.print_table(
    'Range evaluation, compilation included',
    ['task', 'D', 'lengths', 'strings a length', 's'],
    [
      [
        _TASK.value,
        _DIM.value,
        f'1..{_LONGEST.value}',
        _BATCH_SIZE.value,
        f'{seconds:.1f}',
      ]
    ],
  )


if __name__ == '__main__':
  timing.run(main)
