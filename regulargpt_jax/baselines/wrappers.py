"""What a baseline reads and where its answer is read (Deletang et al., 2023).

Strings are right-aligned: x is one-hot [B, W, V], and its rows before the start
are all zeros. A string of n symbols has `task.output_length(n)` outputs, which
are right-aligned too, in the static width O = `task.output_length(W)`. What a
model reads is right-aligned as a whole. Strings of different lengths may share
a batch.

The models are those of this package: f(x, input_length=None), where
`input_length`, [B], is the number of input symbols.

Letters: B batch, W input width, O output width, V width of a one-hot row.
"""

from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

from regulargpt_jax.baselines import strings


def make_model_with_empty_targets(
  model: Callable[..., jax.Array],
  task: Any,
  computation_steps_mult: int = 0,
  single_output: bool = False,
) -> Callable[[jax.Array], jax.Array]:
  """Returns a model that reads one empty token for every output.

  The model reads [input, computation tokens, empty tokens], and its outputs are
  read at the empty tokens.

  Args:
    model: Returns all its outputs.
    task: Has `output_length(n)`, for n in 1..W.
    computation_steps_mult: Computation tokens per input symbol.
    single_output: Whether the output has one symbol, and no axis for it.

  Returns:
    f(x) with logits [B, O, classes], zeros before the start; or [B, classes].
  """

  def model_with_empty_targets(x_BxWxV: jax.Array) -> jax.Array:
    width = x_BxWxV.shape[1]
    # A table, as a task's `output_length` need not be traceable.
    lengths = [0] + [task.output_length(n) for n in range(1, width + 1)]
    output_width = lengths[-1]
    input_length_B = strings.num_symbols(x_BxWxV)
    output_length_B = jnp.array(lengths)[input_length_B]
    is_output_BxO = _last(output_length_B, output_width)

    num_kinds = 1 + (computation_steps_mult > 0)
    x = _widen(x_BxWxV, x_BxWxV.shape[-1] + num_kinds)
    empty = _tokens(is_output_BxO, x.shape[-1] - 1, x)
    logits = _run(model, x, empty, output_length_B, computation_steps_mult)
    logits = jnp.where(is_output_BxO[..., None], logits, 0)
    return logits[:, 0] if single_output else logits

  return model_with_empty_targets


def make_model_with_targets_as_input(
  model: Callable[..., jax.Array], computation_steps_mult: int = 0
) -> Callable[[jax.Array, jax.Array], jax.Array]:
  """Returns a model that reads the outputs before the one it has to give.

  The model reads [input, computation tokens, output token, targets without the
  last], and its outputs are read from the output token on. It must be causal.

  Args:
    model: Returns all its outputs.
    computation_steps_mult: Computation tokens per input symbol.

  Returns:
    f(x, y) with logits [B, O, classes] for one-hot targets y [B, O, classes];
    y [B, classes] is read as O = 1. Logits before the start of y mean nothing.
  """

  def model_with_targets_as_input(
    x_BxWxV: jax.Array, y_BxOxV: jax.Array
  ) -> jax.Array:
    y_BxOxV = strings.with_time(y_BxOxV)
    output_length_B = strings.num_symbols(y_BxOxV)
    num_kinds = 1 + (computation_steps_mult > 0)
    num_symbols = max(x_BxWxV.shape[-1], y_BxOxV.shape[-1])
    x = _widen(x_BxWxV, num_symbols + num_kinds)
    y = _widen(y_BxOxV, num_symbols + num_kinds)

    place_O = jnp.arange(y.shape[1])
    is_first_BxO = place_O == (y.shape[1] - output_length_B)[:, None]
    before = jnp.pad(y[:, :-1], ((0, 0), (1, 0), (0, 0)))
    tail = before + _tokens(is_first_BxO, y.shape[-1] - 1, y)
    return _run(model, x, tail, output_length_B, computation_steps_mult)

  return model_with_targets_as_input


def add_sampling_to_autoregressive_model(
  model: Callable[[jax.Array, jax.Array], jax.Array],
  single_output: bool = False,
) -> Callable[[jax.Array, jax.Array, bool], jax.Array]:
  """Returns a model that can read its own predictions in place of targets.

  Args:
    model: f(x, y), autoregressive: output i depends on y[:i] only.
    single_output: Whether the output has one symbol, and no axis for it.

  Returns:
    f(x, y, sample) with logits [B, O, classes], zeros before the start; or [B,
    classes]. If `sample` (static), y only says which outputs there are, and
    each prediction, the class of the highest logit, is read by the next: one
    call of the model for each output of the longest string.
  """

  def model_with_sampling(
    x_BxWxV: jax.Array, y_BxOxV: jax.Array, sample: bool
  ) -> jax.Array:
    y_BxOxV = strings.with_time(y_BxOxV)
    output_width, num_classes = y_BxOxV.shape[1:]
    length_B = strings.num_symbols(y_BxOxV)
    is_output_BxOx1 = _last(length_B, output_width)[..., None]

    def predict(place, logits):
      predicted = jax.nn.one_hot(
        jnp.argmax(logits, axis=-1), num_classes, dtype=logits.dtype
      )
      new = model(x_BxWxV, jnp.where(is_output_BxOx1, predicted, 0))
      return logits.at[:, place].set(new[:, place])

    # With one output there is nothing to read.
    if sample and output_width > 1:
      first = output_width - jnp.max(length_B)
      logits = hk.fori_loop(
        first, output_width, predict, jnp.zeros_like(y_BxOxV)
      )
    else:
      logits = model(x_BxWxV, y_BxOxV)
    logits = jnp.where(is_output_BxOx1, logits, 0)
    return logits[:, 0] if single_output else logits

  return model_with_sampling


def _run(model, x_BxWxV, tail_BxOxV, output_length_B, computation_steps_mult):
  """Returns the model's outputs at the tail, [B, O, classes].

  Args:
    model: f(x, input_length); where the tail has one row, it may return its
      last output alone, [B, classes].
    x_BxWxV: Input, widened.
    tail_BxOxV: What it reads last, right-aligned.
    output_length_B: Rows of the tail that are there.
    computation_steps_mult: Rows between input and tail per input symbol; their
      token is the last but one of V.
  """
  input_length_B = strings.num_symbols(x_BxWxV)
  computation_length_B = computation_steps_mult * input_length_B
  width, output_width = x_BxWxV.shape[1], tail_BxOxV.shape[1]
  total = (1 + computation_steps_mult) * width + output_width

  # Everything in its place, right-aligned in the total width.
  def right_aligned(rows, num_after_B):
    front = total - rows.shape[1]
    padded = jnp.pad(rows, ((0, 0), (front, 0), (0, 0)))
    return jax.vmap(lambda row, after: jnp.roll(row, -after, axis=0))(
      padded, num_after_B
    )

  is_computation = _last(
    output_length_B + computation_length_B, total
  ) & ~_last(output_length_B, total)
  sequence = (
    right_aligned(x_BxWxV, output_length_B + computation_length_B)
    + _tokens(is_computation, x_BxWxV.shape[-1] - 2, x_BxWxV)
    + right_aligned(tail_BxOxV, jnp.zeros_like(output_length_B))
  )
  logits = model(sequence, input_length=input_length_B)
  if output_width == 1 and logits.ndim == 2:
    return logits[:, None]
  is_row_by_row = logits.shape[1] == total or output_width == 1
  if logits.ndim != 3 or not is_row_by_row:
    raise ValueError(
      f'The model must return all its outputs, [B, {total}, classes]; it'
      f' returned {logits.shape}.'
    )
  return logits[:, -output_width:]


def _last(length_B, width):
  """Returns [B, width], True at the last `length` places."""
  return jnp.arange(width) >= width - length_B[:, None]


def _widen(x_BxTxV, num_symbols):
  """Appends classes."""
  return jnp.pad(
    x_BxTxV, ((0, 0), (0, 0), (0, num_symbols - x_BxTxV.shape[-1]))
  )


def _tokens(is_there_BxT, symbol, like):
  """Returns one-hot rows of a symbol where it is, like `like`."""
  return is_there_BxT[..., None] * jax.nn.one_hot(
    symbol, like.shape[-1], dtype=like.dtype
  )
