"""Analyses of one untrained model, from its parameters to the pictures.

python -m benchmarks.analysis
"""

import contextlib
import io
import tempfile
import time

from absl import flags

from benchmarks import timing
from experiments.analysis import attention, clusters, receptive_field
from experiments.analysis import subject as subject_lib
from experiments.formal import builders, config, training

_DIM = flags.DEFINE_integer('embedding_dim', 256, 'Width of the model.')
_TASK = flags.DEFINE_string('task', 'parity_check', 'Whose strings to run.')
_NUM_STRINGS = flags.DEFINE_integer('num_strings', 128, 'Strings.')
_LENGTH = flags.DEFINE_integer('length', 500, 'Length of the strings.')


def main():
  """Prints the seconds that each analysis takes, compilation included."""
  experiment = config.Experiment(task=_TASK.value, embedding_dim=_DIM.value)
  task, model = builders.make_task_and_model(experiment)
  state = training.init_state(experiment, model)
  subject = subject_lib.make(experiment, task, model, state.params)
  num_strings, length = _NUM_STRINGS.value, _LENGTH.value
  search = clusters.Search(num_strings, clusters.MAX_CLUSTERS)
  string = '01' * 32
  rows, total = [], 0.0
  with tempfile.TemporaryDirectory() as folder:
    for name, analyze in (
      (
        'clusters',
        lambda: clusters.analyze(subject, folder, search, length),
      ),
      (
        'receptive_field',
        lambda: receptive_field.analyze(subject, folder, num_strings, length),
      ),
      (
        'attention',
        lambda: attention.analyze(subject, folder, string, search, length),
      ),
    ):
      start = time.perf_counter()
      with contextlib.redirect_stdout(io.StringIO()):
        analyze()
      seconds = time.perf_counter() - start
      total += seconds
      rows.append([name, f'{seconds:.1f}'])
  timing.print_table(
    f'Analyses of {_TASK.value}, D = {_DIM.value}, {num_strings} strings of'
    f' length {length}, compilation included',
    ['analysis', 's'],
    [*rows, ['all', f'{total:.1f}']],
  )


if __name__ == '__main__':
  timing.run(main)
