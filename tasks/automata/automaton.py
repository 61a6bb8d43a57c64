"""Finite automata: what they are, and running them over strings.

Labels are a composition of maps in logarithmic depth, where states are few.
Letters: B batch, W padded width, Q states, V symbols.
"""

from collections.abc import Sequence
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from tasks import composition, task
from tasks.automata import minimization


@dataclasses.dataclass(frozen=True, eq=False)
class Automaton:
  """A complete deterministic automaton, as plain arrays.

  Attributes:
    alphabet: The V symbols; symbol v is the token v.
    transitions: Next state by state and symbol, int32 [Q, V].
    start: The state before the first symbol.
    outputs: The answer to a string that ends in the state, int32 [Q]: 1 if it
      is in the language, else 0; or a class of more than two.

  Raises:
    ValueError: If a symbol is repeated, or shapes or states don't fit.
  """

  alphabet: Sequence[str]
  transitions: np.ndarray
  start: int
  outputs: np.ndarray

  def __post_init__(self):
    alphabet = tuple(self.alphabet)
    transitions = np.asarray(self.transitions, np.int32)
    outputs = np.asarray(self.outputs, np.int32)
    check_distinct('symbol', alphabet)
    if transitions.ndim != 2 or transitions.shape[1] != len(alphabet):
      raise ValueError(
        f'transitions must have shape [states, {len(alphabet)}], got'
        f' {list(transitions.shape)}.'
      )
    num_states = transitions.shape[0]
    if outputs.shape != (num_states,):
      raise ValueError(
        f'outputs must have shape [{num_states}], got {list(outputs.shape)}.'
      )
    if (outputs < 0).any():
      raise ValueError(f'outputs must be classes from 0, got {outputs.min()}.')
    states = np.append(transitions.ravel(), self.start)
    for state in states[(states < 0) | (states >= num_states)]:
      raise ValueError(f'State {state} is not in [0, {num_states}).')
    object.__setattr__(self, 'alphabet', alphabet)
    object.__setattr__(self, 'transitions', transitions)
    object.__setattr__(self, 'outputs', outputs)

  @property
  def num_classes(self) -> int:
    """How many answers there are, at least 2."""
    return max(2, int(self.outputs.max()) + 1)

  @property
  def accepting(self) -> np.ndarray:
    """Whether a string that ends in the state is in the language, bool [Q]."""
    return self.outputs != 0


def check_distinct(kind: str, names: Sequence[str]) -> None:
  """Raises a ValueError if there is no name, or one comes twice."""
  if not names:
    raise ValueError(f'There must be at least one {kind}.')
  seen = set()
  for name in names:
    if name in seen:
      raise ValueError(f'Duplicate {kind} {name!r}.')
    seen.add(name)


def check_learnable(automaton: Automaton) -> None:
  """Raises a ValueError if all strings have one answer.

  That is, if the language has no string of one symbol or more, or all of them.
  """
  before = minimization.breadth_first(automaton.transitions, automaton.start)
  reached = np.unique(automaton.transitions[before])
  answers = set(automaton.outputs[reached].tolist())
  if len(answers) == 1 and automaton.num_classes > 2:
    raise ValueError(
      'There is nothing to learn: every string of one symbol or more has the'
      f' answer {answers.pop()}.'
    )
  if len(answers) == 1:
    which = 'every' if answers.pop() else 'no'
    raise ValueError(
      f'There is nothing to learn: the language has {which} string of one'
      ' symbol or more.'
    )


# Most states of an automaton whose maps are composed.
_MAX_COMPOSED = 256


def final_states(automaton: Automaton, tokens: jax.Array) -> jax.Array:
  """Returns the state after each string, by maps composed as a tree.

  A map is as large as the automaton: where that is many states, strings are
  read symbol by symbol.

  Args:
    automaton: With Q states.
    tokens: Right-aligned strings, int32 [B, W].

  Returns:
    States, int32 [B].
  """
  num_states = len(automaton.outputs)
  if num_states > _MAX_COMPOSED:
    states_BxW = states_by_symbol(
      automaton.transitions, automaton.start, tokens
    )
    return states_BxW[:, -1]
  # Maps are most of the memory that long strings need.
  dtype = np.int8 if num_states <= 128 else np.int32
  identity_Q = np.arange(num_states, dtype=dtype)
  # Row 0 is for `NO_SYMBOL`, -1.
  map_of_token = jnp.asarray(
    np.concatenate([identity_Q[None], automaton.transitions.T.astype(dtype)])
  )

  def compose(first, second):
    return jnp.take_along_axis(second, first.astype(jnp.int32), axis=-1)

  whole_BxQ = composition.compose_all(
    compose, map_of_token[tokens - task.NO_SYMBOL], identity_Q
  )
  return whole_BxQ[:, automaton.start].astype(jnp.int32)


def states_by_symbol(
  transitions_QxV: np.ndarray, start: int, tokens: jax.Array
) -> jax.Array:
  """Returns the states after each symbol of strings, int32 [B, W], in W steps.

  Args:
    transitions_QxV: The next state by state and symbol.
    start: The state before the first symbol, and where there is none.
    tokens: Right-aligned strings, int32 [B, W].
  """
  transitions_QxV = jnp.asarray(transitions_QxV)

  def step(state_B, token_B):
    after_B = transitions_QxV[state_B, token_B]
    state_B = jnp.where(token_B == task.NO_SYMBOL, state_B, after_B)
    return state_B, state_B

  start_B = jnp.full(tokens.shape[0], start, jnp.int32)
  return jax.lax.scan(step, start_B, jnp.asarray(tokens).T)[1].T
