"""Measures the cells of a sweep, each with all its runs at once.

python -m launch.sweep --preset=smoke --workdir=runs/smoke
python -m launch.sweep --cells=my_cells.json
python -m launch.sweep --regex='(01)*' --learning_rates=1e-3,3e-3 --seeds=0,1
"""

import math

from absl import flags

from experiments.sweeps import own, presets, sweep
from launch import flag_lib

_PRESET = flags.DEFINE_enum(
  'preset',
  None,
  sorted(presets.PRESETS),
  "What to measure. (RegularGPT's block, which elsewhere is --preset, goes into"
  ' a file for --cells.)',
)
_CELLS = flags.DEFINE_string(
  'cells',
  None,
  'What to measure in place of a preset: a JSON file with base, tasks, models,'
  ' learning_rates and seeds. Without either, the one cell that the flags of'
  ' launch.train say. Modules that the file names must be named again, by'
  ' --task_module or --model_module, with commas between them.',
)
_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder of the sweep; by default runs/ and the name of the preset or of the'
  ' file, else runs/own. Run again, the same command goes on from there.',
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
_TASKS = flags.DEFINE_list(
  'tasks', None, 'Only these tasks of the sweep; any other name lists them.'
)
_MODELS = flags.DEFINE_list(
  'models', None, 'Only these models of the sweep; any other name lists them.'
)
_SEEDS = flags.DEFINE_list('seeds', None, "In place of the sweep's seeds.")
_LEARNING_RATES = flags.DEFINE_list(
  'learning_rates', None, "In place of the sweep's learning rates."
)
_PART = flags.DEFINE_string(
  'part',
  '1/1',
  'Which share of the cells, as 2/4; for jobs that know nothing of each other.',
)
_TIME_BUDGET_S = flags.DEFINE_float(
  'time_budget_s',
  math.inf,
  'Seconds, with compiling, after which to stop training and save.',
)
# In place of what all cells of a preset or a file share.
flag_lib.define_experiment(own.FLAGS, optional=True)
flag_lib.define_processes()


def main() -> None:
  """Sweeps."""
  flag_lib.join_processes()
  name, preset, fields = own.chosen(
    _PRESET.value, _CELLS.value, flag_lib.experiment_values(own.FLAGS)
  )
  preset = presets.with_tasks(preset, _AUTOMATA.value)
  sweep.sweep(
    name,
    sweep.narrowed(
      preset,
      _TASKS.value,
      _MODELS.value,
      flag_lib.numbers(_LEARNING_RATES, float),
      flag_lib.numbers(_SEEDS, int),
      **fields,
    ),
    _WORKDIR.value,
    _RESULTS.value,
    _PART.value,
    _TIME_BUDGET_S.value,
    # Flags are all of a sweep; a file has it whole.
    preset if _CELLS.value else None,
  )


if __name__ == '__main__':
  flag_lib.run(main)
