"""Reports measured cells beside the paper's numbers.

python -m launch.report --workdir=runs/table1
python -m launch.report --results=results
"""

from absl import flags

from experiments.sweeps import report as sweep_report
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder of a sweep; report.md, report.html and tables of numbers as CSV'
  ' (report.csv, protocols.csv, mlregtest.csv, of what is measured) are written'
  ' into it.',
)
_RESULTS = flags.DEFINE_string(
  'results', None, 'Folder of results, in place of --workdir.'
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir',
  None,
  'Folder for the report; by default the workdir. With --results and without'
  ' this flag, the report is only printed.',
)
_PAGE = flags.DEFINE_string(
  'page',
  None,
  'File of Markdown in which to renew what is between the two results markers.',
)


def main() -> None:
  """Reports."""
  sweep_report.report(
    _WORKDIR.value, _RESULTS.value, _OUTPUT_DIR.value, _PAGE.value
  )


if __name__ == '__main__':
  flag_lib.run(main)
