"""Small prepared texts, without files."""

import numpy as np

from experiments.language import config
from experiments.text import builder, loading

VOCAB_SIZE = 11
TINY = config.LanguageExperiment(
  vocab_size=VOCAB_SIZE,
  chunk_size=4,
  thickness=2,
  embedding_dim=16,
  num_heads=2,
  num_layers=2,
  precision='float32',
  sequence_length=20,
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
