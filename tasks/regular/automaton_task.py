"""The task that an automaton defines: its language, or its states."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from tasks import random_symbols
from tasks.automata import automaton as automaton_lib
from tasks.regular import random_walk, regular_task


class AutomatonTask(regular_task.RegularTask):
  """Is a string in an automaton's language, or which state does it reach?

  Membership answers 1 if it is in the language, else 0. Half of a batch (the
  rows of even index) is uniform over the strings of its length in the language,
  half uniform over those outside; a length that has one of them only fills the
  whole batch with it. An automaton of more than two answers is asked for them:
  its classes take turns, from the last to the first. The state's answer is its
  number, and strings are uniform over all.
  """

  def __init__(
    self, automaton: automaton_lib.Automaton, target: str = 'membership'
  ):
    """Initializes.

    Args:
      automaton: What to learn.
      target: 'membership' or 'state'.

    Raises:
      ValueError: If the target is another, or if there is nothing to learn.
    """
    if target not in ('membership', 'state'):
      raise ValueError(
        f"target must be 'membership' or 'state', got {target!r}."
      )
    if target == 'membership':
      automaton_lib.check_learnable(automaton)
    elif len(automaton.outputs) == 1:
      raise ValueError(
        'There is nothing to learn: the automaton has a single state.'
      )
    self.automaton = automaton
    self._target = target

  @property
  def input_size(self) -> int:
    """See base class."""
    return len(self.automaton.alphabet)

  @property
  def output_size(self) -> int:
    """See base class."""
    if self._target == 'membership':
      return self.automaton.num_classes
    return len(self.automaton.outputs)

  @property
  def input_symbols(self) -> Sequence[str]:
    """See base class."""
    return self.automaton.alphabet

  @property
  def machine(self) -> regular_task.MooreMachine:
    """See base class."""
    a = self.automaton
    is_state = self._target == 'state'
    outputs = np.arange(len(a.outputs)) if is_state else a.outputs
    return regular_task.make_machine(a.transitions, a.start, outputs)

  def wanted_classes(
    self, batch_size: int, length: int | jax.Array, width: int
  ) -> jax.Array:
    """Returns the answer that each string of a batch has, int32 [B]."""
    _, exists = random_walk.uniform_walk(self.automaton, width)
    exists_K = jnp.asarray(exists)[:, length]
    # The classes of this length, the last first, and then the others.
    by_turn_K = jnp.argsort(~exists_K[::-1])
    turn_B = jnp.arange(batch_size) % exists_K.sum()
    return len(exists) - 1 - by_turn_K[turn_B].astype(jnp.int32)

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class."""
    if self._target == 'state':
      return random_symbols.uniform_strings(
        rng, batch_size, length, width, self.input_size
      )
    automaton = self.automaton
    num_states = len(automaton.outputs)
    thresholds, _ = random_walk.uniform_walk(automaton, width)
    transitions = np.concatenate(
      [
        automaton.transitions + num_states * k
        for k in range(automaton.num_classes)
      ]
    )
    wanted_B = self.wanted_classes(batch_size, length, width)
    start_B = automaton.start + num_states * wanted_B
    return random_walk.sample_walks(
      rng, thresholds, transitions, start_B, length
    )

  def solve(self, tokens):
    """See base class."""
    states_B = automaton_lib.final_states(self.automaton, tokens)
    if self._target == 'state':
      return states_B
    return jnp.asarray(self.automaton.outputs)[states_B]
