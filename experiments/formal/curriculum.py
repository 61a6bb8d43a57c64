"""Curricula over the lengths of training strings.

A curriculum is a pure function of its seed and the step, so there is no state
to save, and a resumed run goes on as it would have. All runs of a sweep see
the same lengths.
"""

import abc
from collections.abc import Collection, Sequence
import operator

import numpy as np


class Curriculum(abc.ABC):
  """A distribution over lengths at each step."""

  def __init__(self, seed: int = 0):
    if not 0 <= seed < 2**32:
      raise ValueError(f'seed must be from 0 to {2**32 - 1}, got {seed}.')
    self._seed = operator.index(seed)

  @abc.abstractmethod
  def sample_sequence_length(self, step: int) -> int:
    """Returns the length of the strings of a step, counted from 0."""

  @abc.abstractmethod
  def lengths(self, num_steps: int) -> Collection[int]:
    """Returns the lengths that the first steps may have, each once."""

  def bounds(self, num_steps: int) -> tuple[int, int]:
    """Returns the shortest and the longest of them."""
    lengths = self.lengths(num_steps)
    return min(lengths), max(lengths)

  def _rng(self, step: int) -> np.random.Generator:
    return np.random.default_rng((self._seed, step))


class FixedCurriculum(Curriculum):
  """Always the same length."""

  def __init__(self, sequence_length: int, seed: int = 0):
    super().__init__(seed)
    self._sequence_length = operator.index(sequence_length)

  def sample_sequence_length(self, step: int) -> int:
    """See base class."""
    del step
    return self._sequence_length

  def lengths(self, num_steps: int) -> set[int]:
    """See base class."""
    del num_steps
    return {self._sequence_length}


class UniformCurriculum(Curriculum):
  """Each of some lengths equally often."""

  def __init__(self, values: Sequence[int], seed: int = 0):
    super().__init__(seed)
    self._values = _checked(values)

  def sample_sequence_length(self, step: int) -> int:
    """See base class."""
    return self._values[self._rng(step).integers(len(self._values))]

  def lengths(self, num_steps: int) -> set[int]:
    """See base class."""
    del num_steps
    return set(self._values)


class ReverseExponentialCurriculum(Curriculum):
  """Length T with a probability in proportion to tau^T."""

  def __init__(self, values: Sequence[int], tau: float, seed: int = 0):
    """Initializes.

    Args:
      values: The lengths.
      tau: Below 1 favours short strings, above 1 long ones.
      seed: Of the draws.
    """
    super().__init__(seed)
    if not 0 < tau < float('inf'):
      raise ValueError(f'tau must be positive and finite, got {tau}.')
    self._values = _checked(values)
    log_weights = np.array(self._values) * np.log(tau)
    weights = np.exp(log_weights - log_weights.max())
    self._probabilities = weights / weights.sum()

  def sample_sequence_length(self, step: int) -> int:
    """See base class."""
    return int(self._rng(step).choice(self._values, p=self._probabilities))

  def lengths(self, num_steps: int) -> set[int]:
    """See base class."""
    del num_steps
    return set(self._values)


class RegularIncreaseCurriculum(Curriculum):
  """Lengths that grow by a fixed amount every so many steps."""

  def __init__(
    self,
    initial_sequence_length: int,
    increase_frequency: int,
    increase_amount: int,
    sample_all_length: bool,
    max_sequence_length: int,
    seed: int = 0,
  ):
    """Initializes.

    Args:
      initial_sequence_length: Length at step 0.
      increase_frequency: Steps between two increases.
      increase_amount: Symbols added by an increase.
      sample_all_length: Whether to draw uniformly from the lengths reached so
        far, or to use the latest one only.
      max_sequence_length: Where the growth stops.
      seed: Of the draws.
    """
    super().__init__(seed)
    if increase_frequency < 1 or increase_amount < 1:
      raise ValueError(
        'increase_frequency and increase_amount must be at least 1, got'
        f' {increase_frequency} and {increase_amount}.'
      )
    if not isinstance(sample_all_length, bool):
      raise ValueError(
        f'sample_all_length must be true or false, got {sample_all_length!r}.'
      )
    self._initial_sequence_length = operator.index(initial_sequence_length)
    self._increase_frequency = operator.index(increase_frequency)
    self._increase_amount = operator.index(increase_amount)
    self._sample_all_length = sample_all_length
    room = max_sequence_length - initial_sequence_length
    self._max_increases = max(0, room // increase_amount)

  def sample_sequence_length(self, step: int) -> int:
    """See base class."""
    increases = self._increases(step)
    if self._sample_all_length:
      increases = int(self._rng(step).integers(increases + 1))
    return self._initial_sequence_length + self._increase_amount * increases

  def lengths(self, num_steps: int) -> range:
    """See base class."""
    first, amount = self._initial_sequence_length, self._increase_amount
    increases = self._increases(max(0, num_steps - 1))
    return range(first, first + amount * increases + 1, amount)

  def bounds(self, num_steps: int) -> tuple[int, int]:
    """See base class."""
    lengths = self.lengths(num_steps)
    return lengths[0], lengths[-1]

  def _increases(self, step: int) -> int:
    return min(step // self._increase_frequency, self._max_increases)


def _checked(values: Sequence[int]) -> Sequence[int]:
  """Returns the lengths as integers, at least one."""
  if isinstance(values, range):
    checked = values
  else:
    checked = tuple(operator.index(value) for value in values)
  if not checked:
    raise ValueError('values must not be empty.')
  return checked
