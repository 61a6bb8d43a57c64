"""Trains a language model on a prepared text.

python -m launch.train_lm --data_dir=data/openwebtext2 --workdir=runs/lm
"""

import math

from absl import flags

from experiments.language import config
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder for all output. Run again, the same command goes on from there.',
  required=True,
)
_TIME_BUDGET_S = flags.DEFINE_float(
  'time_budget_s',
  math.inf,
  'Seconds of training, without compiling, after which to save and stop.',
)
_EXPERIMENT = config.LanguageExperiment
flag_lib.define_experiment(config.FLAGS, kind=_EXPERIMENT)
flag_lib.define_processes()


def main() -> None:
  """Trains."""
  from experiments.language import run  # Needs the extra `text`.

  flag_lib.join_processes()
  experiment = _EXPERIMENT(
    **flag_lib.experiment_values(config.FLAGS, _EXPERIMENT)
  )
  given = (name for name in config.FLAGS if flags.FLAGS[name].present)
  config.check_fields(experiment.architecture, given)
  run.train_and_report(experiment, _WORKDIR.value, _TIME_BUDGET_S.value)


if __name__ == '__main__':
  flag_lib.run(main)
