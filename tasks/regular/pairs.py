"""Pairs of strings at edit distance 1 that a machine answers differently.

They lie on the border of a language: each positive with a negative that one
substitution, insertion or deletion makes of it, as in the adversarial test sets
of MLRegTest (van der Poel et al., 2023).

A pair is written in columns, a symbol of each string or a gap in one of them;
exactly one column, the edit, does not hold the same symbol twice. A gap stands
at the end of its run of equal symbols, so that every pair is written in one way
only, and numbers of columns to come are numbers of pairs.

Letters: B pairs, W columns, N rows, Q states, V symbols, E = V V + 2 V edits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks import task
from tasks.automata import minimization
from tasks.regular import regular_task

# Additions, of some nanoseconds each, and numbers kept.
_MAX_WORK, _MAX_ENTRIES = 2**32, 2**27
# Entries of the edits that are looked at together.
_MAX_EDITS = 2**24


class Pairs(NamedTuple):
  """Pairs of one length, that of the longer string.

  Attributes:
    tokens: Right-aligned, int32 [B, 2, W]; of the string of the higher class
      (in the language), then of that of the lower (not in it).
    answers: Their classes, int32 [B, 2].
  """

  tokens: np.ndarray
  answers: np.ndarray


def check(machine: regular_task.MooreMachine, max_length: int) -> None:
  """Checks that pairs can be counted.

  Args:
    machine: Says the answers.
    max_length: Of the longest pairs.

  Raises:
    ValueError: If that is more than there is room or time for.
  """
  num_states, num_symbols = _minimal(machine).transitions.shape
  work = max_length * num_states * num_symbols
  work *= num_states + 3 * num_symbols
  if work > _MAX_WORK or max_length * num_states**2 > _MAX_ENTRIES:
    raise ValueError(
      f'To count the pairs of strings of up to {max_length:,} symbols that an'
      f' automaton of {num_states:,} states and {num_symbols:,} symbols answers'
      ' differently would take too long. Take shorter strings.'
    )


def _minimal(machine: regular_task.MooreMachine) -> regular_task.MooreMachine:
  kept, number_Q = minimization.merged(*machine)
  return regular_task.make_machine(
    number_Q[machine.transitions[kept]],
    number_Q[machine.start],
    machine.outputs[kept],
  )


class PairSampler:
  """Draws pairs exactly uniformly among all of their length.

  That is, a string of the higher class and one of the lower, each of at least
  one symbol, the longer of them of that length. Numbers of pairs are kept as
  logarithms in double precision.
  """

  def __init__(self, machine: regular_task.MooreMachine, max_length: int):
    """Counts.

    Args:
      machine: Says the answers.
      max_length: Of the longest pairs.

    Raises:
      ValueError: As `check`.
    """
    check(machine, max_length)
    self._machine = _minimal(machine)
    self._count(max_length)

  def _count(self, max_length: int) -> None:
    """Sets the logarithms of numbers of ways to go on.

    `_same[n]` [Q, Q]: after the edit, with n columns to come. `_before[n]` [Q]:
    before it. `_edit[n]` [Q]: where the edit comes first of them.
    `_inserted[n]` and `_deleted[n]` [Q, V]: behind a gap opposite of a symbol.
    """
    after, _, classes_Q = self._machine
    num_states, num_symbols = after.shape
    lower_than = classes_Q[:, None] > classes_Q
    with np.errstate(divide='ignore'):
      self._same = [np.log(lower_than.astype(float))]
    self._before = [np.full(num_states, -np.inf)]
    self._edit, self._inserted, self._deleted = [None], [], []
    # The next symbol differs from the one opposite of the gap.
    symbols = np.arange(num_symbols)
    is_equal_VxV = symbols[:, None] == symbols
    longer_QxVxV = after[after]
    first_QxVx1, second_Qx1xV = after[:, :, None], after[:, None, :]
    states_Qx1 = np.arange(num_states)[:, None]
    for n in range(1, max_length + 1):
      same = self._same[n - 1]
      if n == 1:
        self._inserted.append(same[states_Qx1, after])
        self._deleted.append(same[after, states_Qx1])
      else:
        last = self._same[n - 2]
        for ways, pairs in (
          (self._inserted, (second_Qx1xV, longer_QxVxV)),
          (self._deleted, (longer_QxVxV, second_Qx1xV)),
        ):
          ways.append(_log_sum(np.where(is_equal_VxV, -np.inf, last[pairs])))
      changed = same[first_QxVx1, second_Qx1xV]
      changed = np.where(is_equal_VxV, -np.inf, changed)
      edits = [_log_sum(changed.reshape(num_states, -1))]
      edits += [_log_sum(self._inserted[-1]), _log_sum(self._deleted[-1])]
      self._edit.append(_log_sum(np.stack(edits, -1)))
      common = _log_sum(self._before[n - 1][after])
      self._before.append(np.logaddexp(common, self._edit[n]))
      total = np.full(same.shape, -np.inf)
      for v in symbols:
        total = np.logaddexp(total, same[after[:, v][:, None], after[:, v]])
      self._same.append(total)

  def log_count(self, length: int) -> float:
    """Returns the logarithm of the number of pairs of a length."""
    if length > 1:
      return self._before[length][self._machine.start]
    # One symbol is substituted: no string is empty.
    weights = self._edit_weights(
      np.array([self._machine.start]), 1, is_whole=True
    )
    return _log_sum(weights)[0]

  def sample(
    self, seed: int, lengths: Sequence[int], num_pairs: int
  ) -> dict[int, Pairs]:
    """Returns pairs of each of the lengths that have some.

    Args:
      seed: With the length, all that the pairs depend on.
      lengths: At most `max_length`.
      num_pairs: B, of each length.
    """
    lengths = [n for n in lengths if np.isfinite(self.log_count(n))]
    if not lengths:
      return {}
    width = max(lengths)
    # By columns to come, the column's draw and the edit's.
    draws_Wx2xN = np.zeros((width, 2, len(lengths) * num_pairs))
    for i, length in enumerate(lengths):
      rows = slice(i * num_pairs, (i + 1) * num_pairs)
      rng = np.random.default_rng((seed, length))
      draws_Wx2xN[:length, :, rows] = rng.random((length, 2, num_pairs))
    columns_NxW2 = self._columns(np.repeat(lengths, num_pairs), draws_Wx2xN)
    found = {}
    for i, length in enumerate(lengths):
      rows = slice(i * num_pairs, (i + 1) * num_pairs)
      tokens = columns_NxW2[rows, width - length :].transpose(0, 2, 1)
      tokens = _without_gaps(tokens)
      found[length] = Pairs(tokens, regular_task.answers(self._machine, tokens))
    return found

  def _columns(
    self, lengths_N: np.ndarray, draws_Wx2xN: np.ndarray
  ) -> np.ndarray:
    """Returns columns from random numbers, right-aligned, int32 [N, W, 2]."""
    after = self._machine.transitions
    width = len(draws_Wx2xN)
    columns = np.full((len(lengths_N), width, 2), task.NO_SYMBOL, np.int32)
    states_Nx2 = np.full((len(lengths_N), 2), self._machine.start)
    is_edited_N = np.zeros(len(lengths_N), bool)
    # What may not come next, behind a gap.
    closed_N = np.full(len(lengths_N), -1)
    for n in range(width, 0, -1):
      is_there = lengths_N >= n
      rows = np.flatnonzero(is_there & is_edited_N)
      first, second = states_Nx2[rows].T
      weights = self._same[n - 1][after[first], after[second]]
      is_closed = closed_N[rows] >= 0
      weights[is_closed, closed_N[rows][is_closed]] = -np.inf
      closed_N[rows] = -1
      columns[rows, width - n] = _drawn(weights, draws_Wx2xN[n - 1, 0, rows])[
        :, None
      ]
      rows = np.flatnonzero(is_there & ~is_edited_N)
      states = states_Nx2[rows, 0]
      common = self._before[n - 1][after[states]]
      weights = np.concatenate([common, self._edit[n][states, None]], axis=-1)
      chosen = _drawn(weights, draws_Wx2xN[n - 1, 0, rows])
      is_edit = chosen == after.shape[1]
      columns[rows, width - n] = chosen[:, None]
      rows, states = rows[is_edit], states[is_edit]
      is_edited_N[rows] = True
      edits, closed = self._edits(
        states, n, lengths_N[rows] == 1, draws_Wx2xN[n - 1, 1, rows]
      )
      columns[rows, width - n] = edits
      closed_N[rows] = closed
      column_Nx2 = columns[:, width - n]
      moved = after[states_Nx2, np.maximum(column_Nx2, 0)]
      states_Nx2 = np.where(column_Nx2 >= 0, moved, states_Nx2)
    return columns

  def _edit_weights(
    self, states_N: np.ndarray, n: int, is_whole: bool = False
  ) -> np.ndarray:
    """Returns the logarithms of the numbers of ways on by each edit, [N, E].

    Args:
      states_N: Before the edit.
      n: Columns to come, the edit's included.
      is_whole: Whether the edit is the pair's only column.
    """
    after_NxV = self._machine.transitions[states_N]
    changed = self._same[n - 1][after_NxV[:, :, None], after_NxV[:, None, :]]
    num_symbols = after_NxV.shape[1]
    changed[:, np.arange(num_symbols), np.arange(num_symbols)] = -np.inf
    gaps = [self._inserted[n - 1][states_N], self._deleted[n - 1][states_N]]
    if is_whole:
      gaps = [np.full_like(x, -np.inf) for x in gaps]
    return np.concatenate([changed.reshape(len(states_N), -1), *gaps], axis=-1)

  def _edits(
    self,
    states_N: np.ndarray,
    n: int,
    is_whole_N: np.ndarray,
    draws_N: np.ndarray,
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns columns [N, 2], and what may not follow them, or -1, [N]."""
    num_symbols = self._machine.transitions.shape[1]
    num_edits = num_symbols**2 + 2 * num_symbols
    chosen_N = np.zeros(len(states_N), int)
    step = max(1, _MAX_EDITS // num_edits)
    for start in range(0, len(states_N), step):
      rows = slice(start, start + step)
      weights = self._edit_weights(states_N[rows], n)
      weights[is_whole_N[rows], num_symbols**2 :] = -np.inf
      chosen_N[rows] = _drawn(weights, draws_N[rows])
    kind_N, symbol_N = np.divmod(chosen_N - num_symbols**2, num_symbols)
    edits = np.stack(np.divmod(chosen_N, num_symbols), axis=-1)
    edits[kind_N >= 0] = task.NO_SYMBOL
    for kind, place in ((0, 1), (1, 0)):
      edits[kind_N == kind, place] = symbol_N[kind_N == kind]
    return edits, np.where(kind_N >= 0, symbol_N, -1)


def _log_sum(logs: np.ndarray) -> np.ndarray:
  """Returns the logarithms of sums over the last axis."""
  largest = logs.max(axis=-1, initial=-np.inf)
  base = np.where(np.isfinite(largest), largest, 0.0)
  with np.errstate(divide='ignore'):
    return base + np.log(np.exp(logs - base[..., None]).sum(axis=-1))


def _drawn(logs_NxC: np.ndarray, draws_N: np.ndarray) -> np.ndarray:
  """Returns choices with probabilities in proportion to weights.

  Args:
    logs_NxC: Logarithms of the weights, not all minus infinity.
    draws_N: Uniform in [0, 1).
  """
  weights = np.exp(logs_NxC - logs_NxC.max(axis=-1, keepdims=True))
  sums = np.cumsum(weights, axis=-1)
  # Strictly above: what has no weight is never chosen.
  return (sums <= (draws_N * sums[:, -1])[:, None]).sum(axis=-1)


def _without_gaps(columns_Bx2xW: np.ndarray) -> np.ndarray:
  """Returns strings right-aligned, their at most one gap moved to the front."""
  width = columns_Bx2xW.shape[-1]
  is_gap = columns_Bx2xW == task.NO_SYMBOL
  place = np.where(is_gap.any(-1), is_gap.argmax(-1), -1)[..., None]
  moved = np.roll(columns_Bx2xW, 1, axis=-1)
  moved[..., 0] = task.NO_SYMBOL
  return np.where(np.arange(width) <= place, moved, columns_Bx2xW)
