"""Preparing text, and loading it beside a training step.

python -m benchmarks.text --input='openwebtext2/*.jsonl.zst'
"""

import itertools
import tempfile
import time

from absl import flags

from benchmarks import timing
from experiments.text import loading, preparation, tokenizers

_INPUT = flags.DEFINE_string(
  'input', None, 'Glob pattern of the files.', required=True
)
_TOKENIZERS = flags.DEFINE_list(
  'tokenizers', [tokenizers.default_name()], 'To prepare with.'
)
_NUM_WORKERS = flags.DEFINE_list(
  'num_workers', ['1', '0'], 'Processes; 0 for one per core.'
)
_LENGTHS = flags.DEFINE_list('lengths', ['512', '8192'], 'Of the sequences.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 32, 'Sequences per batch.')
_STEP_MS = flags.DEFINE_float(
  'step_ms', 50.0, 'A step, in which the host waits for the device.'
)
_STEPS = 100


def _prepare(tokenizer, num_workers, data_dir):
  """Returns the text and a row of tokens per second."""
  start = time.perf_counter()
  text = preparation.prepare(
    _INPUT.value, data_dir, tokenizer, num_workers=num_workers
  )
  seconds = time.perf_counter() - start
  num_tokens = sum(text.metadata['num_tokens'].values())
  return text, [
    tokenizer,
    num_workers or 'a core each',
    f'{num_tokens:,}',
    f'{seconds:.1f}',
    f'{num_tokens / seconds:,.0f}',
  ]


def _load(stream, length):
  """Returns tokens per second, and the share of a step that waits for them."""
  batches = loading.training_batches(stream, length, _BATCH_SIZE.value, seed=0)
  stream = loading.prefetched(batches)
  next(stream)
  start = time.perf_counter()
  for _ in itertools.islice(stream, _STEPS):
    pass
  seconds = (time.perf_counter() - start) / _STEPS
  waited = []
  for _ in range(_STEPS):
    time.sleep(_STEP_MS.value / 1e3)
    start = time.perf_counter()
    next(stream)
    waited.append(time.perf_counter() - start)
  share = sum(waited) / _STEPS / (_STEP_MS.value / 1e3)
  return _BATCH_SIZE.value * length / seconds, share


def main():
  """Prints the tables."""
  prepared, loaded = [], []
  for tokenizer in _TOKENIZERS.value:
    for num_workers in map(int, _NUM_WORKERS.value):
      with tempfile.TemporaryDirectory() as data_dir:
        text, row = _prepare(tokenizer, num_workers, data_dir)
        prepared.append(row)
        if num_workers:  # The tokens are the same.
          continue
        for length in map(int, _LENGTHS.value):
          rate, share = _load(text.streams['train'], length)
          loaded.append([tokenizer, length, f'{rate:,.0f}', f'{share:.1%}'])
  timing.print_table(
    'Preparing, start of the workers included',
    ['tokenizer', 'workers', 'tokens', 'seconds', 'tokens/s'],
    prepared,
  )
  timing.print_table(
    f'Loading, batch {_BATCH_SIZE.value}',
    ['tokenizer', 'T', 'tokens/s', f'mean wait / {_STEP_MS.value:g} ms'],
    loaded,
  )


if __name__ == '__main__':
  timing.run(main)
