"""Models in which nothing is rounded, as those of `construction`.

Their states are points, and finitely many.

Letters: N chunks, C chunk size, D width, H heads, I inputs, U hidden units, k
states, V symbols.
"""

from typing import NamedTuple

import chex
import jax
import numpy as np

from regulargpt_jax import chunk_table
from regulargpt_jax import config as config_lib
from regulargpt_jax.analysis import closure, regions

# exp of less is 0 in float32: it is below half of the least number, 2^-149.
_VANISHES = -110.0
# Whole numbers up to this are exact in float32.
_MOST = 2.0**24
_CHUNKS_AT_ONCE = 2**10


def is_exact(config: config_lib.RegularGPTConfig) -> bool:
  """Returns whether a model is of the kind that the compiler makes."""
  return config.norm == 'none' and not config.residual


def _check(condition: bool, what: str) -> None:
  if not condition:
    raise ValueError(f'Only compiled models without norm are exact: {what}.')


def close(
  config: config_lib.RegularGPTConfig,
  params: chex.ArrayTree,
  symbols_V: np.ndarray,
  max_states: int,
) -> closure.Closed | closure.Leak:
  """Proves that a model has finitely many states, each computed exactly.

  Proof. Queries or keys are 0, so that logits are r, exactly; all but one of a
  head's are so far below that one that exp of the difference is 0 in float32
  and its own is 1: a head copies one child's value. All else is sums of
  products of whole numbers, and ReLU. If the sum of the products' absolute
  values is at most 2^24, every partial sum, in any order, is a whole number
  that float32 holds exactly. So the states are points, and `close` follows
  their products until there are no new ones.

  Args:
    config: Of the model.
    params: Its parameters, {'params': ...}.
    symbols_V: The tokens that strings are made of.
    max_states: Most states.

  Raises:
    ValueError: If the model is not of this kind.
  """
  # Each product of JAX's arrays would be compiled, for each number of rows.
  tree = jax.tree.map(np.asarray, params['params'])
  block = tree['block_0']
  _check(is_exact(config), 'this one has a norm or residuals')
  _check(
    config.activation == 'relu' and config.pad == 'learned',
    'this one has another activation or pad',
  )
  _check(config.thickness == 1, 'this one has several blocks a level')
  _check(
    not np.any(block['query']['kernel']) or not np.any(block['key']['kernel']),
    'its attention depends on the states',
  )
  _check(
    not config.scale_embedding and not config.attention_bias,
    'this one scales its embedding or has attention biases',
  )
  for path, x in _leaves(tree):
    whole = x == np.round(x)
    _check(whole.all() or 'position_bias' in path, f'{path} is not whole')
  return _followed(tree, symbols_V, max_states)


def _leaves(tree, path=''):
  """Yields the path and the array of each leaf."""
  for name, branch in tree.items():
    if isinstance(branch, dict):
      yield from _leaves(branch, f'{path}{name}/')
    else:
      yield f'{path}{name}', branch


def _heads(bias_HxC: np.ndarray) -> np.ndarray:
  """Returns the position in the chunk that each head reads, [H]."""
  ordered = np.sort(bias_HxC, axis=-1)
  apart = ordered[:, -2] - ordered[:, -1]
  _check((apart < _VANISHES).all(), 'a head reads more than one position')
  return bias_HxC.shape[1] - 1 - bias_HxC.argmax(-1)


def _sums(x_NxI: np.ndarray, kernel: np.ndarray, bias=0.0) -> np.ndarray:
  """Returns a bound on the sums of absolute values in x @ kernel + bias.

  Raises:
    ValueError: If they are too large to be exact.
  """
  largest = np.abs(x_NxI).max(0).astype(np.float64)
  most = largest @ np.abs(kernel).astype(np.float64) + np.abs(bias)
  _check(bool((most <= _MOST).all()), 'its sums are too large for float32')
  return most


class _Level(NamedTuple):
  """A level's sums, split by the child that they come from.

  Attributes:
    value: [D, D].
    projection: By position in the chunk: the rows of heads that read it, [C, D,
      D].
    ffn: Kernels [D, U], [U, D] and biases [U], [D].
  """

  value: np.ndarray
  projection: np.ndarray
  ffn: tuple[np.ndarray, ...]


def _make_level(block) -> _Level:
  bias_HxC = block['position_bias']
  dim = len(block['projection']['kernel'])
  slot_D = np.repeat(_heads(bias_HxC), dim // len(bias_HxC))
  reads_CxD = slot_D == np.arange(bias_HxC.shape[1])[:, None]
  return _Level(
    block['value']['kernel'],
    np.where(reads_CxD[..., None], block['projection']['kernel'], 0.0),
    (
      block['ffn_in']['kernel'],
      block['ffn_out']['kernel'],
      block['ffn_in']['bias'],
      block['ffn_out']['bias'],
    ),
  )


def _hidden(level: _Level, states_kxD: np.ndarray) -> np.ndarray:
  """Returns what each state adds to the hidden units, as each child."""
  parts = states_kxD @ level.value @ level.projection
  return (parts @ level.ffn[0]).astype(np.float32)


def _outputs(level: _Level, hidden_CxkxU, chunks_NxC) -> np.ndarray:
  """Returns what is above chunks of states, float32 [N, D]; the last is pad.

  Chunks of one first child have most hidden units at 0, whatever follows it:
  those are left out.
  """
  _, kernel_out, bias_in, bias_out = level.ffn
  most_U = hidden_CxkxU[1:].max(1).sum(0) + bias_in
  has_output_U = np.any(kernel_out, axis=1)
  out_NxD = np.tile(bias_out, (len(chunks_NxC), 1))
  for child in np.unique(chunks_NxC[:, 0]):
    those = np.flatnonzero(chunks_NxC[:, 0] == child)
    live = (hidden_CxkxU[0, child] + most_U > 0) & has_output_U
    kernel = kernel_out[live]
    filled = np.flatnonzero(np.any(kernel, axis=0))
    hidden, bias = hidden_CxkxU[..., live], bias_in[live]
    for i in range(0, len(those), _CHUNKS_AT_ONCE):
      at = those[i : i + _CHUNKS_AT_ONCE]
      children = zip(hidden, chunks_NxC[at].T, strict=True)
      units = bias + sum(x[number] for x, number in children)
      out_NxD[np.ix_(at, filled)] += np.maximum(units, 0.0) @ kernel[:, filled]
  return out_NxD


def _check_sums(level: _Level, readout, states_kxD: np.ndarray) -> None:
  """Checks that all sums of a level on these states are exact; see `close`."""
  kernel_in, kernel_out, bias_in, bias_out = level.ffn
  _sums(states_kxD, level.value)
  values = states_kxD @ level.value
  out_D = _sums(values, np.abs(level.projection).sum(0))
  hidden_U = _sums(out_D[None], kernel_in, bias_in)
  _sums(hidden_U[None], kernel_out, bias_out)
  _sums(states_kxD, readout['kernel'], readout['bias'])


def _followed(tree, symbols_V, max_states) -> closure.Closed | closure.Leak:
  """Follows states until there are no new ones."""
  level = _make_level(tree['block_0'])
  chunk_size = len(level.projection)
  symbol_VxD, pad_D = tree['embedding'][symbols_V], tree['pad']
  number, states = {}, []

  def numbers(outputs_NxD) -> np.ndarray:
    """Numbers outputs, new ones behind the others."""
    result = []
    for row in np.asarray(outputs_NxD, np.float32) + 0.0:  # No -0.
      key = row.tobytes()
      if key not in number:
        number[key] = len(states)
        states.append(row)
      result.append(number[key])
    return np.array(result)

  parts = chunk_table.split(len(symbols_V), 1, chunk_size)[1:]
  sources = np.concatenate([symbol_VxD, pad_D[None]])
  start = numbers(_outputs(level, _hidden(level, sources), parts - 1))
  done, chunks, products = 0, np.zeros((0, chunk_size), int), start[:0]
  while done < len(states):
    if len(states) > max_states:
      return closure.Leak(
        f'There are more than {max_states} states.', np.nan, len(states)
      )
    before, done = done, len(states)
    table = np.full((done + 1,) * chunk_size, regions.PAD)
    table[tuple(chunks.T)] = products
    chunks = regions.chunks_of(done, chunk_size)
    new = chunks[(chunks >= before).any(1)]
    hidden = _hidden(level, np.stack([*states, pad_D]))
    table[tuple(new.T)] = numbers(_outputs(level, hidden, new))
    products = table[tuple(chunks.T)]
  states = np.stack(states)
  _check_sums(level, tree['readout'], np.concatenate([sources, states]))
  logits = states @ tree['readout']['kernel'] + tree['readout']['bias']
  ordered = np.sort(logits, axis=-1)
  margin = float((ordered[:, -1] - ordered[:, -2]).min())
  if not margin > 0:
    return closure.Leak('Two answers have the same logit.', np.nan, done)
  return closure.of_points(
    start, chunks, products, logits.argmax(-1), margin, states
  )
