import functools

from hypothesis import given
from hypothesis import strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config as config_lib
from regulargpt_jax import language_models, model
from regulargpt_jax.analysis import receptive_field


def test_shares_of_a_linear_function_are_those_of_its_weights():
  weight_T = np.array([4.0, 0.0, 3.0, -1.0])
  direction_D = np.array([0.6, -0.8])

  def score(x_TxD, target):
    return target * weight_T @ (x_TxD @ direction_D)

  x_BxTxD = np.random.default_rng(0).normal(size=(3, 4, 2))
  found = receptive_field.cumulative_gradient(
    score, x_BxTxD, np.array([1.0, 2.0, -3.0])
  )
  expected_T = np.array([1, 4, 4, 8]) / 8  # The most recent first.
  np.testing.assert_allclose(found, np.tile(expected_T, (3, 1)), atol=1e-6)


def test_a_score_that_depends_on_nothing_has_no_shares():
  found = receptive_field.cumulative_gradient(
    lambda x, target: 0 * x.sum(), np.ones((1, 3, 2)), np.zeros(1)
  )
  assert np.isnan(found).all()


_REGULAR_GPTS = [
  model.RegularGPT(
    config_lib.make_config(
      preset, vocab_size=4, output_size=4, embedding_dim=8, num_heads=2
    )
  )
  for preset in config_lib.PRESETS
]
_GPT = language_models.BUILDERS['gpt_lm'](
  4, embedding_dim=8, num_heads=2, num_layers=2, dtype=jnp.float32
)


@pytest.mark.parametrize('module', [*_REGULAR_GPTS, _GPT])
def test_of_embeddings_is_the_model_itself(module):
  """With a tied embedding, the readout stays what it was."""
  params = jax.jit(module.init)(jax.random.key(0), jnp.zeros((1, 1), int))
  tokens = np.array([[2, 0, 1, 1, 3, 0, 2]])
  last_logits = functools.partial(module.apply, method='last_logits')
  expected = jax.jit(last_logits)(params, tokens)[0]
  apply = receptive_field.of_embeddings(module, params)
  embedded_TxD = params['params']['embedding'][tokens[0]]
  np.testing.assert_allclose(jax.jit(apply)(embedded_TxD), expected, atol=1e-5)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=5), st.data())
def test_log_odds_are_those_of_the_probability(logits, data):
  symbol = data.draw(st.integers(0, len(logits) - 1))
  p = jax.nn.softmax(jnp.array(logits))[symbol]
  found = receptive_field.log_odds(jnp.array(logits), symbol)
  np.testing.assert_allclose(found, jnp.log(p) - jnp.log1p(-p), atol=1e-4)


def test_log_odds_have_a_gradient_where_the_probability_rounds_to_one():
  logits = jnp.array([60.0, 0.0, 0.0])
  assert not jax.grad(lambda x: jax.nn.log_softmax(x)[0])(logits)[0]
  gradient = jax.grad(receptive_field.log_odds)(logits, 0)
  np.testing.assert_allclose(gradient, [1.0, -0.5, -0.5], atol=1e-6)
