"""Architectures since 2023: a gradient, in chunks and in steps, and growth.

python -m benchmarks.recurrent
"""

import functools
from unittest import mock

from absl import flags
import jax
import jax.numpy as jnp

from benchmarks import timing
from experiments.engine import selection
from regulargpt_jax import recurrent
from regulargpt_jax.recurrent import linear_recurrence, map_recurrence

_ARCHITECTURES = flags.DEFINE_list(
  'architectures', list(recurrent.MODELS), 'What to time.'
)
_WIDTH = flags.DEFINE_integer('width', 64, 'Of the models.')
_HEADS = flags.DEFINE_integer('num_heads', None, 'Of those that have heads.')
_BATCH = flags.DEFINE_integer('batch_size', 64, 'Strings of a step.')
_LENGTH = flags.DEFINE_integer('length', 256, 'Of the strings of a step.')
_LONGEST = flags.DEFINE_integer(
  'longest', 4096, 'Of one string, whose step is timed at 1/4, 1/2 and all.'
)


def _step(name, batch_size, length):
  """Returns a compiled gradient of a batch, and the bytes it needs."""
  make = recurrent.MODELS[name]
  has_heads = _HEADS.value and 'num_heads' in make.__dataclass_fields__
  params = {'num_heads': _HEADS.value} if has_heads else {}
  model = make(2, 2, width=_WIDTH.value, **params)
  tokens = jax.random.randint(jax.random.key(0), (batch_size, length), 0, 2)
  params = model.init(jax.random.key(1), tokens[:1, :2])

  @jax.jit
  def gradient(params):
    def loss(params):
      log_p = jax.nn.log_softmax(model.apply(params, tokens)[:, -1])
      return -jnp.mean(log_p[:, 0])

    return jax.grad(loss)(params)

  program, _ = timing.compiled(f'{name}, T = {length}', gradient, params)
  memory = program.memory_analysis().temp_size_in_bytes
  return functools.partial(program, params), memory


def _in_thousands(seconds):
  return ', '.join(f'{s * 1e3:.0f}' for s in seconds)


def main():
  """Prints the tables."""
  rows, growth = [], []
  lengths = [_LONGEST.value // n for n in (4, 2, 1)]
  names = _ARCHITECTURES.value
  for name in selection.chosen('architecture', names, recurrent.MODELS):
    programs = []
    for form, of_maps in (
      (linear_recurrence.in_chunks, map_recurrence.run),
      (linear_recurrence.in_steps, map_recurrence.in_steps),
    ):
      with (
        mock.patch.object(linear_recurrence, 'run', side_effect=form) as run,
        mock.patch.object(map_recurrence, 'run', side_effect=of_maps) as maps,
      ):
        programs.append(_step(name, _BATCH.value, _LENGTH.value))
    has_both = run.called or maps.called
    if not has_both:
      programs = programs[:1]
    calls, sizes = zip(*programs, strict=True)
    times = timing.interleaved(calls)
    rows.append(
      [
        name,
        _in_thousands(times),
        f'{times[-1] / times[0]:.1f}' if has_both else '-',
        ', '.join(f'{size / 2**20:.0f}' for size in sizes),
      ]
    )
    steps, bytes_ = zip(*(_step(name, 1, n) for n in lengths), strict=True)
    times = timing.interleaved(steps)
    growth.append(
      [
        name,
        _in_thousands(times),
        ', '.join(f'{size / 2**20:.0f}' for size in bytes_),
      ]
    )
  timing.print_table(
    f'A gradient, T = {_LENGTH.value}, batch {_BATCH.value}, width'
    f' {_WIDTH.value}',
    ['architecture', 'ms, in chunks, in steps', 'ratio', 'MB'],
    rows,
  )
  timing.print_table(
    f'A gradient of one string, T = {", ".join(map(str, lengths))}',
    ['architecture', 'ms', 'MB'],
    growth,
  )


if __name__ == '__main__':
  timing.run(main)
