"""What the baselines read after the input, and what they sample."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.baselines import (
  rnn,
  transformer,
  wrappers,
)
from tests.regulargpt_jax import small_baselines as small


def _read_by(wrap, *args):
  """Returns what a wrapped model reads, as classes with -1 for no symbol."""

  @jax.jit
  def read_by(*args):
    read = {}

    def model(x, input_length=None):
      read.update(x=x, input_length=input_length)
      return x

    wrap(model)(*args)
    return read

  read = jax.tree.map(np.asarray, read_by(*args))
  symbols = np.where(read['x'].any(-1), read['x'].argmax(-1), -1)
  assert np.all(read['x'].sum(-1) <= 1)
  return symbols.tolist(), read['input_length'].tolist()


def _one_hot(classes, num_classes):
  return jax.nn.one_hot(jnp.array(classes), num_classes)


def test_empty_tokens_follow_the_input():
  x = _one_hot([[-1, 0, 1], [1, 1, 0]], 2)
  wrap = lambda m: wrappers.make_model_with_empty_targets(m, small.Task(2))  # noqa: E731
  symbols, lengths = _read_by(wrap, x)
  assert symbols == [
    [-1, -1, -1, 0, 1, 2, 2, 2, 2],
    [1, 1, 0, 2, 2, 2, 2, 2, 2],
  ]
  assert lengths == [2, 3]
  wrap = lambda m: wrappers.make_model_with_empty_targets(m, small.Task(0), 2)  # noqa: E731
  symbols, lengths = _read_by(wrap, x)
  assert symbols == [
    [-1, -1, -1, 0, 1, 2, 2, 2, 2, 3],
    [1, 1, 0, 2, 2, 2, 2, 2, 2, 3],
  ]
  assert lengths == [2, 3]


def test_targets_follow_the_input():
  x = _one_hot([[-1, 0, 1], [1, 1, 0]], 2)
  y = _one_hot([[-1, 2, 0], [1, 0, 2]], 3)
  wrap = wrappers.make_model_with_targets_as_input
  symbols, lengths = _read_by(wrap, x, y)
  assert symbols == [[-1, -1, 0, 1, 3, 2], [1, 1, 0, 3, 1, 0]]
  assert lengths == [2, 3]
  symbols, _ = _read_by(lambda m: wrap(m, 1), x, y)
  # Classes 3 and 4 are neither input nor output symbols.
  assert symbols == [
    [-1, -1, -1, 0, 1, 3, 3, 4, 2],
    [1, 1, 0, 3, 3, 3, 4, 1, 0],
  ]


def test_sampling_reads_predictions_and_not_targets():
  def count_up(x, y):
    """Output i is one more than output i-1; the first is 2."""
    before = transformer.shift_right(y)
    return jnp.concatenate([before[..., -2:-1], before[..., :-2]], -1) + (
      before[..., -1:] * jnp.array([0, 0, 1, 0, 0])
    )

  x = _one_hot([[0, 0], [0, 0]], 1)
  y = _one_hot([[0, 0, 0, 0, 0], [-1, -1, 4, 4, 4]], 5)
  f = hk.transform(wrappers.add_sampling_to_autoregressive_model(count_up))
  sampled = small.apply(f, {}, x, y, sample=True)
  assert sampled.argmax(-1).tolist() == [[2, 3, 4, 0, 1], [0, 0, 2, 3, 4]]
  given = small.apply(f, {}, x, y, sample=False)
  assert given.argmax(-1).tolist() == [[2, 1, 1, 1, 1], [0, 0, 2, 0, 0]]


@pytest.mark.parametrize(
  'model',
  [
    rnn.make_rnn(small.O, hk.VanillaRNN, hidden_size=2),
    rnn.make_rnn(small.O, hk.VanillaRNN, True, input_window=2, hidden_size=2),
  ],
)
def test_wrappers_refuse_models_without_all_outputs(model):
  f = hk.transform(wrappers.make_model_with_empty_targets(model, small.Task(2)))
  with pytest.raises(ValueError, match='all its outputs'):
    jax.eval_shape(f.init, jax.random.key(0), small.strings([3], 3))
