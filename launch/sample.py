"""Lets a trained language model write.

python -m launch.sample --workdir=runs/lm --prompt='The anarchists'
"""

from absl import flags

from launch import flag_lib

_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Folder of the trained model.', required=True
)
_PROMPT = flags.DEFINE_string(
  'prompt', '', 'The beginning of the text; without, the model begins.'
)
_NUM_TOKENS = flags.DEFINE_integer('num_tokens', 200, 'Tokens to write.')
_TEMPERATURE = flags.DEFINE_float(
  'temperature', 1.0, 'Divides the logits; 0 takes the likeliest token.'
)
_TOP_K = flags.DEFINE_integer(
  'top_k', None, 'Draw from the likeliest so many tokens; by default from all.'
)
_SEED = flags.DEFINE_integer('seed', 0, 'Of the draw.')
_VOCABULARY_DIR = flags.DEFINE_string(
  'vocabulary_dir',
  '',
  "Folder with GPT-2's vocab.bpe and encoder.json; by default tiktoken's cache"
  ' folder.',
)


def main() -> None:
  """Samples."""
  from experiments.language import run  # Needs the extra `text`.

  print(
    run.sample(
      _WORKDIR.value,
      _PROMPT.value,
      _NUM_TOKENS.value,
      _TEMPERATURE.value,
      _TOP_K.value,
      _SEED.value,
      _VOCABULARY_DIR.value,
    )
  )


if __name__ == '__main__':
  flag_lib.run(main)
