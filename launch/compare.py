"""Compares runs and measured cells: one table, one picture, what differs.

python -m launch.compare --workdirs=runs/rnn,runs/default
"""

from absl import flags

from experiments.sweeps import comparison
from launch import flag_lib

_WORKDIRS = flags.DEFINE_list(
  'workdirs',
  None,
  'Workdirs of runs or sweeps, folders of evaluations or of results, or JSON'
  ' files of measured cells.',
  required=True,
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  'runs/comparison',
  'Folder for comparison.md, .csv (by length) and .png.',
)


def main() -> None:
  """Compares."""
  comparison.compare(_WORKDIRS.value, _OUTPUT_DIR.value)


if __name__ == '__main__':
  flag_lib.run(main)
