"""Small prepared texts, without files."""

import json

import numpy as np

from experiments.language import config
from experiments.text import loading, preparation
from tests.experiments.text import streams, workers

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


def random_text(num_tokens):
  """Returns a text whose splits have so many random tokens each."""
  rng = np.random.default_rng(0)
  by_split = {
    split: streams.make(rng.integers(0, VOCAB_SIZE, num_tokens))
    for split in ('train', 'validation', 'test')
  }
  return loading.Text('', {}, by_split)


def prepare(folder, seed=0, num_documents=30):
  """Prepares words of two letters as bytes; returns the folder."""
  rng = np.random.default_rng(seed)
  words = ['ab', 'ba', 'aa', 'bb']
  with open(folder / 'raw.jsonl', 'w', encoding='utf-8') as f:
    for _ in range(num_documents):
      text = ' '.join(rng.choice(words, 300))
      f.write(json.dumps({'text': text}) + '\n')
  with workers.in_thread():
    preparation.prepare(
      str(folder / '*.jsonl'), str(folder / 'data'), 'byte', heldout=0.2
    )
  return str(folder / 'data')
