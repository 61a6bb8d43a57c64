"""Measures the cells of a preset, each with all its runs at once.

python -m launch.sweep --preset=smoke --workdir=runs/smoke
"""

import math

from absl import flags

from experiments.sweeps import presets, sweep
from launch import flag_lib

_PRESET = flags.DEFINE_enum(
  'preset', None, sorted(presets.PRESETS), 'What to measure.', required=True
)
_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder of the sweep; by default runs/ and the name of the preset. Run again,'
  ' the same command goes on from there.',
)
_RESULTS = flags.DEFINE_string(
  'results',
  None,
  'Folder for the files of measured cells; by default results/ in the workdir.'
  ' Cells that have one are not measured again.',
)
_AUTOMATA = flags.DEFINE_string(
  'automata',
  None,
  'Folder of automata, each of which is a task of --preset=mlregtest: .att'
  ' files of MLRegTest, or others.',
)
_TASKS = flags.DEFINE_list('tasks', None, 'Only these tasks of the preset.')
_MODELS = flags.DEFINE_list('models', None, 'Only these models of the preset.')
_SEEDS = flags.DEFINE_list('seeds', None, "In place of the preset's seeds.")
_LEARNING_RATES = flags.DEFINE_list(
  'learning_rates', None, "In place of the preset's learning rates."
)
_TRAINING_STEPS = flags.DEFINE_integer(
  'training_steps', None, "In place of the preset's.", lower_bound=1
)
_PART = flags.DEFINE_string(
  'part',
  '1/1',
  'Which share of the cells, as 2/4; for jobs that know nothing of each other.',
)
_TIME_BUDGET_S = flags.DEFINE_float(
  'time_budget_s',
  math.inf,
  'Seconds after which to stop training and save.',
  lower_bound=0,
)
flag_lib.define_processes()


def main() -> None:
  """Sweeps."""
  flag_lib.join_processes()
  name = _PRESET.value
  preset = presets.PRESETS[name]
  if _AUTOMATA.value is not None:
    preset = presets.of_automata(preset, _AUTOMATA.value)
  sweep.sweep(
    name,
    sweep.narrowed(
      preset,
      _TASKS.value,
      _MODELS.value,
      flag_lib.numbers(_LEARNING_RATES, float),
      flag_lib.numbers(_SEEDS, int),
      _TRAINING_STEPS.value,
    ),
    _WORKDIR.value,
    _RESULTS.value,
    _PART.value,
    _TIME_BUDGET_S.value,
  )


if __name__ == '__main__':
  flag_lib.run(main)
