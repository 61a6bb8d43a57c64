"""Trains and evaluates the language models of a preset, as Table 3.

python -m launch.sweep_lm --preset=table3 --data_dir=data/openwebtext2
"""

import math

from absl import flags

from experiments.language import config, presets
from launch import flag_lib

_PRESET = flags.DEFINE_enum(
  'preset',
  None,
  sorted(presets.PRESETS),
  'What to measure. Their models: '
  + '; '.join(
    f'{name}: {", ".join(preset.models)}'
    for name, preset in presets.PRESETS.items()
  )
  + '.',
  required=True,
)
_WORKDIR = flags.DEFINE_string(
  'workdir',
  None,
  'Folder of all runs; by default runs/ and the name of the preset. Run again,'
  ' the same command goes on from there.',
)
_RESULTS = flags.DEFINE_string(
  'results',
  None,
  'Folder for the results, <preset>/<model>/seed_<n>.json in it; by default'
  ' results/ in the workdir. What has one is not measured again.',
)
_MODELS = flags.DEFINE_list('models', None, 'Only these models of the preset.')
_SEEDS = flags.DEFINE_list('seeds', None, "In place of the preset's seeds.")
_TRAINING_TIME_S = flags.DEFINE_float(
  'training_time_s',
  math.inf,
  'Seconds of training a model, after which it is evaluated as it is.',
)
_BATCH_TOKENS = flags.DEFINE_integer(
  'batch_tokens',
  config.BATCH_TOKENS,
  'Tokens that a model reads at once in the evaluation.',
)
_REPORT_ONLY = flags.DEFINE_boolean(
  'report_only',
  False,
  'Whether to measure nothing, and renew the report of what is measured.',
)
_OVERRIDES = (
  'data_dir',
  'tokenizer',
  'learning_rate',
  'training_steps',
  'warmup_steps',
  'batch_size',
  'accumulation_steps',
  'remat',
  'fsdp',
)
flag_lib.define_experiment(
  _OVERRIDES, optional=True, kind=config.LanguageExperiment
)
flag_lib.define_processes()


def main() -> None:
  """Measures, then reports."""
  from experiments.language import sweep  # Needs the extra `text`.

  flag_lib.join_processes()
  sweep.sweep(
    _PRESET.value,
    _WORKDIR.value,
    _RESULTS.value,
    _MODELS.value,
    flag_lib.numbers(_SEEDS, int),
    _TRAINING_TIME_S.value,
    _BATCH_TOKENS.value,
    _REPORT_ONLY.value,
    **flag_lib.experiment_values(_OVERRIDES, config.LanguageExperiment),
  )


if __name__ == '__main__':
  flag_lib.run(main)
