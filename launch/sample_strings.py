"""Writes labelled strings of a task, as files to train and test on.

python -m launch.sample_strings --task=tomita_4 --output=runs/strings.txt
"""

from absl import flags

from experiments.formal import config, string_samples
from launch import flag_lib

_OUTPUT = flags.DEFINE_string(
  'output',
  None,
  'File to write: a string, a tabulator and its label a line.',
  required=True,
)
_MIN_LENGTH = flags.DEFINE_integer(
  'min_length', 20, 'Symbols of the shortest strings.', 1, 2**24
)
_MAX_LENGTH = flags.DEFINE_integer(
  'max_length', 29, 'Symbols of the longest strings.', 1, 2**24
)
_NUM_STRINGS = flags.DEFINE_integer(
  'num_strings', 100, 'Strings of each length.', 1, 2**24
)
_ADVERSARIAL = flags.DEFINE_boolean(
  'adversarial',
  False,
  'Whether each string in the language comes with one outside it at edit'
  ' distance 1.',
)
_FIELDS = (
  *(field for field in config.LANGUAGE_FIELDS if field != 'strings'),
  'seed',
)
flag_lib.define_experiment(_FIELDS)


def main() -> None:
  """Writes the file."""
  string_samples.write(
    config.Experiment(**flag_lib.experiment_values(_FIELDS)),
    _OUTPUT.value,
    _MIN_LENGTH.value,
    _MAX_LENGTH.value,
    _NUM_STRINGS.value,
    _ADVERSARIAL.value,
  )


if __name__ == '__main__':
  flag_lib.run(main)
