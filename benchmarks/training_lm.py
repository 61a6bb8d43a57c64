r"""A training step of the language models, on random tokens.

python -m benchmarks.training_lm

Small enough for two CPU cores by

python -m benchmarks.training_lm --embedding_dim=64 --num_heads=2 \
  --vocab_size=512 --batch_size=2 --thickness=2 --num_layers=4
"""

import functools

from absl import app, flags
from flax import traverse_util
import jax
import optax

from benchmarks import timing
from regulargpt_jax import depth as depth_lib
from regulargpt_jax import language_models

_DIM = flags.DEFINE_integer('embedding_dim', 768, 'Width of the models.')
_NUM_HEADS = flags.DEFINE_integer('num_heads', 12, 'Attention heads.')
_VOCAB_SIZE = flags.DEFINE_integer('vocab_size', 50257, 'Symbols.')
_CHUNK_SIZE = flags.DEFINE_integer('chunk_size', 128, 'C.')
_THICKNESS = flags.DEFINE_integer('thickness', 6, 'K.')
_NUM_LAYERS = flags.DEFINE_integer('num_layers', 12, 'Layers of the GPT.')
_POSITION_BIAS = flags.DEFINE_string('position_bias', 'alibi', 'Of the GPT.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 32, 'Strings per step.')
_LENGTH = flags.DEFINE_integer('length', 512, 'Of the strings.')
_REMAT = flags.DEFINE_bool('remat', False, 'Compute again, not keep.')
_ROUNDS = flags.DEFINE_integer('rounds', 5, 'Repetitions; medians are shown.')
_CALLS = flags.DEFINE_integer('calls', 5, 'Steps in a repetition.')
_PEAK = flags.DEFINE_float(
  'peak_tflops',
  989.0,
  'What the device multiplies in bfloat16, in 10^12 operations a second; an'
  " H100's by default.",
)


class _Training:
  """A model that trains: each call is a step."""

  def __init__(self, name, **fields):
    model = language_models.BUILDERS[name](
      _VOCAB_SIZE.value,
      embedding_dim=_DIM.value,
      num_heads=_NUM_HEADS.value,
      remat=_REMAT.value,
      **fields,
    )
    optimizer = optax.adamw(6e-4)
    shape = (_BATCH_SIZE.value, _LENGTH.value + 1)
    tokens = jax.random.randint(jax.random.key(0), shape, 0, _VOCAB_SIZE.value)

    @jax.jit
    def init(key):
      params = model.init(key, tokens[:1, :1])
      return params, optimizer.init(params)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, tokens):
      def loss_fn(params):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        return model.apply(params, inputs, targets, method='losses').mean()

      params, optimizer_state = state
      loss, gradient = jax.value_and_grad(loss_fn)(params)
      updates, optimizer_state = optimizer.update(
        gradient, optimizer_state, params
      )
      return (optax.apply_updates(params, updates), optimizer_state), loss

    self._state = init(jax.random.key(0))
    self._tokens = tokens
    self.params = self._state[0]['params']
    self.num_parameters = sum(x.size for x in jax.tree.leaves(self.params))
    self._step, self.compile_s = timing.compiled(
      step, self._state, self._tokens
    )
    self.megabytes = self._step.memory_analysis().temp_size_in_bytes / 1e6

  def __call__(self):
    self._state, loss = self._step(self._state, self._tokens)
    return loss


def _flops(training, num_passes, keys_per_query):
  """Returns the operations of a step that the model's definition asks for.

  A multiplication by a parameter is two operations forward and four backward,
  and so is one of attention's two products for each query and key in its window
  (Chowdhery et al., 2022, appendix B, who count all T keys, though). What is
  computed and masked, or computed again, does not count.

  Args:
    training: The model.
    num_passes: How often a symbol goes through each block.
    keys_per_query: Over all passes and blocks, on average.
  """
  params = traverse_util.flatten_dict(training.params)
  per_symbol = num_passes * sum(
    x.size for path, x in params.items() if path[-1] == 'kernel'
  )
  readout = _VOCAB_SIZE.value * _DIM.value
  products = per_symbol + readout + 2 * keys_per_query * _DIM.value
  return 6 * products * _BATCH_SIZE.value * _LENGTH.value


def _mean_window(chunk_size, dilation):
  """Keys that a query sees, the mean over the string."""
  length = _LENGTH.value
  return sum(min(chunk_size, m // dilation + 1) for m in range(length)) / length


def main(argv):
  """Prints the table."""
  if len(argv) > 1:
    raise app.UsageError('Unexpected arguments.')
  chunk_size, thickness = _CHUNK_SIZE.value, _THICKNESS.value
  levels = range(depth_lib.depth(_LENGTH.value, chunk_size))
  keys = sum(_mean_window(chunk_size, chunk_size**l) for l in levels)
  models = {
    f'RegularGPT {chunk_size}/{thickness}': (
      _Training('regular_gpt_lm', chunk_size=chunk_size, thickness=thickness),
      len(levels),
      thickness * keys,
    ),
    f'GPT, {_POSITION_BIAS.value}, {_NUM_LAYERS.value} layers': (
      _Training(
        'gpt_lm',
        position_bias=_POSITION_BIAS.value,
        num_layers=_NUM_LAYERS.value,
      ),
      1,
      _NUM_LAYERS.value * _mean_window(_LENGTH.value, 1),
    ),
  }
  seconds = timing.interleaved(
    [training for training, *_ in models.values()],
    _ROUNDS.value,
    _CALLS.value,
  )
  rows = []
  for (name, (training, *counts)), s in zip(
    models.items(), seconds, strict=True
  ):
    flops = _flops(training, *counts)
    rows.append(
      [
        name,
        f'{training.num_parameters / 1e6:.1f}',
        f'{training.compile_s:.0f}',
        f'{training.megabytes:.0f}',
        f'{s * 1e3:.1f}',
        f'{_BATCH_SIZE.value * _LENGTH.value / s:.0f}',
        f'{flops / 1e9:.1f}',
        f'{flops / s / (_PEAK.value * 1e12):.1%}',
      ]
    )
  timing.print_table(
    f'A training step, D = {_DIM.value}, {_VOCAB_SIZE.value} symbols, batch'
    f' {_BATCH_SIZE.value}, T = {_LENGTH.value}',
    [
      'model',
      'parameters, M',
      'compile s',
      'MB',
      'ms',
      'tokens/s',
      'GFLOP',
      'FLOP utilisation',
    ],
    rows,
  )


if __name__ == '__main__':
  app.run(main)
