r"""A training step of the language models, on random tokens.

python -m benchmarks.training_lm

Small enough for two CPU cores by

python -m benchmarks.training_lm --embedding_dim=64 --num_heads=2 \
  --vocab_size=512 --batch_size=2 --thickness=2 --num_layers=4
"""

from absl import flags
from flax import traverse_util
import jax

from benchmarks import timing
from experiments.engine import optimization
from experiments.language import config, training
from regulargpt_jax import depth as depth_lib

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
_CALLS = flags.DEFINE_integer('calls', 5, 'Steps in a repetition.')
_PEAK = flags.DEFINE_float(
  'peak_tflops',
  989.0,
  'What the device multiplies in bfloat16, in 10^12 operations a second; an'
  " H100's by default.",
)


class _Training:
  """A model that trains: each call is a step of `launch.train_lm`."""

  def __init__(self, **fields):
    experiment = config.LanguageExperiment(
      vocab_size=_VOCAB_SIZE.value,
      embedding_dim=_DIM.value,
      num_heads=_NUM_HEADS.value,
      remat=_REMAT.value,
      sequence_length=_LENGTH.value,
      batch_size=_BATCH_SIZE.value,
      **fields,
    )
    mesh = training.make_mesh(experiment)
    shape = (_BATCH_SIZE.value, _LENGTH.value + 1)
    self._tokens = jax.random.randint(
      jax.random.key(0), shape, 0, _VOCAB_SIZE.value
    )
    self._state = training.init_state(experiment, mesh)
    self.params = self._state.params['params']
    self.num_parameters = optimization.num_parameters(self._state.params)
    self._step, self.compile_s = timing.compiled(
      'a training step',
      training.jitted_step(experiment, mesh, self._state),
      self._state,
      self._tokens,
    )
    self.megabytes = self._step.memory_analysis().temp_size_in_bytes / 1e6

  def __call__(self):
    self._state = self._step(self._state, self._tokens)
    return self._state.loss_sum


def _flops(model, num_passes, keys_per_query):
  """Returns the operations of a step that the model's definition asks for.

  A multiplication by a parameter is two operations forward and four backward,
  and so is one of attention's two products for each query and key in its window
  (Chowdhery et al., 2022, appendix B, who count all T keys, though). What is
  computed and masked, or computed again, does not count.

  Args:
    model: The model.
    num_passes: How often a symbol goes through each block.
    keys_per_query: Over all passes and blocks, on average.
  """
  params = traverse_util.flatten_dict(model.params)
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


def main():
  """Prints the table."""
  chunk_size, thickness = _CHUNK_SIZE.value, _THICKNESS.value
  levels = range(depth_lib.depth(_LENGTH.value, chunk_size))
  keys = sum(_mean_window(chunk_size, chunk_size**l) for l in levels)
  models = {
    f'RegularGPT {chunk_size}/{thickness}': (
      _Training(chunk_size=chunk_size, thickness=thickness),
      len(levels),
      thickness * keys,
    ),
    f'GPT, {_POSITION_BIAS.value}, {_NUM_LAYERS.value} layers': (
      _Training(
        architecture='gpt_lm',
        position_bias=_POSITION_BIAS.value,
        num_layers=_NUM_LAYERS.value,
      ),
      1,
      _NUM_LAYERS.value * _mean_window(_LENGTH.value, 1),
    ),
  }
  seconds = timing.interleaved(
    [model for model, *_ in models.values()], calls=_CALLS.value
  )
  rows = []
  for (name, (model, *counts)), s in zip(models.items(), seconds, strict=True):
    flops = _flops(model, *counts)
    rows.append(
      [
        name,
        f'{model.num_parameters / 1e6:.1f}',
        f'{model.compile_s:.0f}',
        f'{model.megabytes:.0f}',
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
  timing.run(main)
