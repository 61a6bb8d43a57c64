"""The task that an automaton defines: its language, or its states."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from tasks import random_symbols
from tasks.regular import automaton as automaton_lib
from tasks.regular import random_walk, regular_task


class AutomatonTask(regular_task.RegularTask):
  """Is a string in an automaton's language, or which state does it reach?

  Membership answers 1 if it is in the language, else 0. Half of a batch (the
  rows of even index) is uniform over the strings of its length in the language,
  half uniform over those outside; a length that has one of them only fills the
  whole batch with it. The state's answer is its number, and strings are
  uniform over all.

  Examples, for the automaton of (ab)*:
    a b a b -> 1
    a b b -> 0
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
    elif len(automaton.accepting) == 1:
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
      return 2
    return len(self.automaton.accepting)

  @property
  def input_symbols(self) -> Sequence[str]:
    """See base class."""
    return self.automaton.alphabet

  @property
  def machine(self) -> regular_task.MooreMachine:
    """See base class."""
    a = self.automaton
    is_state = self._target == 'state'
    outputs = np.arange(len(a.accepting)) if is_state else a.accepting
    return regular_task.make_machine(a.transitions, a.start, outputs)

  def wanted_classes(
    self, batch_size: int, length: int | jax.Array, width: int
  ) -> jax.Array:
    """Returns which strings of a batch are in the language, bool [B]."""
    _, exists = random_walk.uniform_walk(self.automaton, width)
    has_negatives, has_positives = jnp.asarray(exists)[:, length]
    is_even = jnp.arange(batch_size) % 2 == 0
    return jnp.where(has_negatives, is_even, True) & has_positives

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class."""
    if self._target == 'state':
      return random_symbols.uniform_strings(
        rng, batch_size, length, width, self.input_size
      )
    automaton = self.automaton
    num_states = len(automaton.accepting)
    thresholds, _ = random_walk.uniform_walk(automaton, width)
    transitions = np.concatenate(
      [automaton.transitions, automaton.transitions + num_states]
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
    return jnp.asarray(self.automaton.accepting, jnp.int32)[states_B]
