"""Looks inside a trained RegularGPT (section 7 of the paper).

python -m launch.analyze --workdir=runs/default --analysis=clusters
"""

from absl import flags

from experiments.analysis import analyses, clusters
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder of the trained run; the results go there too.',
  required=True,
)
_ANALYSIS = flags.DEFINE_enum(
  'analysis',
  None,
  analyses.NAMES,
  'clusters: do the outputs of all levels cluster by transition (Figure 4)?'
  ' receptive_field: how far back does the answer look (Figure 5)? attention:'
  ' which positions feed which, on one string?',
  required=True,
)
_TASK_MODULE = flag_lib.define_module('task')
_STRING = flags.DEFINE_string(
  'string',
  None,
  'For attention, and that alone: what to look at it on, as 0110; symbols of'
  ' several characters are separated by spaces.',
)
_NUM_STRINGS = flags.DEFINE_integer(
  'num_strings', 128, 'Strings of the task to run.'
)
_LENGTH = flags.DEFINE_integer('length', 500, 'Length of those strings.')
_MAX_CLUSTERS = flags.DEFINE_integer(
  'max_clusters',
  None,
  f'Most clusters to look for, {clusters.MAX_CLUSTERS} unless given; not for'
  ' receptive_field, which looks for none.',
)


def main() -> None:
  """Analyzes."""
  analyses.analyze(
    _WORKDIR.value,
    _ANALYSIS.value,
    _STRING.value,
    num_strings=_NUM_STRINGS.value,
    length=_LENGTH.value,
    max_clusters=_MAX_CLUSTERS.value,
    task_module=_TASK_MODULE.value,
  )


if __name__ == '__main__':
  flag_lib.run(main)
