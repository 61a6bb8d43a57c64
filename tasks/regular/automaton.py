"""Finite automata: what they are, and running them over strings.

Labels are a composition of maps in logarithmic depth. Letters: B batch, W
padded width, Q states, V symbols.
"""

from collections.abc import Sequence
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from tasks import composition, task


@dataclasses.dataclass(frozen=True, eq=False)
class Automaton:
  """A complete deterministic automaton, as plain arrays.

  Attributes:
    alphabet: The V symbols; symbol v is the token v.
    transitions: Next state by state and symbol, int32 [Q, V].
    start: The state before the first symbol.
    accepting: Whether a string that ends in the state is in the language,
      bool [Q].

  Raises:
    ValueError: If a symbol is repeated, or shapes or states don't fit.
  """

  alphabet: Sequence[str]
  transitions: np.ndarray
  start: int
  accepting: np.ndarray

  def __post_init__(self):
    alphabet = tuple(self.alphabet)
    transitions = np.asarray(self.transitions, np.int32)
    accepting = np.asarray(self.accepting, bool)
    check_distinct('symbol', alphabet)
    if transitions.ndim != 2 or transitions.shape[1] != len(alphabet):
      raise ValueError(
        f'transitions must have shape [states, {len(alphabet)}], got'
        f' {list(transitions.shape)}.'
      )
    num_states = transitions.shape[0]
    if accepting.shape != (num_states,):
      raise ValueError(
        f'accepting must have shape [{num_states}], got'
        f' {list(accepting.shape)}.'
      )
    for state in (self.start, *transitions.flat):
      if not 0 <= state < num_states:
        raise ValueError(f'State {state} is not in [0, {num_states}).')
    object.__setattr__(self, 'alphabet', alphabet)
    object.__setattr__(self, 'transitions', transitions)
    object.__setattr__(self, 'accepting', accepting)


def check_distinct(kind: str, names: Sequence[str]) -> None:
  """Raises a ValueError if there is no name, or one comes twice."""
  if not names:
    raise ValueError(f'There must be at least one {kind}.')
  for i, name in enumerate(names):
    if name in names[:i]:
      raise ValueError(f'Duplicate {kind} {name!r}.')


def check_learnable(automaton: Automaton) -> None:
  """Raises a ValueError if all strings have one answer.

  That is, if the language has no string of one symbol or more, or all of them.
  """
  reached = set(automaton.transitions[automaton.start].tolist())
  while True:
    more = reached.union(*(automaton.transitions[q].tolist() for q in reached))
    if more == reached:
      break
    reached = more
  answers = {bool(automaton.accepting[q]) for q in reached}
  if len(answers) == 1:
    which = 'every' if answers.pop() else 'no'
    raise ValueError(
      f'There is nothing to learn: the language has {which} string of one'
      ' symbol or more.'
    )


def final_states(automaton: Automaton, tokens: jax.Array) -> jax.Array:
  """Returns the state after each string, by maps composed as a tree.

  Args:
    automaton: With Q states.
    tokens: Right-aligned strings, int32 [B, W].

  Returns:
    States, int32 [B].
  """
  num_states = len(automaton.accepting)
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
