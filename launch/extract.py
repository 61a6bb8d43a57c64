"""Extracts the automaton that a trained RegularGPT has learned.

python -m launch.extract --workdir=runs/default
"""

from absl import flags

from experiments.analysis import clusters, extraction
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder of the trained run; the automaton goes there too.',
  required=True,
)
_TASK_MODULE = flag_lib.define_module('task')
_NUM_STRINGS = flags.DEFINE_integer(
  'num_strings',
  64,
  'Strings of the task at each length.',
)
_LENGTH = flags.DEFINE_integer(
  'length',
  40,
  'Clusters are found from strings of 1 to this many symbols.',
)
_MAX_CLUSTERS = flags.DEFINE_integer(
  'max_clusters', clusters.MAX_CLUSTERS, 'Most clusters to look for.'
)
_MAX_TEST_LENGTH = flags.DEFINE_integer(
  'max_test_length',
  100,
  'Longest strings on which the automaton is compared with the model.',
)


def main() -> None:
  """Extracts."""
  extraction.extract(
    _WORKDIR.value,
    num_strings=_NUM_STRINGS.value,
    length=_LENGTH.value,
    max_clusters=_MAX_CLUSTERS.value,
    max_test_length=_MAX_TEST_LENGTH.value,
    task_module=_TASK_MODULE.value,
  )


if __name__ == '__main__':
  flag_lib.run(main)
