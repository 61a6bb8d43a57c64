"""The cost of a sampled symbol against the length of what is before it.

python -m benchmarks.sampling
"""

import functools

from absl import flags
import jax
import jax.numpy as jnp

from benchmarks import timing
from regulargpt_jax import language_models

_DIM = flags.DEFINE_integer('embedding_dim', 256, 'Width of the models.')
_NUM_HEADS = flags.DEFINE_integer('num_heads', 4, 'Attention heads.')
_VOCAB_SIZE = flags.DEFINE_integer('vocab_size', 257, 'Symbols.')
_CHUNK_SIZE = flags.DEFINE_integer('chunk_size', 128, 'C.')
_THICKNESS = flags.DEFINE_integer('thickness', 2, 'K.')
_NUM_LAYERS = flags.DEFINE_integer('num_layers', 4, 'Layers of the GPT.')
_PRECISION = flags.DEFINE_string('precision', 'float32', 'Of the products.')
_LENGTHS = flags.DEFINE_list('lengths', ['512', '2048', '8192'], 'T.')
_SYMBOLS = flags.DEFINE_integer('symbols', 32, 'Symbols in a repetition.')


class _Reading:
  """A model that has read T symbols: each call reads some more of them."""

  def __init__(self, model, params, tokens_BxT):
    num_symbols = _SYMBOLS.value
    max_length = tokens_BxT.shape[1] + num_symbols * (timing.num_rounds() + 1)

    @functools.partial(jax.jit, donate_argnums=1)
    def read(params, cache):
      def step(cache, token):
        logits, cache = model.apply(
          params, token[None], cache, max_length, method='decode'
        )
        return cache, logits.argmax(-1)

      return jax.lax.scan(step, cache, jnp.resize(tokens_BxT[0], num_symbols))

    prefill = jax.jit(
      functools.partial(model.apply, max_length=max_length, method='prefill')
    )
    self._params = params
    _, self._cache = prefill(params, tokens_BxT)
    self._read, _ = timing.compiled('reading on', read, params, self._cache)

  def __call__(self):
    self._cache, symbols = self._read(self._params, self._cache)
    return symbols


def _programs(model, length):
  """Returns what reads more symbols, and what reads the string anew."""
  tokens = jax.random.randint(
    jax.random.key(0), (1, length), 0, _VOCAB_SIZE.value
  )
  params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
  anew, _ = timing.compiled(
    'reading anew',
    functools.partial(model.apply, method='last_logits'),
    params,
    tokens,
  )
  return [
    _Reading(model, params, tokens),
    functools.partial(anew, params, tokens),
  ]


def main():
  """Prints the table."""
  sizes = {
    'embedding_dim': _DIM.value,
    'num_heads': _NUM_HEADS.value,
    'dtype': jnp.dtype(_PRECISION.value),
  }
  models = {
    f'RegularGPT {_CHUNK_SIZE.value}/{_THICKNESS.value}': (
      language_models.make_regular_gpt_lm(
        _VOCAB_SIZE.value, _CHUNK_SIZE.value, _THICKNESS.value, **sizes
      )
    ),
    f'GPT, alibi, {_NUM_LAYERS.value} layers': language_models.make_gpt_lm(
      _VOCAB_SIZE.value, num_layers=_NUM_LAYERS.value, **sizes
    ),
  }
  rows = []
  for name, model in models.items():
    for length in map(int, _LENGTHS.value):
      read_s, anew_s = timing.interleaved(_programs(model, length))
      symbol_s = read_s / _SYMBOLS.value
      rows.append(
        [
          name,
          length,
          f'{symbol_s * 1e3:.2f}',
          f'{anew_s * 1e3:.1f}',
          f'{anew_s / symbol_s:.0f}',
        ]
      )
  timing.print_table(
    f'A sampled symbol, D = {_DIM.value}, one string',
    ['model', 'symbols before', 'ms', 'all read anew: ms', 'times'],
    rows,
  )


if __name__ == '__main__':
  timing.run(main)
