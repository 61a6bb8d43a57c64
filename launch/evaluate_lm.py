"""Measures a language model's perplexity after contexts of several lengths.

python -m launch.evaluate_lm --workdir=runs/lm
"""

from absl import flags

from experiments.language import config
from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Folder of the trained model.', required=True
)
_LENGTHS = flags.DEFINE_list(
  'lengths', [str(n) for n in config.LENGTHS], 'Tokens of context.'
)
_NUM_SEQUENCES = flags.DEFINE_integer(
  'num_sequences',
  config.NUM_SEQUENCES,
  'How many last tokens to predict, the same ones at each length.',
)
_BATCH_TOKENS = flags.DEFINE_integer(
  'batch_tokens',
  config.BATCH_TOKENS,
  'Tokens that the model reads at once: fewer need less memory.',
)
_DATA_DIR = flags.DEFINE_string(
  'data_dir',
  '',
  'Folder of a text in the same tokens; by default that of the training. What'
  ' counts is its test split.',
)
_OUTPUT_DIR = flags.DEFINE_string(
  'output_dir', '', 'Folder for the results; by default the workdir.'
)
flag_lib.define_experiment(
  ('max_levels',), optional=True, kind=config.LanguageExperiment
)
flag_lib.define_processes()


def main() -> None:
  """Evaluates."""
  from experiments.language import run  # Needs the extra `text`.

  flag_lib.join_processes()
  run.evaluate(
    _WORKDIR.value,
    flag_lib.numbers(_LENGTHS, int),
    _NUM_SEQUENCES.value,
    _BATCH_TOKENS.value,
    _DATA_DIR.value,
    _OUTPUT_DIR.value,
    **flag_lib.experiment_values(('max_levels',), config.LanguageExperiment),
  )


if __name__ == '__main__':
  flag_lib.run(main)
