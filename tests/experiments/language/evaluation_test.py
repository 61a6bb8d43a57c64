"""Perplexities against models whose probabilities are known."""

import dataclasses
import functools

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.engine import estimates
from experiments.language import config, evaluation
from experiments.text import loading
from tests.experiments.language import texts


class _Bigram(nn.Module):
  """Predicts from the last token alone."""

  def last_logits(self, tokens_BxT):
    table_VxV = self.get_variable('params', 'table')
    return table_VxV[tokens_BxT[:, -1]]


class _NumTokens(nn.Module):
  """Is sure of token 0 by as many nats as it has read tokens."""

  def last_logits(self, tokens_BxT):
    sure = jnp.zeros(texts.VOCAB_SIZE).at[0].set(tokens_BxT.shape[1])
    return jnp.tile(sure, (len(tokens_BxT), 1))


def _losses(model, params, stream, lengths, num=40, batch_tokens=64):
  return evaluation.last_token_losses(
    model, params, stream, lengths, num, batch_tokens
  )


def test_known_probabilities():
  table = np.random.default_rng(0).normal(size=(texts.VOCAB_SIZE,) * 2)
  params = {'params': {'table': jnp.array(table, jnp.float32)}}
  stream = texts.random_text(1500).streams['test']
  losses = _losses(_Bigram(), params, stream, [5, 16, 700])
  # The two last tokens of each string, read another way.
  ends = np.concatenate(
    list(loading.evaluation_batches(stream, 1, 700, 40, 40))
  )
  log_p = table - np.log(np.exp(table).sum(-1, keepdims=True))
  expected = -log_p[ends[:, 0], ends[:, 1]]
  for length in (5, 16, 700):  # The same last tokens at every length.
    np.testing.assert_allclose(losses[length], expected, rtol=1e-5)
  found = evaluation.perplexity(losses[16])
  np.testing.assert_allclose(found.perplexity, np.exp(expected.mean()), 1e-5)
  np.testing.assert_allclose(found.loss, expected.mean(), 1e-5)


def test_too_many_lengths_are_refused_before_anything_is_compiled():
  stream = texts.random_text(100).streams['test']
  with pytest.raises(ValueError, match='at most 256, got 1000'):
    evaluation.check(stream, [5] * 1000, 40, 64)


def test_a_batch_that_does_not_fit_is_not_run(monkeypatch):
  monkeypatch.setattr(estimates, 'memory', lambda: 100)
  params = {'params': {'table': jnp.zeros((texts.VOCAB_SIZE,) * 2)}}
  stream = texts.random_text(100).streams['test']
  with pytest.raises(ValueError, match='strings of 8 tokens need about'):
    _losses(_Bigram(), params, stream, [8])


def test_uniform_guess_has_the_perplexity_of_the_vocabulary():
  params = {'params': {'table': jnp.zeros((texts.VOCAB_SIZE,) * 2)}}
  stream = texts.random_text(100).streams['test']
  found = evaluation.perplexity(_losses(_Bigram(), params, stream, [8])[8])
  np.testing.assert_allclose(found.perplexity, texts.VOCAB_SIZE, rtol=1e-6)
  np.testing.assert_allclose(found.standard_error, 0.0, atol=1e-6)


def test_a_model_reads_as_many_tokens_as_it_is_told():
  stream = texts.random_text(300).streams['test']
  losses = _losses(_NumTokens(), {}, stream, [2, 9])
  ends = np.concatenate(list(loading.evaluation_batches(stream, 1, 9, 40, 7)))
  for length in (2, 9):
    logits = np.zeros(texts.VOCAB_SIZE)
    logits[0] = length
    expected = np.log(np.exp(logits).sum()) - logits[ends[:, 1]]
    np.testing.assert_allclose(losses[length], expected, atol=1e-5)


def test_standard_error_is_that_of_many_draws():
  """The spread of the perplexities of many independent sets of strings."""
  losses = np.random.default_rng(0).gamma(2.0, 1.5, (4000, 100))
  found = [evaluation.perplexity(x) for x in losses]
  spread = np.std([x.perplexity for x in found])
  mean_error = np.mean([x.standard_error for x in found])
  np.testing.assert_allclose(mean_error, spread, rtol=0.1)


def test_perplexity_of_three_losses_by_hand():
  """Squared deviations 16/9, 1/9 and 25/9, over 3 - 1, over 3."""
  found = evaluation.perplexity(np.array([1, 2, 4]))
  np.testing.assert_allclose(found.loss, 7 / 3)
  np.testing.assert_allclose(found.perplexity, np.e ** (7 / 3))
  error = np.e ** (7 / 3) * (42 / 9 / 2 / 3) ** 0.5
  np.testing.assert_allclose(found.standard_error, error)


def test_differences_are_of_pairs():
  """Of means as far apart as two standard errors, each pair by the same."""
  losses = np.random.default_rng(0).gamma(2.0, 1.5, 100)
  found = evaluation.differences({16: losses + 0.25, 4: losses, 8: -losses})
  assert found.keys() == {8, 16}
  np.testing.assert_allclose(found[16].loss, 0.25)
  np.testing.assert_allclose(found[16].standard_error, 0.0, atol=1e-9)
  np.testing.assert_allclose(found[8].loss, -2 * losses.mean())
  error = 2 * evaluation.perplexity(losses).standard_error
  error /= evaluation.perplexity(losses).perplexity
  np.testing.assert_allclose(found[8].standard_error, error)


def test_a_difference_of_exploding_losses_is_infinite():
  for first in ([1, np.inf], [1, np.nan]):
    for last in (first, [1, 2]):
      found = evaluation.differences({4: np.array(first), 8: np.array(last)})
      assert dataclasses.astuple(found[8]) == (np.inf, np.inf)


def test_an_exploding_loss_is_infinite_not_an_error():
  for losses in ([1e4, 2e4], [800, 800], [1, np.inf], [1, np.nan]):
    found = evaluation.perplexity(np.array(losses))
    assert found.perplexity == np.inf and found.standard_error >= 0


@pytest.mark.parametrize(
  'architecture',
  ['regular_gpt_lm', pytest.param('gpt_lm', marks=pytest.mark.slow)],
)
def test_batches_change_nothing_and_all_logits_agree(architecture):
  """To 1e-5; 23 strings fill no batch but those of one string."""
  experiment = dataclasses.replace(texts.TINY, architecture=architecture)
  model = config.make_model(experiment)
  params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 4), int))
  stream = texts.random_text(900).streams['test']
  (batch,) = loading.evaluation_batches(stream, 17, 17, 23, 23)
  logits = jax.jit(functools.partial(model.apply, method='all_logits'))(
    params, batch[:, :-1]
  )
  log_p = jax.nn.log_softmax(logits[:, -1])
  expected = -log_p[jnp.arange(23), batch[:, -1]]
  for batch_tokens in (1, 5 * 17):
    found = _losses(model, params, stream, [17], 23, batch_tokens)
    np.testing.assert_allclose(found[17], expected, atol=1e-5)


@pytest.mark.parametrize(
  ('lengths', 'num', 'message'),
  [
    ([], 10, 'lengths'),
    ([0, 4], 10, 'lengths'),
    ([4], 1, 'num_sequences'),
    ([90], 50, '140 tokens; the split has 100'),
  ],
)
def test_impossible_evaluations_are_refused(lengths, num, message):
  stream = texts.random_text(100).streams['test']
  with pytest.raises(ValueError, match=message):
    _losses(_NumTokens(), {}, stream, lengths, num)
