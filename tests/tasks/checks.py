"""What every task with tokens must do, whatever the task."""

from collections.abc import Callable, Mapping, Sequence
import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from tasks import task as task_lib

BATCH_SIZE = 64
WIDTH, LONG_WIDTH = 64, 500

String = tuple[int, ...]


@functools.cache
def sample_and_solve(
  task: task_lib.TokenTask, width: int
) -> Callable[[int, int], tuple[np.ndarray, np.ndarray]]:
  """Returns (seed, length) -> (tokens, answers), compiled once per width."""

  @jax.jit
  def run(seed, length):
    tokens = task.sample_tokens(jax.random.key(seed), BATCH_SIZE, length, width)
    return tokens, task.solve(tokens)

  def on_host(seed, length):
    return jax.tree.map(np.asarray, run(jnp.int32(seed), jnp.int32(length)))

  return on_host


@functools.cache
def solver(task: task_lib.TokenTask) -> Callable[[np.ndarray], np.ndarray]:
  """Returns the task's `solve`, compiled."""
  return jax.jit(task.solve)


def right_aligned(strings: Sequence[String], width: int) -> np.ndarray:
  """Returns tokens, int32 [B, W]."""
  tokens = np.full((len(strings), width), task_lib.NO_SYMBOL, np.int32)
  for row, string in zip(tokens, strings, strict=True):
    row[width - len(string) :] = string
  return tokens


def string_of(row: np.ndarray) -> String:
  """Returns a right-aligned row's symbols."""
  symbols = tuple(int(symbol) for symbol in row if symbol >= 0)
  # Whatever is not a symbol comes first.
  assert np.all(row[: len(row) - len(symbols)] == task_lib.NO_SYMBOL)
  return symbols


def assert_solves(
  task: task_lib.TokenTask,
  solve: Callable[[String], int | String],
  length: int,
  width: int,
) -> None:
  """Checks sampled strings' lengths, symbols and answers.

  Args:
    task: The task.
    solve: An independent solver: a string to its answer, an int if single.
    length: The strings'.
    width: The padded width.
  """
  tokens, answers = sample_and_solve(task, width)(length, length)
  assert tokens.shape == (BATCH_SIZE, width)
  assert tokens.dtype == answers.dtype == np.int32
  for row, answer in zip(tokens, answers, strict=True):
    string = string_of(row)
    assert len(string) == length
    assert max(string) < task.input_size
    expected = solve(string)
    if isinstance(expected, int):
      assert answer.shape == ()
      assert answer == expected, string
      assert 0 <= expected < task.output_size
    else:
      assert len(answer) == task.output_length(width)
      assert len(expected) == task.output_length(length)
      assert string_of(answer) == expected, string
      assert max(expected) < task.output_size


def assert_independent_of_width(
  task: task_lib.TokenTask, length: int, width: int = WIDTH
) -> None:
  """Checks that strings and answers are the same unpadded."""
  padded_tokens, padded_answers = sample_and_solve(task, width)(7, length)
  tokens, answers = sample_and_solve(task, length)(7, length)
  np.testing.assert_array_equal(tokens, padded_tokens[:, -length:])
  if answers.ndim > 1:
    padded_answers = padded_answers[:, -task.output_length(length) :]
  np.testing.assert_array_equal(answers, padded_answers)


def assert_fits(counts: Sequence[int], probabilities: Sequence[float]) -> None:
  """Checks counts against their probabilities (chi-square)."""
  counts, probabilities = np.asarray(counts), np.asarray(probabilities)
  np.testing.assert_allclose(probabilities.sum(), 1.0, rtol=1e-9)
  if len(counts) == 1:
    return
  expected = counts.sum() * probabilities
  assert expected.min() >= 5, 'Too few samples for the test.'
  assert stats.chisquare(counts, expected).pvalue > 1e-3


@functools.cache
def _sampler(task: task_lib.TokenTask) -> Callable[[int], jax.Array]:
  """Returns length -> many strings, compiled once."""
  return jax.jit(
    lambda length: task.sample_tokens(jax.random.key(0), 1 << 15, length, 16)
  )


def sampled_strings(task: task_lib.TokenTask, length: int) -> list[String]:
  """Returns many strings of up to 16 symbols."""
  return [string_of(row) for row in np.asarray(_sampler(task)(length))]


def assert_distributed(
  task: task_lib.TokenTask, probabilities: Mapping[String, float]
) -> None:
  """Checks the distribution over all strings of one length."""
  length = len(next(iter(probabilities)))
  counts = dict.fromkeys(probabilities, 0)
  for string in sampled_strings(task, length):
    counts[string] += 1  # A KeyError is a string that must not occur.
  assert_fits(list(counts.values()), list(probabilities.values()))


def reference_mask(target: np.ndarray) -> np.ndarray:
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
      np.testing.assert_array_equal(mask_fn(target), reference_mask(target))
  # And on the task's own outputs.
  for length in (1, 2, 3, 40):
    answers = sample_and_solve(task, WIDTH)(3, length)[1]
    target = np.asarray(jax.nn.one_hot(answers, task.output_size))
    mask = mask_fn(target)
    np.testing.assert_array_equal(mask, reference_mask(target))
    assert np.all(np.max(mask * (answers == 2), axis=-1) == 1.0)
