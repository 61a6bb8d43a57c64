"""Word problems of finite groups."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from tasks import composition, random_symbols, task
from tasks.regular import groups, regular_task


class WordProblem(regular_task.RegularTask):
  """What is the product of a string of elements of a group?

  The state tracking of Liu et al. (2023) and Merrill et al. (2024). Symbols and
  answers are the group's elements, numbered in the order of how they are
  written; strings are uniform.

  Examples, for S3, whose elements are where 1, 2 and 3 go:
    213 213 -> 123, which is number 0
    213 132 is first 213, then 132 -> 312, number 4
  """

  def __init__(
    self,
    group: str | None = None,
    table: Sequence[Sequence[int]] | None = None,
  ):
    """Initializes.

    Args:
      group: Its name, see `groups.named`; S3 by default.
      table: Its multiplication table, in place of a name: row a, column b is
        the product ab, of elements 0 to N - 1.

    Raises:
      ValueError: If there is no such group, or the table is not a group's.
    """
    if group is not None and table is not None:
      raise ValueError('Give only one of group and table.')
    if table is not None:
      self._group = groups.from_table(table)
    else:
      self._group = groups.named('S3' if group is None else group)

  @property
  def input_size(self) -> int:
    """See base class."""
    return len(self._group.table)

  @property
  def output_size(self) -> int:
    """See base class."""
    return len(self._group.table)

  @property
  def input_symbols(self) -> Sequence[str]:
    """See base class."""
    return self._group.elements

  @property
  def machine(self):
    """See base class; the state is the product so far."""
    _, table, identity = self._group
    return regular_task.make_machine(table, identity, np.arange(len(table)))

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; elements are uniform."""
    return random_symbols.uniform_strings(
      rng, batch_size, length, width, self.input_size
    )

  def solve(self, tokens):
    """See base class."""
    _, table, identity = self._group
    table = jnp.asarray(table)
    factors = jnp.where(tokens == task.NO_SYMBOL, identity, tokens)
    return composition.compose_all(
      lambda a, b: table[a, b], factors, jnp.int32(identity)
    )
