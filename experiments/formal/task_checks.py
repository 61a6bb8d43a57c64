"""Whether a user's task does what it says, told on concrete batches.

What is compiled looks at no values: symbols and classes out of range would be
trained on as if they were none, and NumPy's random numbers drawn once for all.

Letters: B batch, W padded width, N symbols or answers of a string.
"""

from collections.abc import Iterator, Sequence
import inspect
import operator
import reprlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.engine import estimates, options, progress
from experiments.formal import blame, data
from tasks import task as task_lib
from tasks.regular import regular_task

# Up to this length all are asked for, and some of those above.
_ALL_LENGTHS = 1000
# Of symbols and answers, whose names are listed.
_MAX_SIZE = 2**20
# Columns that answers must not depend on.
_PADDING = 3
_KINDS = {np.integer: 'whole numbers', np.floating: 'floats'}


def check(
  task: task_lib.GeneralizationTask,
  batch_size: int,
  length: int,
  shortest: int = 1,
) -> None:
  """Samples, answers and scores batches of two lengths.

  Says so if the task will be compiled for every length.

  Args:
    task: A user's task.
    batch_size: B, of the training.
    length: Of the longest training string.
    shortest: Length of the shortest string that is asked for.

  Raises:
    blame.UserCodeError: If a method fails, or returns what it must not; it says
      the class, the method and the length.
    ValueError: If a batch does not fit into memory.
  """
  estimates.check(  # They are sampled, as they would be in training.
    f'{batch_size:,} strings of {length:,} symbols',
    batch_size * length * estimates.TOKEN_BYTES,
    'batch_size or sequence_length',
    room=estimates.host_memory(),
  )
  _check_sizes(task, length)
  lengths = sorted({shortest, length})
  if isinstance(task, task_lib.TokenTask):
    targets = _device_targets(task, batch_size, lengths)
  else:
    targets = _host_targets(task, batch_size, lengths)

  @jax.jit
  def score(target):
    return _score(task, target, length)

  for n, target in targets:
    with blame.blamed(f'The score of {type(task).__name__}, length {n}'):
      scores = jax.device_get(score(target))
    for name, values in scores.items():
      where = blame.method(task, name, n)
      if not all(np.isfinite(x).all() for x in jax.tree.leaves(values)):
        raise blame.UserCodeError(
          f'{where}: it, or its gradient, is not finite.'
        )
      if name == 'accuracy_mask' and n == length and not values.any():
        raise blame.UserCodeError(f'{where}: no output symbol counts.')
      if name != 'pointwise_loss_fn' and (np.abs(values - 0.5) > 0.5).any():
        raise blame.UserCodeError(f'{where}: its values must be 0 to 1.')


def _check_sizes(task: task_lib.GeneralizationTask, length: int) -> None:
  """Checks what models are built from."""
  for name in ('input_size', 'output_size'):
    where = blame.method(task, name)
    with blame.blamed(where):
      # Of one answer nothing is to be learned.
      _check_whole(
        where, getattr(task, name), 2 if name == 'output_size' else 1, _MAX_SIZE
      )
  names = {'output_length': 0}
  if isinstance(task, task_lib.TokenTask):
    names['input_length'] = 1
    where = blame.method(task, 'input_symbols')
    with blame.blamed(where):
      symbols = list(task.input_symbols)
    if not all(isinstance(symbol, str) for symbol in symbols):
      raise blame.UserCodeError(
        f'{where}: they must be strings, got {symbols!r}.'
      )
  for name, minimum in names.items():
    # `data.is_single_output` asks for 10.
    for n in _lengths(length):
      where = blame.method(task, name, n)
      with blame.blamed(where):
        _check_whole(where, getattr(task, name)(n), minimum)
  if isinstance(task, regular_task.RegularTask):
    with blame.blamed(blame.method(task, 'machine')):
      _ = task.machine


def _lengths(longest: int) -> list[int]:
  """Returns all short lengths, 10 among them, some longer ones, the longest."""
  powers = [2**i for i in range(longest.bit_length())]
  short = range(1, max(10, min(longest, _ALL_LENGTHS)) + 1)
  return sorted({*short, *powers, longest})


def _check_whole(
  where: str, value: Any, minimum: int, maximum: int = options.MAX_INT
) -> None:
  is_whole = hasattr(value, '__index__') and not isinstance(value, bool)
  if not is_whole or not minimum <= operator.index(value) <= maximum:
    raise blame.UserCodeError(
      f'{where}: it must be a whole number, {minimum} to {maximum:,}, got'
      f' {reprlib.repr(value).splitlines()[0]}.'
    )


def _host_targets(
  task: task_lib.GeneralizationTask, batch_size: int, lengths: Sequence[int]
) -> Iterator[tuple[int, np.ndarray]]:
  """Yields lengths and targets of a task that is sampled in Python."""
  if hasattr(inspect.getattr_static(task, 'sample_batch'), 'lower'):
    progress.say(
      f'{blame.method(task, "sample_batch")} is inside jax.jit, and will be'
      ' compiled anew for every length. With NumPy and without jax.jit it is'
      ' not; as a tasks.task.TokenTask it is compiled once for many lengths.'
    )
  source = data.HostSource(task, batch_size, lengths[-1:])
  stream = source.stream([0], ((0, n) for n in lengths))
  for n, (_, (_, target)) in zip(lengths, stream, strict=True):
    yield n, target[0]


def _device_targets(
  task: task_lib.TokenTask, batch_size: int, lengths: Sequence[int]
) -> Iterator[tuple[int, np.ndarray]]:
  """Yields lengths and targets of a task that is sampled when compiled."""
  width = max(task.input_length(n) for n in lengths)
  is_single = data.is_single_output(task)
  answer_shapes = [(batch_size, data.output_length(task, width))]
  if is_single:
    answer_shapes.insert(0, (batch_size,))

  @jax.jit
  def sample(rng, length):
    def tokens():
      return _called(
        task, 'sample_tokens', lengths[-1], rng, batch_size, length, width
      )

    # The second time no work, but for what it draws from elsewhere.
    first, second = tokens(), tokens()
    wider = jnp.pad(
      first, ((0, 0), (_PADDING, 0)), constant_values=task_lib.NO_SYMBOL
    )
    where = blame.method(task, 'sample_tokens', lengths[-1])
    _check_array(where, first, [(batch_size, width)], np.integer)
    answers = _called(task, 'solve', lengths[-1], first)
    where = blame.method(task, 'solve', lengths[-1])
    _check_array(where, answers, answer_shapes, np.integer)
    again = [
      _called(task, 'solve', lengths[-1], tokens) for tokens in (first, wider)
    ]
    return first, second, answers, again

  for n in lengths:
    where = blame.method(task, 'sample_tokens', n)
    with blame.blamed(where):
      tokens, redrawn, answers, (again, padded) = jax.device_get(
        sample(jax.random.key(0), np.int32(n))
      )
    if (tokens != redrawn).any():
      raise blame.UserCodeError(
        f'{where}: two calls with the same rng differ; it must draw with'
        ' jax.random, from rng alone.'
      )
    num_symbols = task.input_length(n)
    _check_values(where, tokens, 'symbols', task.input_size, num_symbols)
    where = blame.method(task, 'solve', n)
    if (answers != again).any():
      raise blame.UserCodeError(
        f'{where}: two calls with the same tokens differ; answers must depend'
        ' on the tokens alone.'
      )
    answers = answers.reshape(batch_size, -1)
    padded = padded.reshape(batch_size, -1)
    if padded.shape[1] < answers.shape[1]:
      raise blame.UserCodeError(
        f'{where}: there are fewer answers to a string where'
        f' {task_lib.NO_SYMBOL} stands before it more often.'
      )
    if (padded[:, padded.shape[1] - answers.shape[1] :] != answers).any():
      raise blame.UserCodeError(
        f'{where}: answers differ where {task_lib.NO_SYMBOL} stands before a'
        ' string more often; they must depend on its symbols alone.'
      )
    num_answers = 1 if is_single else data.output_length(task, num_symbols)
    _check_values(where, answers, 'answers', task.output_size, num_answers)
    target = answers[..., None] == np.arange(task.output_size)
    yield n, np.float32(target[:, 0] if is_single else target)


def _called(
  task: task_lib.GeneralizationTask, name: str, length: int, *arguments
) -> jax.Array:
  with blame.blamed(blame.method(task, name, length)):
    return jnp.asarray(getattr(task, name)(*arguments))


def _check_array(
  where: str,
  array: jax.Array,
  shapes: Sequence[tuple[int, ...]],
  kind: type = np.generic,
) -> None:
  """Checks the shape and kind of an array, which may be traced."""
  if array.shape not in shapes:
    raise blame.UserCodeError(
      f'{where}: it has shape {array.shape}, not'
      f' {" or ".join(map(str, shapes))}.'
    )
  if not jnp.issubdtype(array.dtype, kind):
    raise blame.UserCodeError(
      f'{where}: it is of {array.dtype}, not of {_KINDS[kind]}.'
    )


def _check_values(
  where: str, values_BxN: np.ndarray, what: str, number: int, length: int
) -> None:
  """Checks right-aligned symbols or answers of one length."""
  is_none = values_BxN == task_lib.NO_SYMBOL
  wrong = values_BxN[((values_BxN < 0) | (values_BxN >= number)) & ~is_none]
  if wrong.size:
    raise blame.UserCodeError(
      f'{where}: {what} must be 0 to {number - 1}, got {wrong[0]}.'
    )
  first = values_BxN.shape[1] - length
  if (is_none != (np.arange(values_BxN.shape[1]) < first)).any():
    raise blame.UserCodeError(
      f'{where}: each string must have {length} {what}, right-aligned, and'
      f' {task_lib.NO_SYMBOL} before them.'
    )


def _score(
  task: task_lib.GeneralizationTask, target: jax.Array, length: int
) -> dict[str, Any]:
  """Returns what the task makes of random logits, by the method's name."""
  logits = jax.random.normal(jax.random.key(0), target.shape)

  def loss_fn(logits):
    losses = _called(task, 'pointwise_loss_fn', length, logits, target)
    where = blame.method(task, 'pointwise_loss_fn', length)
    shapes = [target.shape, (*target.shape[:-1], 1)]
    _check_array(where, losses, shapes, np.floating)
    return losses.sum()

  with blame.blamed(blame.method(task, 'pointwise_loss_fn', length)):
    scores = {'pointwise_loss_fn': jax.value_and_grad(loss_fn)(logits)}
  for name, arguments in (
    ('accuracy_fn', (logits, target)),
    ('accuracy_mask', (target,)),
  ):
    scores[name] = _called(task, name, length, *arguments)
    where = blame.method(task, name, length)
    _check_array(where, scores[name], [target.shape[:-1]])
  return scores
