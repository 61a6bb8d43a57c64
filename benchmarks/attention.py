"""Attention of `scan` in wide windows, against the T x T mask.

python -m benchmarks.attention
"""

import functools

from absl import flags
import jax
import jax.numpy as jnp

from benchmarks import timing
from regulargpt_jax import attention
from regulargpt_jax import depth as depth_lib

_CHUNK_SIZE = flags.DEFINE_integer('chunk_size', 128, 'C.')
_NUM_HEADS = flags.DEFINE_integer('num_heads', 12, 'H.')
_HEAD_SIZE = flags.DEFINE_integer('head_size', 64, 'Width of a head.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 1, 'Strings per call.')
_PRECISION = flags.DEFINE_string('precision', 'bfloat16', 'Of the products.')
_SHORTEST = flags.DEFINE_integer('shortest', 512, 'Shortest string.')
_LONGEST = flags.DEFINE_integer('longest', 16384, 'Longest string.')
_LONGEST_DENSE = flags.DEFINE_integer(
  'longest_dense', 2048, 'Longest string for the mask.'
)


def _block_local(q, k, v, bias, dilation):
  return attention.block_local_attention(q, k, v, None, None, bias, dilation)


def _dense(q, k, v, bias, dilation):
  length = q.shape[1]
  mask = attention.additive_mask(bias, length, dilation)
  visible = jnp.ones((1, length), bool)
  return attention.dense_attention(q, k, v, mask, visible)[0]


def _inputs(length):
  key = jax.random.key(0)
  shape = (_BATCH_SIZE.value, length, _NUM_HEADS.value, _HEAD_SIZE.value)
  q, k, v, grad = jax.random.normal(key, (4, *shape), _PRECISION.value)
  return q, k, v, jnp.zeros((_NUM_HEADS.value, _CHUNK_SIZE.value)), grad


def _forward(attend, dilation):
  return lambda q, k, v, bias, grad: attend(q, k, v, bias, dilation)


def _both(attend, dilation):
  def both(q, k, v, bias, grad):
    out, vjp = jax.vjp(
      functools.partial(attend, dilation=dilation), q, k, v, bias
    )
    return out, vjp(grad)

  return both


def _measure(length):
  """Returns {(kind, pass): (seconds, bytes)}, all levels of a length.

  A level is a program of its own: the seconds are their sum, the bytes of
  temporary memory their maximum.
  """
  inputs = _inputs(length)
  kinds = {'block': _block_local}
  if length <= _LONGEST_DENSE.value:
    kinds['dense'] = _dense
  programs = {}
  for kind, attend in kinds.items():
    for name, make in (('forward', _forward), ('both', _both)):
      for level in range(depth_lib.depth(length, _CHUNK_SIZE.value)):
        function = make(attend, _CHUNK_SIZE.value**level)
        programs[kind, name, level], _ = timing.compiled(
          f'{kind}, {name}, level {level}', function, *inputs
        )
  calls = [functools.partial(p, *inputs) for p in programs.values()]
  measured = {}
  seconds = timing.interleaved(calls)
  for (kind, name, _), program, s in zip(
    programs, programs.values(), seconds, strict=True
  ):
    before = measured.get((kind, name), (0.0, 0))
    size = program.memory_analysis().temp_size_in_bytes
    measured[kind, name] = (before[0] + s, max(before[1], size))
  return measured


def _cells(seconds_and_bytes):
  if seconds_and_bytes is None:
    return ['-', '-']
  seconds, size = seconds_and_bytes
  return [f'{seconds * 1e3:.2f}', f'{size / 1e6:.0f}']


def _ratios(these, those, is_known):
  if not is_known:
    return ['-', '-']
  return [f'{x / y:.2f}' for x, y in zip(these, those, strict=True)]


def main():
  """Prints the tables."""
  lengths = [_SHORTEST.value]
  while 2 * lengths[-1] <= _LONGEST.value:
    lengths.append(2 * lengths[-1])
  measured = [_measure(length) for length in lengths]
  for name, title in (
    ('forward', 'Forward'),
    ('both', 'Forward and backward'),
  ):
    rows = []
    for i, now in enumerate(measured):
      row = [lengths[i]]
      row += _cells(now['block', name])
      row += _ratios(now['block', name], measured[i - 1]['block', name], i)
      row += _cells(now.get(('dense', name)))
      row += _ratios(
        now.get(('dense', name)), now['block', name], ('dense', name) in now
      )
      rows.append(row)
    timing.print_table(
      f'{title}, attention at all levels, C = {_CHUNK_SIZE.value}, H ='
      f' {_NUM_HEADS.value}, head size {_HEAD_SIZE.value}, batch'
      f' {_BATCH_SIZE.value}, {_PRECISION.value}',
      [
        'T',
        'ms',
        'MB',
        'times the row above: ms',
        'MB',
        'T x T mask: ms',
        'MB',
        'times the blocks: ms',
        'MB',
      ],
      rows,
    )


if __name__ == '__main__':
  timing.run(main)
