"""Whether a user's model does what it must, told on a few short strings.

Letters: B batch, W padded width.
"""

from collections.abc import Callable, Sequence
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

from experiments.engine import estimates
from experiments.formal import blame, data, models
from tasks import task as task_lib

# Strings that are tried, their length, how many of them are tried again in a
# smaller batch, and how much further they are padded at least.
_BATCH_SIZE, _LENGTH, _PART, _PADDING = 16, 3, 5, 7
# Added to initial parameters, of which some are often 0: then nothing shows.
_NOISE = 0.1
# Of the largest logit: sums in another order differ by less, in bfloat16 too.
_TOLERANCE = 1e-2


def check(
  name: str,
  model: models.Model,
  task: task_lib.GeneralizationTask,
  widths: Sequence[int],
  is_autoregressive: bool,
) -> None:
  """Initializes a model, and lets it answer the same strings otherwise.

  They are padded further, as far as any that it will meet, and are fewer, in
  other places of the batch.

  Args:
    name: Of the model, for the errors.
    model: The model.
    task: What it is for.
    widths: Some that it will meet, the widest among them.
    is_autoregressive: Whether it reads the answers before the one it gives.

  Raises:
    ValueError: If its parameters cannot fit.
    blame.UserCodeError: If it fails, has no parameters or none that can be
      trained, or if its answers have another shape, are not finite, or depend
      on the padding, on other strings, on chance or on answers to come.
  """
  initializing = f'{name}, its parameters'
  with blame.blamed(initializing):
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    _check_parameters(shapes)
  estimates.check(
    f'The parameters of {name}', estimates.of_arrays(shapes), 'model'
  )
  apply = functools.partial(model.apply, is_test=True)
  for width in sorted(set(widths)):
    tokens, target = _batch(task, 1, 1, width)
    with blame.blamed(f'{name}, width {width}'):
      jax.eval_shape(apply, shapes, tokens, target)
      jax.eval_shape(model.apply, shapes, tokens, target, rng=jax.random.key(0))
  with blame.blamed(initializing):
    params = jax.jit(_noisy(model))(jax.random.key(0))
    _check_finite('some of them', params)
  with blame.blamed(f'{name}, strings of length {_LENGTH}'):
    reads_answers = is_autoregressive and not data.is_single_output(task)
    short, widest = _LENGTH + _PADDING, max(widths)
    wider = [width for width in (short, widest) if width >= short]
    if reads_answers:
      # Giving very many answers one by one would take long.
      taught = functools.partial(model.apply, is_test=False)
      _check_alike(name, taught, task, params, wider)
      wider = [short]
    _check_alike(name, apply, task, params, wider)
    # One answer has none before it.
    if reads_answers:
      # In training the answers are given, and a test would never show it.
      tokens, target = _batch(task, _BATCH_SIZE, _LENGTH, _LENGTH)
      changed = np.roll(target, 1, axis=-1)
      changed[:, :1] = target[:, :1]
      logits, after = (taught(params, tokens, y) for y in (target, changed))
      if _difference(logits[:, :2], after[:, :2], target[:, :2]) > _TOLERANCE:
        raise blame.UserCodeError(
          f'{name}: with --is_autoregressive an answer must depend on those'
          ' before it alone, and depends on later ones.'
        )


def _check_alike(
  name: str,
  apply: Callable[..., jax.Array],
  task: task_lib.GeneralizationTask,
  params: chex.ArrayTree,
  widths: Sequence[int],
) -> None:
  """Checks that strings have the same answers padded, and among others.

  Args:
    name: Of the model, for the errors.
    apply: From parameters, tokens and targets to logits.
    task: What it is for.
    params: The parameters.
    widths: To which strings are padded.

  Raises:
    ValueError: If logits are not finite.
    blame.UserCodeError: If they differ, with the reason.
  """

  def logits(batch):
    # A function of its own each time, which is traced anew.
    found = np.asarray(jax.jit(lambda *args: apply(*args))(params, *batch))
    width = batch[0].shape[1]
    _check_finite(f'some of its logits, of tokens of width {width},', found)
    return found

  whole = _batch(task, _BATCH_SIZE, _LENGTH, _LENGTH)
  # Most end alike, so that they are beside others than before; not all do, as
  # -1 may be taken for a symbol.
  rows = np.roll(np.lexsort(whole[0].T), -1)[-_PART:]

  def part(batch):
    return tuple(x[rows] for x in batch)

  bare = logits(whole)
  for width in sorted({*widths}):
    padded = part(_batch(task, _BATCH_SIZE, _LENGTH, width))
    difference = _difference(bare[rows], logits(padded), padded[1])
    if difference <= _TOLERANCE:
      continue
    change = f'its answers change, by {difference:.2g} times the largest logit,'
    if _difference(bare, logits(whole), whole[1]) > _TOLERANCE:
      raise blame.UserCodeError(
        f'{name}: {change} when it is called again. They must depend on the'
        ' symbols alone: not on chance, nor on what was kept of an earlier'
        ' call.'
      )
    few = part(whole)
    if _difference(bare[rows], logits(few), few[1]) > _TOLERANCE:
      raise blame.UserCodeError(
        f'{name}: {change} when other strings stand beside a string. They must'
        ' depend on its symbols alone: not on the batch, its size, or the place'
        ' in it.'
      )
    raise blame.UserCodeError(
      f'{name}: {change} when {width - _LENGTH} more -1 stand before a string.'
      ' They must depend on the symbols alone: -1 is none, so pass over it, and'
      " count places from the string's end."
    )


def _noisy(model: models.Model):
  """Returns `model.init`, to whose parameters something is added."""

  def init(rng):
    params = model.init(rng)
    leaves, treedef = jax.tree.flatten(params)
    keys = jax.random.split(rng, len(leaves))
    return treedef.unflatten(
      x + _NOISE * jax.random.normal(key, x.shape, x.dtype)
      for key, x in zip(keys, leaves, strict=True)
    )

  return init


def _check_parameters(shapes: chex.ArrayTree) -> None:
  leaves = jax.tree.leaves(shapes)
  if not leaves:
    raise ValueError('there are none, and so nothing to train.')
  for leaf in leaves:
    if not leaf.size:
      raise ValueError(
        f'one has the shape {leaf.shape}, and so no number; leave it out.'
      )
    if not jnp.issubdtype(leaf.dtype, jnp.floating):
      raise ValueError(f'they must be floats, and one is of {leaf.dtype}.')


def _check_finite(what: str, arrays: chex.ArrayTree) -> None:
  if not all(np.isfinite(x).all() for x in jax.tree.leaves(arrays)):
    raise ValueError(f'{what} are not finite.')


def _batch(
  task: task_lib.GeneralizationTask, batch_size: int, length: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns random tokens [B, W] and targets of one length, as in training."""
  rng = np.random.default_rng(0)
  tokens = np.full((batch_size, width), task_lib.NO_SYMBOL, np.int32)
  symbols = rng.integers(task.input_size, size=(batch_size, length))
  tokens[:, width - length :] = symbols
  shape = data.target_shape(task, batch_size, length)[:-1]
  answers = rng.integers(task.output_size, size=shape)
  target = np.eye(task.output_size, dtype=np.float32)[answers]
  if target.ndim == 3:
    target = data.padded_target(task, target, length, width)
  return tokens, target


def _difference(
  bare: jax.Array, padded: jax.Array, target: np.ndarray
) -> float:
  """Returns how far logits are apart, as a share of the largest.

  Args:
    bare: Logits.
    padded: Of the same strings, perhaps with others before them.
    target: Says which of these mean something.
  """
  padded = np.asarray(padded)
  if padded.ndim == 3:
    num_answers = bare.shape[1]
    padded = padded[:, padded.shape[1] - num_answers :]
    target = target[:, target.shape[1] - num_answers :]
  apart = np.abs(np.asarray(bare) - padded) * target.any(-1, keepdims=True)
  return float(apart.max(initial=0) / max(1e-6, np.abs(bare).max(initial=0)))
