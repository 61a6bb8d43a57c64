"""Languages of the benchmark's second group (Bhattamishra et al., 2020)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from tasks import task
from tasks.automata import automaton as automaton_lib
from tasks.regular import automaton_task

_SAMPLERS = ('paper', 'uniform')


class Language(automaton_task.AutomatonTask):
  """Is a string in a language? 1 if it is, else 0.

  Half of a batch is in the language, half is not; see `AutomatonTask`. The
  RegularGPT authors' negatives are uniform strings, rejected if they are in the
  language: these are exactly uniform over all negatives, so we draw them as
  such, without rejection. Samplers thus differ in their positives only, but for
  `Tomita1` and `Tomita7`, which say how.

  Attributes:
    automaton: Of the language; a language sets it.
    sampler: One of `_SAMPLERS`.
    paper_positives: Draws the authors' positives; called with rng, batch size,
      length (may be traced) and width, it returns symbols counted from the
      string's start, [W, B]. None where theirs are uniform.
  """

  automaton: automaton_lib.Automaton
  paper_positives: Callable[..., jax.Array] | None = None

  def __init__(self, sampler: str = 'paper'):
    """Initializes.

    Args:
      sampler: 'paper', strings distributed as the RegularGPT authors' were, or
        'uniform', positives exactly uniform over the language.

    Raises:
      ValueError: If the sampler is another.
    """
    super().__init__(self.automaton)
    if sampler not in _SAMPLERS:
      raise ValueError(
        f'sampler must be one of {", ".join(_SAMPLERS)}, got {sampler!r}.'
      )
    self.sampler = sampler

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class."""
    uniform_rng, paper_rng = jax.random.split(rng)
    uniform = super().sample_tokens(uniform_rng, batch_size, length, width)
    if self.sampler == 'uniform' or self.paper_positives is None:
      return uniform
    positives = _right_align_from_start(
      self.paper_positives(paper_rng, batch_size, length, width), length
    )
    wanted_B = self.wanted_classes(batch_size, length, width)
    return jnp.where(wanted_B[:, None] == 1, positives, uniform)


def _right_align_from_start(
  symbols_WxB: jax.Array, length: int | jax.Array
) -> jax.Array:
  """Returns tokens [B, W] from symbols counted from the string's start."""
  from_end_WxB = jnp.roll(symbols_WxB, -length, axis=0)[::-1]
  return task.right_align(from_end_WxB, length)
