"""D_n: brackets nested to a bounded depth."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from tasks.automata import automaton as automaton_lib
from tasks.regular import language

# Length of an inner string, in units of the room that there is for it.
_MEAN, _DEVIATION = 0.75, 0.075

# An automaton has a state more than the depth.
_MAX_DEPTH = 10_000


class DN(language.Language):
  """D_n: are brackets balanced, with at most n open at a time?

  D_0 is the empty string, D_n = (a D_{n-1} b)*; symbol 0 is a, which opens, and
  1 is b, which closes. Answers 1 if the string is in D_n, else 0.

  Examples, for n = 2:
    a a b b a b -> 1
    a a a b b b -> 0, three are open at a time
  """

  def __init__(self, n: int, sampler: str = 'paper'):
    """Initializes.

    Args:
      n: The largest depth, 1 to 10,000.
      sampler: See `language.Language`.

    Raises:
      ValueError: If n or the sampler is out of range.
    """
    if not 1 <= n <= _MAX_DEPTH:
      raise ValueError(f'n must be from 1 to {_MAX_DEPTH}, got {n}.')
    self._n = n
    self.automaton = _automaton(n)
    super().__init__(sampler)

  def paper_positives(self, rng, batch_size, length, width):
    """Draws strings of D_n, one symbol at a time, with an explicit stack.

    A D_n string of a given length is built as: while there is room, append a,
    an inner string of D_{n-1}, and b. The inner length is Normal(0.75 m, 0.075
    m), rounded down to an even number and at most m, where m is the room less
    2.
    """
    n = self._n
    normal_WxB = jax.random.normal(rng, (width, batch_size))
    level_n = jnp.arange(n)

    def step(carry, normal_B):
      # Room in the string being built at each level, and how many are open.
      room_Bxn, depth_B = carry
      is_current_Bxn = level_n == depth_B[:, None]
      room_B = jnp.sum(jnp.where(is_current_Bxn, room_Bxn, 0), axis=-1)
      opens_B = room_B > 0  # Never at depth n, where there is no room at all.
      most_B = room_B - 2
      inner_B = most_B * (_MEAN + _DEVIATION * normal_B)
      inner_B = jnp.floor(inner_B / 2).astype(jnp.int32) * 2
      inner_B = jnp.clip(inner_B, 0, most_B)
      # A string of D_0 is empty, whatever length was drawn for it.
      inner_B = jnp.where(depth_B < n - 1, inner_B, 0)
      # The string at this level goes on behind the inner one and its b.
      behind_B = most_B - inner_B
      depth_B = jnp.where(opens_B, depth_B + 1, depth_B - 1)
      opens_Bx1 = opens_B[:, None]
      is_inner_Bxn = level_n == depth_B[:, None]
      room_Bxn = jnp.where(
        opens_Bx1 & is_current_Bxn, behind_B[:, None], room_Bxn
      )
      room_Bxn = jnp.where(opens_Bx1 & is_inner_Bxn, inner_B[:, None], room_Bxn)
      return (room_Bxn, depth_B), jnp.where(opens_B, 0, 1)

    room_Bxn = jnp.where(
      level_n == 0, length, jnp.zeros((batch_size, n), jnp.int32)
    )
    start = (room_Bxn, jnp.zeros(batch_size, jnp.int32))
    return jax.lax.scan(step, start, normal_WxB)[1]


def _automaton(n: int) -> automaton_lib.Automaton:
  """Returns the automaton of D_n: the state is the depth, or n + 1, dead."""
  depth = np.arange(n + 2)
  opened = np.minimum(depth + 1, n + 1)
  closed = np.where(depth == 0, n + 1, depth - 1)
  transitions = np.stack([opened, closed], axis=-1)
  transitions[n + 1] = n + 1
  return automaton_lib.Automaton('ab', transitions, 0, depth == 0)


BUILDERS = {f'd_{n}': functools.partial(DN, n=n) for n in (1, 2, 3, 4, 12)}
