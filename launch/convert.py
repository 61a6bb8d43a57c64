"""Writes an automaton in another format: .json, .dot or .att.

python -m launch.convert --automaton=in.jff --output=out.dot
"""

from absl import flags

from experiments.formal import automata
from launch import flag_lib

_OUTPUT = flags.DEFINE_string(
  'output',
  None,
  'File to write; its name ends in .json, .dot or .att.',
  required=True,
)
_FIELDS = ('automaton', 'regex', 'alphabet')
flag_lib.define_experiment(_FIELDS, optional=True)


def main() -> None:
  """Converts."""
  values = flag_lib.experiment_values(_FIELDS)
  automata.convert(
    values['automaton'], values['regex'], values['alphabet'], _OUTPUT.value
  )


if __name__ == '__main__':
  flag_lib.run(main)
