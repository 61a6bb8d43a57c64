"""The three ways to compute RegularGPT: time and memory against length.

python -m benchmarks.paths
"""

import functools

from absl import flags
import jax

from benchmarks import timing
from regulargpt_jax import config as config_lib
from regulargpt_jax import model as model_lib

_DIM = flags.DEFINE_integer('embedding_dim', 256, 'Width of the model.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 1, 'Strings per call.')
_LONGEST = flags.DEFINE_integer('longest', 8192, 'Longest string.')
_LONGEST_REFERENCE = flags.DEFINE_integer(
  'longest_reference', 1024, 'Longest string for `reference`.'
)


def _gradient(path, length, tabulates=True):
  """Returns a compiled gradient on strings of a length, and its arguments.

  Args:
    path: Of `model.PATHS`.
    length: Of the strings, which fill their bucket.
    tabulates: Whether `reduce` may tabulate the states of short strings.
  """
  # 5 symbols: tables serve the lowest levels only.
  config = config_lib.make_config(
    'benchmark', 5, 2, embedding_dim=_DIM.value, num_heads=8
  )
  model = model_lib.RegularGPT(config)
  shape = (_BATCH_SIZE.value, length)
  tokens = jax.random.randint(jax.random.key(0), shape, 0, 5)
  params = model.init(jax.random.key(0), tokens[:, :2])

  def loss(params, tokens):
    tables = None
    if not tabulates:
      tables = model.apply(params, 0, method=model.tabulate)
    logits = model.apply(params, tokens, path, tables=tables)
    answer = logits if path == 'reduce' else logits[:, -1]
    return jax.nn.log_softmax(answer)[:, 0].mean()

  program, _ = timing.compiled(
    f'{path}, T = {length}', jax.grad(loss), params, tokens
  )
  return program, functools.partial(program, params, tokens)


def _megabytes(program):
  return f'{program.memory_analysis().temp_size_in_bytes / 1e6:.0f}'


def main():
  """Prints the tables."""
  lengths = [256]
  while lengths[-1] < _LONGEST.value:
    lengths.append(2 * lengths[-1])
  rows = []
  per_string = {}
  for length in lengths:
    paths = ['reduce', 'scan']
    if length <= _LONGEST_REFERENCE.value:
      paths.append('reference')
    programs = {path: _gradient(path, length) for path in paths}
    programs['no tables'] = _gradient('reduce', length, tabulates=False)
    seconds = dict(
      zip(
        programs,
        timing.interleaved([call for _, call in programs.values()]),
        strict=True,
      )
    )
    per_string[length] = seconds['reduce'] / _BATCH_SIZE.value
    row = [length]
    for path in ('reduce', 'no tables', 'scan', 'reference'):
      if path in seconds:
        row += [f'{seconds[path] * 1e3:.1f}', _megabytes(programs[path][0])]
      else:
        row += ['-', '-']
    row.append(f'{seconds["scan"] / seconds["reduce"]:.1f}')
    rows.append(row)
  timing.print_table(
    f'Forward and backward, D = {_DIM.value}, C = 2, 5 symbols, batch'
    f' {_BATCH_SIZE.value}',
    [
      'T',
      'reduce ms',
      'MB',
      'without tables ms',
      'MB',
      'scan ms',
      'MB',
      'reference ms',
      'MB',
      'scan / reduce',
    ],
    rows,
  )
  if 512 in per_string:
    last = lengths[-1]
    ratio = per_string[last] / per_string[512] / (last / 512)
    print(
      f'\nreduce, time per string from T = 512 to {last}: {ratio:.2f} of'
      ' proportional'
    )


if __name__ == '__main__':
  timing.run(main)
