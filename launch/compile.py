"""Builds a RegularGPT for a regular language from its automaton, untrained.

python -m launch.compile --task=tomita_4 --workdir=runs/compiled
"""

from absl import flags

from experiments.formal import compiled, config
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Folder for the model, as of a trained one.', required=True
)
_ENCODING = flags.DEFINE_enum(
  'encoding',
  'one_hot',
  compiled.ENCODINGS,
  'How states are written: as in the paper, or shorter for large automata.',
)
_FIELDS = (
  *(name for name in config.TASK_FIELDS if name != 'strings'),
  'chunk_size',
  'sequence_length',
  'max_range_test_length',
  'range_test_batch_size',
)
flag_lib.define_experiment(_FIELDS)


def main() -> None:
  """Compiles."""
  experiment = config.Experiment(**flag_lib.experiment_values(_FIELDS))
  compiled.compile_task(experiment, _WORKDIR.value, _ENCODING.value)


if __name__ == '__main__':
  flag_lib.run(main)
