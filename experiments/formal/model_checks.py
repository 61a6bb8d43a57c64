"""Whether a user's model does what it must, told on a few short strings.

Letters: B batch, W padded width.
"""

from collections.abc import Sequence
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

from experiments.engine import estimates
from experiments.formal import blame, data, models
from tasks import task as task_lib

# Strings that are tried, their length, and how much further they are padded.
_BATCH_SIZE, _LENGTH, _PADDING = 16, 3, 7
# Added to initial parameters, of which some are often 0: then nothing shows.
_NOISE = 0.1
# Of the largest logit: sums in another order differ by less.
_TOLERANCE = 1e-3


def check(
  name: str,
  model: models.Model,
  task: task_lib.GeneralizationTask,
  widths: Sequence[int],
  is_autoregressive: bool,
) -> None:
  """Initializes a model, and lets it answer the same strings padded otherwise.

  Args:
    name: Of the model, for the errors.
    model: The model.
    task: What it is for.
    widths: Some that it will meet; only shapes are asked for there.
    is_autoregressive: Whether it reads the answers before the one it gives.

  Raises:
    ValueError: If its parameters cannot fit.
    blame.UserCodeError: If it fails, has no parameters or none that can be
      trained, or if its answers have another shape, are not finite, or depend
      on the padding or on answers to come.
  """
  initializing = f'{name}, its parameters'
  with blame.blamed(initializing):
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    _check_parameters(shapes)
  estimates.check(
    f'The parameters of {name}', estimates.of_arrays(shapes), 'model'
  )
  test = jax.jit(functools.partial(model.apply, is_test=True))
  for width in sorted(set(widths)):
    tokens, target = _batch(task, 1, 1, width)
    with blame.blamed(f'{name}, width {width}'):
      jax.eval_shape(test, shapes, tokens, target)
      jax.eval_shape(model.apply, shapes, tokens, target, rng=jax.random.key(0))
  with blame.blamed(initializing):
    params = jax.jit(_noisy(model))(jax.random.key(0))
    _check_finite('some of them', params)
  with blame.blamed(f'{name}, strings of length {_LENGTH}'):
    batch = _batch(task, _BATCH_SIZE, _LENGTH, _LENGTH)
    bare = np.asarray(test(params, *batch))
    _check_finite('some of its logits', bare)
    padded = _batch(task, _BATCH_SIZE, _LENGTH, _LENGTH + _PADDING)
    difference = _difference(bare, test(params, *padded), padded[1])
    if difference > _TOLERANCE:
      raise blame.UserCodeError(
        f'{name}: its answers change, by {difference:.2g} of the largest logit,'
        f' when {_PADDING} more -1 stand before a string. They must depend on'
        ' the symbols alone: -1 is none, so pass over it, and count places from'
        " the string's end."
      )
    # One answer has none before it.
    if is_autoregressive and not data.is_single_output(task):
      # In training the answers are given, and a test would never show it.
      tokens, target = batch
      changed = np.roll(target, 1, axis=-1)
      changed[:, :1] = target[:, :1]
      apply = functools.partial(model.apply, is_test=False)
      logits, after = (apply(params, tokens, y) for y in (target, changed))
      if _difference(logits[:, :2], after[:, :2], target[:, :2]) > _TOLERANCE:
        raise blame.UserCodeError(
          f'{name}: with --is_autoregressive an answer must depend on those'
          ' before it alone, and depends on later ones.'
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
  if not sum(leaf.size for leaf in leaves):
    raise ValueError('there are none, and so nothing to train.')
  for leaf in leaves:
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
