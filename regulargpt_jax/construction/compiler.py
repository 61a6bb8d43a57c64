"""From an automaton to the weights of a RegularGPT (section 7.2).

Letters: Q states, V symbols, E entries of a state's code, S = Q E entries of a
map's, C chunk size, H heads, D width, U hidden units.
"""

from collections.abc import Sequence
import functools
import operator

import chex
import jax
import numpy as np

from regulargpt_jax import config as config_lib
from regulargpt_jax import model
from regulargpt_jax.construction import (
  codes,
  heads,
  lemma,
  minimization,
  schedule,
)

# Parameters of more bytes than this are refused.
MAX_BYTES = 2**30


def compile_automaton(
  transitions: Sequence[Sequence[int]] | np.ndarray,
  start: int,
  accepting: Sequence[bool] | Sequence[int] | np.ndarray | None = None,
  chunk_size: int = 2,
  encoding: str = 'one_hot',
) -> tuple[config_lib.RegularGPTConfig, chex.ArrayTree]:
  """Returns a RegularGPT that answers as an automaton does, on every string.

  Every level composes the transition maps of C neighbours; `pad` is the
  identity, so any length, and any number of extra levels, is right. All values
  inside are 0 or 1 (and sums of a few), so nothing is rounded.

  Args:
    transitions: Next state by state and symbol, [Q, V]; symbol v is token v.
    start: The state before the first symbol.
    accepting: Whether a string that ends in the state is in the language, bool
      [Q]: the model answers 0 or 1. Or its class, any integer from 0, [Q]. By
      default the model answers the state's own number.
    chunk_size: C >= 2.
    encoding: How a state is written, of `codes.ENCODINGS`: 'one_hot' as in the
      paper, Q^3 hidden units on D = 2 Q^2; 'binary' Q^2 E on D = 2 Q E with
      E = classes + 2 log2(states of the largest class), for large automata.

  Returns:
    The configuration of `model.RegularGPT`, and its variables, float32 arrays
    of NumPy: `{'params': ...}`. Logits are 1 for the answer, else 0.

  Raises:
    ValueError: If the table is not complete, a state is out of range, an
      argument is impossible, or the parameters of the minimal automaton would
      take more than `MAX_BYTES`.
  """
  table, start, classes = _checked(transitions, start, accepting)
  num_classes = max(classes.max() + 1, 2)
  table, start, classes = minimization.minimal(table, start, classes)
  code_shape = len(table), codes.num_entries(classes, encoding)
  config = _config(code_shape, table.shape[1], num_classes, chunk_size)
  _check_size(config, classes, encoding)
  codes_QxE, first_classes = codes.state_codes(classes, encoding)
  dim, map_size = config.embedding_dim, codes_QxE.size

  def in_stream(maps_NxQ):
    """Maps as a level finds them: the product so far, and the level's own."""
    copies = np.tile(codes.flat_maps(maps_NxQ, codes_QxE), config.num_heads - 1)
    return np.pad(copies, ((0, 0), (0, map_size)))

  # The readout looks at where the start goes, and there at the class.
  readout = np.zeros((dim, num_classes))
  first_entry = start * codes_QxE.shape[1]
  readout[first_entry + np.arange(len(first_classes)), first_classes] = 1.0
  params = {
    'embedding': in_stream(table.T),
    'pad': in_stream(np.arange(len(table))[None])[0],
    'readout': {'kernel': readout, 'bias': np.zeros(num_classes)},
  }
  for k, step in enumerate(schedule.steps(chunk_size)):
    is_last = k == config.thickness - 1
    params[f'block_{k}'] = {
      'position_bias': heads.position_bias(step, chunk_size),
      'query': {'kernel': np.zeros((dim, dim))},
      'key': {'kernel': np.zeros((dim, dim))},
      'value': {'kernel': heads.value_kernel(step, chunk_size, map_size)},
      'projection': {'kernel': np.eye(dim)},
      **_feed_forward(config, codes_QxE, is_last),
    }
  params = jax.tree.map(lambda x: np.asarray(x, np.float32), params)
  return config, {'params': params}


def _checked(transitions, start, accepting):
  """Returns the table, the start and the classes as integers.

  Raises:
    ValueError: If anything is missing or out of range.
  """
  rows = [list(row) for row in transitions]
  num_states = len(rows)
  if not num_states or not rows[0]:
    raise ValueError('An automaton needs a state and a symbol at least.')
  num_symbols = max(map(len, rows))
  table = np.zeros((num_states, num_symbols), np.int32)
  for q, row in enumerate(rows):
    for v in range(num_symbols):
      if v >= len(row) or row[v] is None:
        raise ValueError(
          f'The table is not complete: state {q} has no transition for symbol'
          f' {v}.'
        )
      table[q, v] = _state(row[v], num_states, f'transitions[{q}][{v}]')
  start = _state(start, num_states, 'start')
  if accepting is None:
    return table, start, np.arange(num_states)
  classes = np.asarray(accepting)
  if classes.shape != (num_states,):
    raise ValueError(
      f'accepting must have shape [{num_states}], got {list(classes.shape)}.'
    )
  if classes.dtype.kind not in 'bui' or classes.min() < 0:
    raise ValueError(
      'accepting must be booleans, or classes as integers from 0, got'
      f' {classes.tolist()}.'
    )
  return table, start, classes.astype(int)


def _state(value, num_states: int, where: str) -> int:
  """Returns a state's number, or raises a ValueError that says where."""
  try:
    state = operator.index(value)
  except TypeError:
    raise ValueError(
      f'{where} must be the number of a state, got {value!r}.'
    ) from None
  if not 0 <= state < num_states:
    raise ValueError(f'{where}: state {state} is not in [0, {num_states}).')
  return state


def _config(
  code_shape: tuple[int, int],
  vocab_size: int,
  num_classes: int,
  chunk_size: int,
) -> config_lib.RegularGPTConfig:
  """Returns the configuration that codes of a shape [Q, E] need."""
  num_states, num_entries = code_shape
  steps, num_heads = schedule.steps(chunk_size), heads.num_heads(chunk_size)
  map_size = num_states * num_entries
  dim = num_heads * map_size
  num_hidden = num_states * map_size
  if num_heads > 2:
    num_hidden += map_size  # To pass the level's own map on.
  return config_lib.RegularGPTConfig(
    vocab_size=vocab_size,
    output_size=int(num_classes),
    chunk_size=chunk_size,
    thickness=len(steps),
    embedding_dim=dim,
    num_heads=num_heads,
    widening_factor=-(-num_hidden // dim),
    norm='none',
    residual=False,
    scale_embedding=False,
  )


@functools.cache
def num_parameters(config: config_lib.RegularGPTConfig) -> int:
  """Returns how many parameters a model has, before it is made."""
  tokens = jax.ShapeDtypeStruct((1, 1), np.int32)
  params = jax.eval_shape(
    model.RegularGPT(config).init, jax.random.key(0), tokens
  )
  return sum(x.size for x in jax.tree.leaves(params))


def _check_size(config, classes_Q, encoding):
  """Raises a ValueError if the parameters take more than `MAX_BYTES`."""
  if 4 * num_parameters(config) <= MAX_BYTES:
    return

  def need(encoding):
    """Returns what an encoding takes, in words, and whether it is allowed."""
    num_states, num_entries = shape = (
      len(classes_Q),
      codes.num_entries(classes_Q, encoding),
    )
    needed = _config(
      shape, config.vocab_size, config.output_size, config.chunk_size
    )
    num_hidden = num_states**2 * num_entries
    num_bytes = 4 * num_parameters(needed)
    size = f'{num_hidden:,} hidden units, {1e-9 * num_bytes:,.1f} GB'
    return size, num_bytes <= MAX_BYTES

  size, _ = need(encoding)
  message = (
    f'The minimal automaton has {len(classes_Q)} states, which take'
    f' {size} of parameters; at most {MAX_BYTES * 1e-9:.1f} GB are'
    ' allowed'
  )
  size, fits = need('binary')
  if fits:
    message += f". With the encoding 'binary', {size}"
  raise ValueError(f'{message}.')


def _feed_forward(config, codes_QxE, is_last):
  """Returns the lemma's layers, filled up with zeros to the module's width.

  They read what the heads fetched: the earlier map, the later one, and the
  level's own where a third head keeps it; see `heads`.
  """
  dim, map_size = config.embedding_dim, codes_QxE.size
  num_hidden = config.widening_factor * dim
  num_units = len(codes_QxE) * map_size
  kernel_in = np.zeros((dim, num_hidden), np.float32)
  bias = np.zeros(num_hidden)
  kernel_out = np.zeros((num_hidden, dim), np.float32)
  product, own = slice(0, map_size), slice(map_size, 2 * map_size)
  kernel_in[: 2 * map_size, :num_units] = lemma.first_layer(codes_QxE)
  bias[:num_units] = -codes_QxE[0].sum()
  kernel_out[:num_units, product] = lemma.second_layer(codes_QxE)
  if config.num_heads > 2 and is_last:
    # The next level's own map is this level's product.
    kernel_out[:, own] = kernel_out[:, product]
  elif config.num_heads > 2:
    passing = slice(num_units, num_units + map_size)
    kernel_in[2 * map_size :, passing] = np.eye(map_size)
    kernel_out[passing, own] = np.eye(map_size)
  return {
    'ffn_in': {'kernel': kernel_in, 'bias': bias},
    'ffn_out': {'kernel': kernel_out, 'bias': np.zeros(dim)},
  }
