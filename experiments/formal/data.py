"""Where batches come from: the device for our tasks, the host for users' own.

A source streams what the host has to hand to each compiled step, and turns it,
inside the step, into the batch.
"""

import collections
from collections.abc import Iterable, Iterator, Sequence
import concurrent.futures
import dataclasses
import random
from typing import Any, Protocol

import chex
import jax
import jax.numpy as jnp
import numpy as np

from experiments.formal import blame, buckets
from tasks import task as task_lib
from tasks.strings import strings_task

# Batches that the host prepares ahead of the device.
_PREFETCHED = 4


def is_single_output(task: task_lib.GeneralizationTask) -> bool:
  """Whether a task's outputs are one symbol and have no axis for it.

  Told as the benchmark tells it, by the output of an input of 10 symbols.
  """
  return task.output_length(10) == 1


def input_length(task: task_lib.GeneralizationTask, length: int) -> int:
  """Returns how many symbols the task's strings have at a length."""
  if isinstance(task, task_lib.TokenTask):
    return task.input_length(length)
  return length


def symbols(task: task_lib.GeneralizationTask) -> list[str]:
  """Returns how a task's symbols are written, by number where it has no names.

  A symbol that the task never samples may have none.
  """
  names = []
  if isinstance(task, task_lib.TokenTask | strings_task.StringsTask):
    names += task.input_symbols
  return names + [str(v) for v in range(len(names), task.input_size)]


def separator(symbols: Sequence[str]) -> str:
  """Returns what stands between symbols: a space where one is long."""
  return ' ' if max(map(len, symbols)) > 1 else ''


def output_length(task: task_lib.GeneralizationTask, num_symbols: int) -> int:
  """Returns how many output symbols the task has for so many input symbols.

  Raises:
    blame.UserCodeError: If the task cannot tell.
  """
  with blame.blamed(blame.method(task, 'output_length', num_symbols)):
    return task.output_length(num_symbols)


def target_shape(
  task: task_lib.GeneralizationTask, batch_size: int, num_symbols: int
) -> tuple[int, ...]:
  """Returns the shape of the one-hot targets of strings.

  Args:
    task: Whose.
    batch_size: Number of strings, B.
    num_symbols: Of each, padding included.

  Returns:
    (B, output_length(num_symbols), classes), or (B, classes) for tasks with a
    single output.

  Raises:
    blame.UserCodeError: As `output_length`.
  """
  if is_single_output(task):
    return batch_size, task.output_size
  return batch_size, output_length(task, num_symbols), task.output_size


def padded_target(
  task: task_lib.GeneralizationTask,
  target: np.ndarray,
  num_symbols: int,
  width: int,
) -> np.ndarray:
  """Returns the answers of strings as those of the strings padded to a width.

  Args:
    task: With several answers.
    target: [B, output_length(num_symbols), classes].
    num_symbols: Of the strings.
    width: To which they are padded.

  Returns:
    [B, output_length(width), classes], right-aligned, zeros before the start.

  Raises:
    blame.UserCodeError: If there are fewer than without padding.
  """
  missing = output_length(task, width) - target.shape[1]
  if missing < 0:
    raise blame.UserCodeError(
      f'{blame.method(task, "output_length")} must not fall: it is'
      f' {target.shape[1]} at {num_symbols}, {target.shape[1] + missing} at'
      f' {width}.'
    )
  return np.pad(target, ((0, 0), (missing, 0), (0, 0)))


class Source(Protocol):
  """Batches of one task.

  Attributes:
    run_axis: The axis of runs in the host's data, or None if runs share it.
  """

  run_axis: int | None

  def stream(
    self, seeds: Sequence[int], steps: Iterable[tuple[int, int]]
  ) -> Iterator[tuple[int, Any]]:
    """Yields each step's bucket width and its data from the host.

    Args:
      seeds: Of the runs.
      steps: Number and string length of each step; with the seed, all that the
        data depends on.
    """

  def batch(
    self, rng: chex.PRNGKey, host_data: Any, width: int
  ) -> tuple[jax.Array, jax.Array]:
    """Returns one run's tokens and one-hot targets, traceable.

    Args:
      rng: Of the run and the step.
      host_data: What `stream` yielded, without the axis of runs.
      width: Static width W.

    Returns:
      Tokens [B, W]; targets [B, output_length(W), classes], right-aligned, all
      zeros before the start, or [B, classes] for tasks with a single output.
    """


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceSource:
  """A `TokenTask`, sampled inside the compiled step from the length alone.

  Attributes:
    task: What to sample.
    batch_size: Number of strings, B.
    widths: Ascending widths of the buckets.
  """

  task: task_lib.TokenTask
  batch_size: int
  widths: Sequence[int]
  run_axis = None

  def stream(self, seeds, steps):
    """See `Source`."""
    del seeds
    for _, length in steps:
      width = buckets.bucket_of(self.task.input_length(length), self.widths)
      yield width, np.int32(length)

  def batch(self, rng, host_data, width):
    """See `Source`."""
    task = self.task
    with blame.blamed(f'{blame.method(task, "sample_tokens")}, width {width}'):
      tokens = task.sample_tokens(rng, self.batch_size, host_data, width)
    with blame.blamed(f'{blame.method(task, "solve")}, width {width}'):
      answers = task.solve(tokens)
    target = jax.nn.one_hot(answers, task.output_size)
    return tokens, target.reshape(target_shape(task, self.batch_size, width))


@dataclasses.dataclass(frozen=True, eq=False)
class HostSource:
  """A task with the benchmark's interface only, sampled in Python.

  Attributes: as those of `DeviceSource`.
  """

  task: task_lib.GeneralizationTask
  batch_size: int
  widths: Sequence[int]
  run_axis = 0

  def stream(self, seeds, steps):
    """See `Source`; a thread prepares batches ahead of the device."""
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
      pending = collections.deque()
      for step, length in steps:
        pending.append(executor.submit(self._sample, seeds, step, length))
        if len(pending) > _PREFETCHED:
          yield pending.popleft().result()
      while pending:
        yield pending.popleft().result()

  def batch(self, rng, host_data, width):
    """See `Source`."""
    del rng, width
    return host_data

  def _sample(self, seeds, step, length):
    """Returns the width and the batches of all runs.

    Tasks that draw from the global generators of `random` and NumPy are
    repeatable too: those are seeded before every batch.
    """
    batches = []
    kept = random.getstate(), np.random.get_state()
    try:
      for seed in seeds:
        random.seed(f'{seed} {step}')
        np.random.seed(np.random.SeedSequence((seed, step)).generate_state(4))
        rng = jax.random.fold_in(jax.random.key(seed), step)
        with blame.blamed(blame.method(self.task, 'sample_batch', length)):
          batch = self.task.sample_batch(rng, self.batch_size, length)
          batches.append(self._padded(jax.device_get(batch), length))
    finally:
      random.setstate(kept[0])
      np.random.set_state(kept[1])
    tokens, target = jax.tree.map(lambda *x: np.stack(x), *batches)
    return tokens.shape[-1], (tokens, target)

  def _padded(
    self, batch: task_lib.Batch, length: int
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns tokens and targets, right-aligned in the width of their bucket.

    Raises:
      blame.UserCodeError: If the batch is not what the task's other methods
        say.
    """
    task = self.task
    where = blame.method(task, 'sample_batch', length)
    one_hot, target = np.asarray(batch['input']), np.asarray(batch['output'])
    num_symbols = one_hot.shape[1] if one_hot.ndim == 3 else length
    shape = target_shape(task, self.batch_size, num_symbols)
    if is_single_output(task) and target.ndim == 3:
      shape = (shape[0], 1, shape[1])
    for name, array, wanted in (
      ('input', one_hot, (self.batch_size, num_symbols, task.input_size)),
      ('output', target, shape),
    ):
      if array.shape != wanted:
        raise blame.UserCodeError(
          f'{where}: {name} has shape {array.shape}, not {wanted}.'
        )
      if not (np.isin(array, (0, 1)).all() and (array.sum(-1) == 1).all()):
        raise blame.UserCodeError(f'{where}: {name} is not one-hot.')
    width = buckets.bucket_of(num_symbols, self.widths)
    tokens = np.pad(
      np.argmax(one_hot, axis=-1).astype(np.int32),
      ((0, 0), (width - num_symbols, 0)),
      constant_values=task_lib.NO_SYMBOL,
    )
    target = target.astype(np.float32)
    if is_single_output(task):
      return tokens, target.reshape(self.batch_size, task.output_size)
    return tokens, padded_target(task, target, num_symbols, width)


@dataclasses.dataclass(frozen=True, eq=False)
class StringsSource:
  """Strings of a file, drawn on the host, each run's by its own seed.

  Attributes: as those of `DeviceSource`.
  """

  task: strings_task.StringsTask
  batch_size: int
  widths: Sequence[int]
  run_axis = 0

  def stream(self, seeds, steps):
    """See `Source`."""
    for step, length in steps:
      width = buckets.bucket_of(length, self.widths)
      groups = [
        self.task.draw(
          np.random.default_rng((seed, step)), self.batch_size, length
        )
        for seed in seeds
      ]
      tokens, answers = map(np.stack, zip(*groups, strict=True))
      padding = ((0, 0), (0, 0), (width - length, 0))
      yield (
        width,
        (
          np.pad(tokens, padding, constant_values=task_lib.NO_SYMBOL),
          answers,
        ),
      )

  def batch(self, rng, host_data, width):
    """See `Source`."""
    del rng, width
    tokens, answers = host_data
    return tokens, jax.nn.one_hot(answers, self.task.output_size)


def make_source(
  task: task_lib.GeneralizationTask, batch_size: int, widths: Sequence[int]
) -> Source:
  """Returns the task's source of batches of a size, in buckets' widths."""
  kind = HostSource
  if isinstance(task, task_lib.TokenTask):
    kind = DeviceSource
  elif isinstance(task, strings_task.StringsTask):
    kind = StringsSource
  return kind(task, batch_size, widths)


def of_one_run(source: Source, host_data: Any) -> Any:
  """Returns what a stream of one seed yields, without the axis of runs."""
  if source.run_axis is None:
    return host_data
  return jax.tree.map(lambda x: x[0], host_data)


def samples(
  task: task_lib.GeneralizationTask,
  num_strings: int,
  lengths: Sequence[int],
  seed: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Yields strings and their answers for each length.

  Args:
    task: Whose.
    num_strings: Of each length, B.
    lengths: In any order; a task may have other numbers of symbols.
    seed: Of the strings.

  Yields:
    Tokens [B, W] and targets, as `Source.batch` returns them, W the width that
    the longest need.
  """
  width = max(input_length(task, length) for length in lengths)
  source = make_source(task, num_strings, [width])
  batch = jax.jit(source.batch, static_argnums=2)
  stream = source.stream([seed], ((length, length) for length in lengths))
  for length, (_, host_data) in zip(lengths, stream, strict=True):
    rng = jax.random.fold_in(jax.random.key(seed), length)
    yield jax.device_get(batch(rng, of_one_run(source, host_data), width))


def present(target: jax.Array) -> jax.Array:
  """Returns 1.0 where a one-hot target has a symbol, else 0.0."""
  return jnp.any(target != 0, axis=-1).astype(jnp.float32)
