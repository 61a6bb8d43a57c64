"""What every task with tokens must do, whatever the task."""

import collections
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from tasks import task as task_lib

BATCH_SIZE = 64
WIDTH, LONG_WIDTH = 64, 500

String = tuple[int, ...]


@functools.cache
def _sampler(task: task_lib.TokenTask, width: int, batch_size: int):
  """Returns (seed, length) -> tokens, compiled once per width."""
  return jax.jit(
    lambda seed, length: task.sample_tokens(
      jax.random.key(seed), batch_size, length, width
    )
  )


@functools.cache
def _solver(task: task_lib.TokenTask):
  return jax.jit(task.solve)


def sample(
  task: task_lib.TokenTask,
  seed: int,
  length: int,
  width: int = WIDTH,
  batch_size: int = BATCH_SIZE,
) -> np.ndarray:
  """Returns sampled tokens [B, W]; compiled once per width and batch size."""
  sampler = _sampler(task, width, batch_size)
  return np.asarray(sampler(jnp.int32(seed), jnp.int32(length)))


def solve(task: task_lib.TokenTask, tokens: np.ndarray) -> np.ndarray:
  """Returns the task's answers; compiled once per shape."""
  return np.asarray(_solver(task)(tokens))


def right_aligned(strings: Sequence[String], width: int) -> np.ndarray:
  """Returns tokens, int32 [B, W]."""
  tokens = np.full((len(strings), width), task_lib.NO_SYMBOL, np.int32)
  for row, string in zip(tokens, strings, strict=True):
    row[width - len(string) :] = string
  return tokens


def unpadded(tokens: np.ndarray, length: int) -> np.ndarray:
  """Returns strings [B, length]; all rows must have that many symbols."""
  start = tokens.shape[1] - length
  assert np.all(tokens[:, :start] == task_lib.NO_SYMBOL)
  assert np.all(tokens[:, start:] >= 0)
  return tokens[:, start:]


def strings_of(tokens: np.ndarray, length: int) -> list[String]:
  """Returns the strings of tokens that have all that many symbols."""
  return list(map(tuple, unpadded(tokens, length).tolist()))


def string_of(row: np.ndarray) -> String:
  """Returns a right-aligned row's symbols."""
  length = int(np.sum(row != task_lib.NO_SYMBOL))
  return strings_of(row[None], length)[0]


def assert_answers(
  task: task_lib.TokenTask,
  solver: Callable[[String], int | String],
  strings: Sequence[String],
  width: int,
) -> None:
  """Checks the answers to strings of any lengths.

  Args:
    task: The task.
    solver: An independent one: a string to its answer, an int if single.
    strings: The strings; answered in batches of one size, compiled once.
    width: The padded width.
  """
  for start in range(0, len(strings), BATCH_SIZE):
    batch = strings[start : start + BATCH_SIZE]
    filled = [*batch, *batch[-1:] * (BATCH_SIZE - len(batch))]
    answers = solve(task, right_aligned(filled, width))
    assert answers.dtype == np.int32
    for string, answer in zip(batch, answers[: len(batch)], strict=True):
      expected = solver(string)
      if isinstance(expected, int):
        assert answer.shape == ()
        assert answer == expected, string
        assert 0 <= expected < task.output_size
      else:
        assert len(answer) == task.output_length(width)
        assert len(expected) == task.output_length(len(string))
        assert string_of(answer) == expected, string
        assert max(expected) < task.output_size


def assert_solves(
  task: task_lib.TokenTask,
  solver: Callable[[String], int | String],
  length: int,
  width: int,
) -> None:
  """Checks sampled strings' lengths, symbols and answers.

  Args:
    task: The task.
    solver: See `assert_answers`.
    length: The strings'.
    width: The padded width.
  """
  tokens = sample(task, length, length, width)
  assert tokens.shape == (BATCH_SIZE, width)
  assert tokens.dtype == np.int32
  symbols = unpadded(tokens, task.input_length(length))
  assert symbols.max() < task.input_size
  assert_answers(task, solver, strings_of(tokens, symbols.shape[1]), width)


def assert_independent_of_width(
  task: task_lib.TokenTask, length: int, width: int = WIDTH
) -> None:
  """Checks that strings and answers are the same unpadded."""
  bare_width = task.input_length(length)
  padded_tokens = sample(task, 7, length, width)
  tokens = sample(task, 7, length, bare_width)
  np.testing.assert_array_equal(tokens, unpadded(padded_tokens, bare_width))
  answers, padded_answers = solve(task, tokens), solve(task, padded_tokens)
  if answers.ndim > 1:
    padded_answers = unpadded(padded_answers, task.output_length(bare_width))
  np.testing.assert_array_equal(answers, padded_answers)


def assert_changes_with_the_key(task: task_lib.TokenTask) -> None:
  """Checks that another key gives other strings."""
  assert np.any(sample(task, 1, 40) != sample(task, 2, 40))


def p_value(
  outcomes: Iterable[Hashable], probabilities: Mapping[Hashable, float]
) -> float:
  """Returns a chi-square test's p-value; what is impossible must not occur.

  Args:
    outcomes: What was drawn; or the counts, a mapping.
    probabilities: Of all possible outcomes. Rare ones are put together, so that
      at least five of each are expected.
  """
  counts = collections.Counter(outcomes)
  assert math.isclose(sum(probabilities.values()), 1.0)
  possible = {o: p for o, p in probabilities.items() if p > 0}
  assert set(counts) <= set(possible)
  observed, expected = [], []
  for outcome in sorted(possible, key=possible.get):
    if not expected or expected[-1] >= 5:
      observed.append(0)
      expected.append(0.0)
    observed[-1] += counts[outcome]
    expected[-1] += possible[outcome] * counts.total()
  if len(possible) == 1:
    return 1.0
  assert len(expected) > 1 and expected[-1] >= 5, 'Too few samples.'
  return stats.chisquare(observed, expected).pvalue


def assert_fits(
  outcomes: Iterable[Hashable], probabilities: Mapping[Hashable, float]
) -> None:
  """Checks outcomes against their probabilities; see `p_value`."""
  assert p_value(outcomes, probabilities) > 1e-4


def uniform_over(outcomes: Iterable[Hashable]) -> dict[Hashable, float]:
  """Returns equal probabilities of different outcomes."""
  outcomes = list(outcomes)
  assert len(set(outcomes)) == len(outcomes)
  return dict.fromkeys(outcomes, 1 / len(outcomes))


def sampled_strings(task: task_lib.TokenTask, length: int) -> list[String]:
  """Returns many strings of up to 16 symbols."""
  tokens = sample(task, 0, length, width=16, batch_size=1 << 15)
  return strings_of(tokens, task.input_length(length))


def assert_distributed(
  task: task_lib.TokenTask, probabilities: Mapping[String, float]
) -> None:
  """Checks the distribution over all strings of one length."""
  length = len(next(iter(probabilities)))
  assert_fits(sampled_strings(task, length), probabilities)


def _reference_mask(target: np.ndarray) -> np.ndarray:
  """Returns 1.0 up to each output's terminator, by the definition."""
  mask = np.zeros(target.shape[:-1])
  for row, row_mask in zip(target, mask, strict=True):
    for place, vector in enumerate(row):
      if not vector.any():
        continue
      row_mask[place] = 1.0
      if vector.argmax() == 2:
        break
  return mask


def assert_masks_after_terminator(task: task_lib.TokenTask) -> None:
  """Checks the accuracy mask on padded and on unpadded outputs."""
  rng = np.random.default_rng(0)
  mask_fn = jax.jit(task.accuracy_mask)
  for length in (1, 9):
    for padding in (0, 4):
      outputs = np.zeros((40, length), np.int32)
      for row, end in zip(outputs, rng.integers(0, length, 40), strict=True):
        row[:end] = rng.integers(0, 2, end)
        row[end] = 2
      tokens = right_aligned(list(map(tuple, outputs)), length + padding)
      target = np.asarray(jax.nn.one_hot(tokens, task.output_size))
      np.testing.assert_array_equal(mask_fn(target), _reference_mask(target))
  # And on the task's own outputs.
  for length in (1, 2, 3, 40):
    answers = solve(task, sample(task, 3, length))
    target = np.asarray(jax.nn.one_hot(answers, task.output_size))
    mask = mask_fn(target)
    np.testing.assert_array_equal(mask, _reference_mask(target))
    assert np.all(np.max(mask * (answers == 2), axis=-1) == 1.0)
