"""Proves that a RegularGPT is right on every string of every length.

python -m launch.certify --workdir=runs/compiled
"""

from absl import flags

from experiments.analysis import certificate
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder of the model; the certificate goes there too. Compiled and narrow'
  ' models take seconds; trained ones of width 64 take minutes, and are rarely'
  ' proved.',
  required=True,
)
_TASK_MODULE = flag_lib.define_module('task')
_MAX_CHUNKS = flags.DEFINE_integer(
  'max_chunks',
  None,
  'Regions are split until there are more chunks of them than this,'
  f' {certificate.MAX_CHUNKS:,} unless given; those of compiled models never.',
)


def main() -> None:
  """Certifies."""
  certificate.certify(
    _WORKDIR.value,
    max_chunks=_MAX_CHUNKS.value,
    task_module=_TASK_MODULE.value,
  )


if __name__ == '__main__':
  flag_lib.run(main)
