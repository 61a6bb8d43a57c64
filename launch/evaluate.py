"""Tests a trained model on every length, from its newest checkpoint.

python -m launch.evaluate --workdir=runs/parity --max_range_test_length=1000 \
  --output_dir=runs/parity/to_1000
"""

from absl import flags

from experiments.formal import run
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Folder of the trained run.', required=True
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  None,
  'Folder for the results; by default the workdir, where no flag differs from'
  ' training.',
)
_TASK_MODULE = flag_lib.define_module('task')
_MODEL_MODULE = flag_lib.define_module('model')
_LENGTHS = flags.DEFINE_list(
  'lengths',
  None,
  'Test strings of these lengths alone, as 10000,1000000, and print a table.',
)
# What may differ from training; a flag that is not given is as in training.
_OVERRIDES = (
  'task_params',
  'max_range_test_length',
  'min_range_test_length',
  'adversarial',
  'test_strings',
  'range_test_batch_size',
  'precision',
  'smallest_bucket',
)
flag_lib.define_experiment(_OVERRIDES, optional=True)


def main() -> None:
  """Evaluates."""
  run.evaluate(
    _WORKDIR.value,
    _OUTPUT_DIR.value,
    _TASK_MODULE.value,
    _MODEL_MODULE.value,
    flag_lib.numbers(_LENGTHS, int),
    **flag_lib.experiment_values(_OVERRIDES),
  )


if __name__ == '__main__':
  flag_lib.run(main)
