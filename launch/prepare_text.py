"""Prepares text files as tokens, to train a language model on.

python -m launch.prepare_text --input='corpus/*.jsonl.zst' --data_dir=data/own

Started again after a kill, the same command goes on from there.
"""

from absl import flags

from launch import flag_lib

_INPUT = flags.DEFINE_string(
  'input',
  None,
  'Glob pattern of the files: .jsonl, a document a line, or .txt; each may be'
  ' compressed, as .zst or .gz.',
  required=True,
)
_DATA_DIR = flags.DEFINE_string(
  'data_dir', None, 'Folder for the tokens.', required=True
)
_TOKENIZER = flags.DEFINE_string(
  'tokenizer',
  '',
  'gpt2 or byte; by default gpt2 where its vocabulary is on this machine, else'
  ' byte.',
)
_VOCABULARY_DIR = flags.DEFINE_string(
  'vocabulary_dir',
  '',
  "Folder with GPT-2's vocab.bpe and encoder.json; by default tiktoken's cache"
  ' folder.',
)
_KEY = flags.DEFINE_string('key', 'text', 'Key of the text in a line of JSON.')
_HELDOUT = flags.DEFINE_float(
  'heldout',
  0.01,
  'Fraction of the text for validation, and again for the test.',
)
_NUM_WORKERS = flags.DEFINE_integer(
  'num_workers', 0, 'Processes; 0 for one per core.'
)


def main() -> None:
  """Prepares."""
  from experiments.text import preparation  # Needs the extra `text`.

  text = preparation.prepare(
    _INPUT.value,
    _DATA_DIR.value,
    _TOKENIZER.value,
    _VOCABULARY_DIR.value,
    _HELDOUT.value,
    _NUM_WORKERS.value,
    _KEY.value,
  )
  print(preparation.summary(text))
  print(f'tokens: {text.folder}')


if __name__ == '__main__':
  flag_lib.run(main)
