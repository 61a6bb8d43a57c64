"""RegularGPT as a function for Haiku, under the benchmark's signature."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config, haiku_model, model
from regulargpt_jax.baselines import wrappers
from tasks.dcf import reverse_string
from tasks.regular import parity_check

_PARAMS = {'embedding_dim': 8, 'num_heads': 2, 'chunk_size': 3}


def _strings(length, width):
  task = parity_check.ParityCheck()
  sample = jax.jit(task.sample_tokens, static_argnums=(1, 2, 3))
  return sample(jax.random.key(0), 4, length, width)


def _batch(task, length):
  batch = jax.jit(task.sample_batch, static_argnums=(1, 2))
  return batch(jax.random.key(0), 4, length)


@pytest.mark.parametrize('return_all_outputs', [True, False])
def test_equals_the_flax_module(return_all_outputs):
  tokens = _strings(5, 7)
  x = jax.nn.one_hot(tokens, 2)
  builder = haiku_model.make_regular_gpt(
    output_size=2, return_all_outputs=return_all_outputs, **_PARAMS
  )
  transformed = hk.transform(builder)
  params = jax.jit(transformed.init)(jax.random.key(1), x)
  logits = jax.jit(transformed.apply)(params, None, x)
  module = model.RegularGPT(config.make_config('benchmark', 2, 2, **_PARAMS))
  own = jax.eval_shape(module.init, jax.random.key(1), tokens)
  assert hk.data_structures.tree_size(params) == sum(
    leaf.size for leaf in jax.tree.leaves(own)
  )
  # The same numbers from the same parameters, carried over by name.
  ((_, flat),) = params.items()
  nested = {}
  for path, value in flat.items():
    *folders, name = path.split('/')
    inner = nested
    for folder in folders:
      inner = inner.setdefault(folder, {})
    inner[name] = value
  path = 'scan' if return_all_outputs else 'reduce'
  apply = jax.jit(module.apply, static_argnums=2)
  expected = apply({'params': nested}, tokens, path)
  np.testing.assert_allclose(logits, expected, atol=1e-6)


@pytest.mark.parametrize(
  ('task', 'is_single'),
  [
    pytest.param(parity_check.ParityCheck(), True, marks=pytest.mark.slow),
    (reverse_string.ReverseString(), False),
  ],
)
def test_trains_under_the_wrapper_with_empty_targets(task, is_single):
  """Other lengths use the same parameters."""
  transformed = hk.transform(
    wrappers.make_model_with_empty_targets(
      haiku_model.make_regular_gpt(
        task.output_size, return_all_outputs=True, **_PARAMS
      ),
      task,
      single_output=is_single,
    )
  )
  batch = _batch(task, 3)
  params = jax.jit(transformed.init)(jax.random.key(1), batch['input'])

  def loss(params):
    logits = transformed.apply(params, None, batch['input'])
    assert logits.shape == batch['output'].shape
    return -jnp.mean(batch['output'] * jax.nn.log_softmax(logits))

  before, gradient = jax.jit(jax.value_and_grad(loss))(params)
  params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)
  assert jax.jit(loss)(params) < before
  longer = _batch(task, 11)
  logits = jax.eval_shape(transformed.apply, params, None, longer['input'])
  assert logits.shape == longer['output'].shape


def test_trains_where_the_model_gets_input_and_empty_tokens_side_by_side():
  """As in the original benchmark: unpadded one-hot input, one more channel."""
  task = reverse_string.ReverseString()
  core = haiku_model.make_regular_gpt(2, return_all_outputs=True, **_PARAMS)

  def read(x):
    empty = jnp.zeros((x.shape[0], task.output_length(x.shape[1]), 3))
    channel = jnp.zeros((*x.shape[:2], 1))
    x = jnp.concatenate([x, channel], axis=-1)
    sequence = jnp.concatenate([x, empty.at[..., 2].set(1)], axis=1)
    return core(sequence)[:, -empty.shape[1] :]

  transformed = hk.transform(read)
  batch = _batch(task, 5)
  params = jax.jit(transformed.init)(jax.random.key(1), batch['input'])
  ours = hk.transform(wrappers.make_model_with_empty_targets(core, task))
  np.testing.assert_allclose(
    jax.jit(transformed.apply)(params, jax.random.key(2), batch['input']),
    jax.jit(ours.apply)(params, None, batch['input']),
    atol=1e-5,
  )
