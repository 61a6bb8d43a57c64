"""Random walks on automata, whose strings are exactly uniform over a language.

Letters: B batch, W padded width, Q states, V symbols, K classes, S states of a
walk.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from tasks import task
from tasks.automata import automaton as automaton_lib

# Probabilities of a walk are whole multiples of 2^-31.
_PROBABILITY_BITS = 31

# Entries of a table of probabilities, in double precision.
_MAX_ENTRIES = 2**29


def sample_walks(
  rng: jax.Array,
  thresholds_WxSxU: jax.Array,
  transitions_SxV: jax.Array,
  start_B: jax.Array,
  length: int | jax.Array,
) -> jax.Array:
  """Returns the symbols of random walks, right-aligned, int32 [B, W].

  Args:
    rng: The only source of randomness.
    thresholds_WxSxU: Probability, in units of 2^-31, that the symbol is v or
      one before it, for v < U = V - 1; by the symbols still to come after it
      and by the state before it. uint32.
    transitions_SxV: Next state.
    start_B: First state of each walk.
    length: Symbols of each walk, may be traced.
  """
  width, batch_size = thresholds_WxSxU.shape[0], start_B.shape[0]
  bits_WxB = jax.random.bits(rng, (width, batch_size), jnp.uint32)
  draws_WxB = bits_WxB >> (32 - _PROBABILITY_BITS)
  transitions_SxV = jnp.asarray(transitions_SxV)

  def step(state_B, inputs):
    draw_B, thresholds_SxU, is_inside = inputs
    is_later_BxU = draw_B[:, None] >= thresholds_SxU[state_B]
    symbol_B = is_later_BxU.sum(-1, dtype=jnp.int32)
    next_B = transitions_SxV[state_B, symbol_B]
    return jnp.where(is_inside, next_B, state_B), symbol_B

  # From the string's start, which is `length - 1` places from its end.
  is_inside_W = jnp.arange(width) < length
  _, symbols_WxB = jax.lax.scan(
    step,
    start_B,
    (draws_WxB, jnp.asarray(thresholds_WxSxU), is_inside_W),
    reverse=True,
  )
  return task.right_align(symbols_WxB, length)


def _to_thresholds(probabilities: np.ndarray) -> np.ndarray:
  """Returns `sample_walks`'s thresholds, [..., V - 1].

  Args:
    probabilities: Of the symbols, [..., V]; proportional ones do, and rows of
      zeros, which stand for what never happens.
  """
  cumulative = np.cumsum(probabilities, axis=-1)
  # Exactly 1 from the last possible symbol on: impossible ones never come.
  total = np.where(cumulative[..., -1:] > 0, cumulative[..., -1:], 1.0)
  scaled = cumulative[..., :-1] / total * 2.0**_PROBABILITY_BITS
  return np.rint(scaled).astype(np.uint32)


@functools.lru_cache(maxsize=128)
def uniform_walk(
  automaton: automaton_lib.Automaton, width: int
) -> tuple[np.ndarray, np.ndarray]:
  """Counts paths, so that walks are uniform over each class of strings.

  A symbol's probability is the number of ways to go on after it over the
  number of ways to go on before it. Numbers of ways are logarithms in double
  precision: 2^10000 overflows, and scaled numbers underflow.

  Returns:
    Thresholds for `sample_walks`, [W, K Q, V - 1], of walks to strings of class
    0 (states 0 to Q - 1), of class 1 (states Q to 2 Q - 1), and so on.
    Whether there is such a string, by class and length, bool [K, W + 1].

  Raises:
    ValueError: If that is more than memory has room for.
  """
  num_states, num_symbols = automaton.transitions.shape
  num_entries = width * automaton.num_classes * num_states * num_symbols
  if num_entries > _MAX_ENTRIES:
    raise ValueError(
      f'To draw strings of up to {width:,} symbols from the languages of an'
      f' automaton of {num_states:,} states, {num_symbols:,} symbols and'
      f' {automaton.num_classes:,} answers takes a table of {num_entries:,}'
      f' probabilities; at most {_MAX_ENTRIES:,} are allowed. Take shorter'
      ' strings, or --target=state.'
    )
  classes = np.arange(automaton.num_classes)
  is_end_KxQ = automaton.outputs == classes[:, None]
  with np.errstate(divide='ignore', invalid='ignore'):
    ways = [np.log(is_end_KxQ.astype(np.float64))]
    for _ in range(width):
      after_KxQxV = ways[-1][:, automaton.transitions]
      ways.append(np.logaddexp.reduce(after_KxQxV, axis=-1))
    ways = np.stack(ways)
    after_WxKxQxV = ways[:-1][:, :, automaton.transitions]
    probabilities = np.exp(after_WxKxQxV - ways[1:, :, :, None])
  # No way to go on: minus infinity less itself.
  probabilities = np.nan_to_num(probabilities, nan=0.0)
  thresholds = _to_thresholds(probabilities).reshape(width, is_end_KxQ.size, -1)
  return thresholds, np.isfinite(ways[:, :, automaton.start]).T
