"""Trains a model on a task, then tests it on every length.

python -m launch.train --task=parity_check --workdir=runs/parity
"""

from absl import flags

from experiments.formal import config, run
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir',
  'runs/default',
  'Folder for all output. Run again, the same command goes on from there.',
)
flag_lib.define_experiment()
flag_lib.define_processes()


def main() -> None:
  """Trains and evaluates."""
  flag_lib.join_processes()
  experiment = config.Experiment(**flag_lib.experiment_values())
  run.train_and_evaluate(experiment, _WORKDIR.value)


if __name__ == '__main__':
  flag_lib.run(main)
