"""Small prepared texts, without files."""

import json

import numpy as np

from experiments.language import config
from experiments.text import builder, loading, preparation

VOCAB_SIZE = 11
TINY = config.LanguageExperiment(
  vocab_size=VOCAB_SIZE,
  chunk_size=4,
  thickness=1,
  embedding_dim=16,
  num_heads=2,
  num_layers=1,
  precision='float32',
  sequence_length=10,
  batch_size=4,
  training_steps=6,
  log_every=2,
  validate_every=4,
  validation_batches=2,
  checkpoint_every=2,
)


class _Records(list):
  """Records as TFDS gives them."""

  def __getitems__(self, numbers):
    return [self[i] for i in numbers]


def stream(tokens):
  """Returns tokens as a stream."""
  size = builder.RECORD_TOKENS
  num_records = -(-(len(tokens) - 1) // size)
  filled = np.zeros(num_records * size + 1, np.uint16)
  filled[: len(tokens)] = tokens
  records = [
    {'tokens': filled[i * size : (i + 1) * size + 1]}
    for i in range(num_records)
  ]
  return loading.Stream(_Records(records), len(tokens), end_of_text=0)


def random_text(num_tokens):
  """Returns a text whose splits have so many random tokens each."""
  rng = np.random.default_rng(0)
  streams = {
    split: stream(rng.integers(0, VOCAB_SIZE, num_tokens))
    for split in ('train', 'validation', 'test')
  }
  return loading.Text('', {}, streams)


def prepare(folder, seed=0, num_documents=30):
  """Prepares words of two letters as bytes; returns the folder."""
  rng = np.random.default_rng(seed)
  words = ['ab', 'ba', 'aa', 'bb']
  with open(folder / 'raw.jsonl', 'w', encoding='utf-8') as f:
    for _ in range(num_documents):
      text = ' '.join(rng.choice(words, 300))
      f.write(json.dumps({'text': text}) + '\n')
  preparation.prepare(
    str(folder / '*.jsonl'),
    str(folder / 'data'),
    tokenizer_name='byte',
    heldout=0.2,
    num_workers=1,
  )
  return str(folder / 'data')
