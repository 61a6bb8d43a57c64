"""Baselines small enough to be computed by hand, and strings for them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from regulargpt_jax import baselines
from regulargpt_jax.baselines import positional_encodings

ENCODINGS = list(positional_encodings.PositionalEncodings)
V, O = 3, 4  # Input and output classes.

RNN_PARAMS = {
  'rnn': {},
  'lstm': {},
  'stack_rnn': {'stack_cell_size': 2, 'stack_size': 5, 'n_stacks': 2},
  'stack_lstm': {'stack_cell_size': 2, 'stack_size': 5},
  'ndstack_rnn': {'stack_symbols': 2, 'stack_states': 2, 'stack_size': 9},
  'tape_rnn': {
    'memory_cell_size': 2,
    'memory_size': 7,
    'n_tapes': 2,
    'mlp_layers_size': (3,),
  },
}
TRANSFORMER_PARAMS = {'embedding_dim': 8, 'num_layers': 1, 'num_heads': 2}


def make(name, return_all_outputs=True, **params):
  """Returns a tiny model, by default with all its outputs."""
  if 'transformer' in name:
    params = TRANSFORMER_PARAMS | params
  else:
    params = {'hidden_size': 3} | RNN_PARAMS[name] | params
  return baselines.BUILDERS[name](
    output_size=O, return_all_outputs=return_all_outputs, **params
  )


def init(f, *args, **kwargs):
  """Returns random parameters, of a size that every part of f matters."""
  shapes = jax.eval_shape(
    functools.partial(f.init, **kwargs), jax.random.key(0), *args
  )
  rng = np.random.default_rng(1)

  def drawn(path, p):
    # FIRE's threshold, in units of 512 symbols: some are shorter.
    scale = 0.5 / 64 if path[-1].key == 'fire_l' else 0.5
    return jnp.array(scale * rng.normal(size=p.shape), p.dtype)

  return jax.tree_util.tree_map_with_path(drawn, shapes)


@functools.cache
def jitted(f, **static):
  return jax.jit(functools.partial(f.apply, **static))


def apply(f, params, *args, **static):
  """Calls f without dropout, compiled once for each width."""
  return np.asarray(jitted(f, **static)(params, None, *args))


def strings(lengths, width, num_symbols=V, seed=0):
  """Returns right-aligned one-hot strings, the same in every width."""
  rng = np.random.default_rng(seed)
  x = np.zeros((len(lengths), width, num_symbols), np.float32)
  for row, length in zip(x, lengths, strict=True):
    symbols = rng.integers(num_symbols, size=64)[:length]
    if length:
      row[-length:] = np.eye(num_symbols)[symbols]
  return jnp.array(x)


@dataclasses.dataclass
class Task:
  """Knows how many outputs a string has."""

  outputs_per_symbol: float

  def output_length(self, input_length):
    # Python's own arithmetic: cannot be traced.
    return max(1, int(input_length * self.outputs_per_symbol))
