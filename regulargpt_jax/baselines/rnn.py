"""Recurrent baselines: a Haiku core, unrolled over right-aligned strings."""

from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

from regulargpt_jax import sizes
from regulargpt_jax.baselines import layers, strings, tape_rnn


def make_rnn(
  output_size: int,
  rnn_core: type[hk.RNNCore],
  return_all_outputs: bool = False,
  input_window: int = 1,
  **rnn_kwargs: Any,
) -> Callable[..., jax.Array]:
  """Returns a recurrent model (Deletang et al., 2023), not Haiku-transformed.

  The model is f(x, input_length=None) with x [B, T, V]. A row of x that is all
  zeros is no symbol: the whole state is carried over it unchanged, so that the
  answer does not depend on how far a string is padded at its front. Strings of
  different lengths may share a batch. `input_length`, [B], is what a tape
  jumps by: by default the number of symbols in x.

  Args:
    output_size: Number of classes, O.
    rnn_core: Class of the core, as `hk.VanillaRNN`, `hk.LSTM`,
      `stack_rnn.StackRNNCore`; its states are trees of arrays [B, ...].
    return_all_outputs: Whether f returns [B, T / input_window (rounded up), O],
      in place of the last of them, [B, O].
    input_window: Number of symbols read at each step. Windows are counted from
      the string's end; the first may be partly empty.
    **rnn_kwargs: Arguments of the core, as `hidden_size`.

  Raises:
    ValueError: If a size is out of range.
  """
  for name, value in {'input_window': input_window, **rnn_kwargs}.items():
    for size in value if isinstance(value, (list, tuple)) else [value]:
      if isinstance(size, int) and not isinstance(size, bool):
        sizes.check(name, size)

  def rnn_model(
    x_BxTxV: jax.Array, input_length: jax.Array | None = None
  ) -> jax.Array:
    batch_size = x_BxTxV.shape[0]
    if input_length is None:
      input_length = strings.num_symbols(x_BxTxV)
    core = rnn_core(**rnn_kwargs)
    if isinstance(core, tape_rnn.TapeInputLengthJumpCore):
      state = core.initial_state(batch_size, input_length)
    else:
      state = core.initial_state(batch_size)

    def step(inputs, state):
      x_BxV, is_symbol_B = inputs
      output, new_state = core(x_BxV, state)

      def carried(new, old):
        is_symbol = is_symbol_B.reshape(batch_size, *[1] * (new.ndim - 1))
        return jnp.where(is_symbol, new, old)

      return output, jax.tree.map(carried, new_state, state)

    x_BxTxV = _windows(x_BxTxV, input_window)
    output, _ = hk.dynamic_unroll(
      step, (x_BxTxV, strings.is_symbol(x_BxTxV)), state, time_major=False
    )
    if not return_all_outputs:
      output = output[:, -1]
    return layers.linear(jax.nn.relu(output), output_size, 'readout')

  return rnn_model


def _windows(x_BxTxV: jax.Array, size: int) -> jax.Array:
  """Concatenates every `size` rows, counted from the end, into one."""
  batch_size, length, _ = x_BxTxV.shape
  padded = jnp.pad(x_BxTxV, ((0, 0), (-length % size, 0), (0, 0)))
  return padded.reshape(batch_size, padded.shape[1] // size, -1)
