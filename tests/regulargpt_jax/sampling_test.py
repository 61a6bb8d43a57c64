"""Reading symbol by symbol equals reading the whole string."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config as config_lib
from regulargpt_jax import depth, gpt_lm, sampling
from regulargpt_jax import model as model_lib
from tests import slow
from tests.regulargpt_jax import parameters

_VOCAB_SIZE = 5


def _regular_gpt(preset, chunk_size, thickness, **fields):
  return model_lib.RegularGPT(
    config_lib.make_config(
      preset,
      _VOCAB_SIZE,
      _VOCAB_SIZE,
      chunk_size=chunk_size,
      thickness=thickness,
      embedding_dim=8,
      num_heads=2,
      **fields,
    )
  )


def _gpt(position_bias):
  return gpt_lm.GPT(
    config_lib.make_gpt_config(
      _VOCAB_SIZE,
      position_bias=position_bias,
      num_layers=2,
      embedding_dim=8,
      num_heads=2,
    )
  )


def _params(model):
  return parameters.random(model, np.zeros((1, 1), np.int32))


def _prefixes(tokens_BxT):
  """Every prefix of every string, right-aligned, [B, T, T]."""
  length = tokens_BxT.shape[1]
  rows = [
    np.pad(
      tokens_BxT[:, :stop], [(0, 0), (length - stop, 0)], constant_values=-1
    )
    for stop in range(1, length + 1)
  ]
  return np.stack(rows, axis=1)


# The model, and the longest string. Every one but GPT's goes up a level, or
# more, as the string grows: at C^l + 1 symbols. (The last stops at two.)
_CASES = [
  (_regular_gpt('language', 2, 2), 12),
  (_regular_gpt('language', 2, 2, min_levels=3), 12),
  (_regular_gpt('language', 3, 1), 12),
  (_regular_gpt('language', 18, 2), 22),
  (_regular_gpt('benchmark', 2, 2), 10),
  (_regular_gpt('benchmark', 17, 1), 20),
  (_gpt('t5'), 8),
  (_gpt('kerple_log'), 8),
  (_regular_gpt('language', 2, 2, max_levels=2), 12),
]


# Prompts of one length or the other, of every kind of model; the rest is slow.
_QUICK = [(1, True), (3, False), (4, True), (7, True)]
_QUICK.append((8, False))


@pytest.mark.parametrize(
  ('case', 'is_long'),
  slow.unless(
    lambda *case: case in _QUICK,
    [*itertools.product(range(len(_CASES)), (False, True))],
  ),
)
def test_decoding_equals_the_full_pass(case, is_long):
  model, length = _CASES[case]
  prompt_length = length - 2 if is_long else 3
  params = _params(model)
  tokens = np.random.default_rng(0).integers(_VOCAB_SIZE, size=(2, length))
  # The second string starts later.
  tokens[1, :2] = -1
  prefixes = _prefixes(tokens)
  last_logits = functools.partial(model.apply, method='last_logits')
  expected = jax.jit(last_logits)(params, prefixes.reshape(-1, length))
  expected = expected.reshape(2, length, -1)

  @functools.partial(jax.jit, static_argnums=1)
  def decode_from(tokens, prompt_length):
    logits, cache = model.apply(
      params, tokens[:, :prompt_length], length, method='prefill'
    )

    def step(cache, token_B):
      logits, cache = model.apply(
        params, token_B, cache, length, method='decode'
      )
      return cache, logits

    _, rest = jax.lax.scan(step, cache, tokens[:, prompt_length:].T)
    return jnp.concatenate([logits[:, None], jnp.moveaxis(rest, 0, 1)], axis=1)

  actual = decode_from(jnp.asarray(tokens), prompt_length)
  np.testing.assert_allclose(
    actual, expected[:, prompt_length - 1 :], atol=2e-4
  )
  if isinstance(model, model_lib.RegularGPT):
    chunk_size = model.config.chunk_size
    assert depth.depth(length, chunk_size) > depth.depth(3, chunk_size)


def test_greedy_is_the_likeliest_and_top_1_is_greedy():
  model = _CASES[2][0]
  params = _params(model)
  prompt = np.array([[1, 2, 3], [-1, -1, 4]])
  greedy, top_1, cold = (
    np.asarray(
      sampling.sample(model, params, prompt, 9, jax.random.key(0), *how)
    )
    for how in ((0.0,), (1.0, 1), (1e-38,))
  )
  np.testing.assert_array_equal(greedy, top_1)
  np.testing.assert_array_equal(greedy, cold)
  full = np.concatenate([prompt, greedy], axis=1)
  prefixes = _prefixes(full)[:, 2:-1].reshape(-1, 12)
  logits = jax.jit(model.apply)(params, prefixes)
  np.testing.assert_array_equal(logits.argmax(-1).reshape(2, 9), greedy)


def test_frequencies_are_those_of_the_softmax():
  model = _CASES[2][0]
  params = _params(model)
  num, temperature = 20000, 1.7
  prompt = np.array([[1, 2, 3]])
  logits = np.asarray(jax.jit(model.apply)(params, prompt))[0] / temperature
  for top_k in (None, 3):
    drawn = sampling.sample(
      model,
      params,
      np.repeat(prompt, num, axis=0),
      1,
      jax.random.key(0),
      temperature,
      top_k,
    )
    kept = np.exp(logits)
    kept[np.argsort(-logits)[top_k or _VOCAB_SIZE :]] = 0
    expected = kept / kept.sum()
    actual = np.bincount(drawn[:, 0], minlength=_VOCAB_SIZE) / num
    assert (actual[expected == 0] == 0).all()
    # Five standard errors.
    np.testing.assert_allclose(actual, expected, atol=5 * 0.5 / num**0.5)


def test_every_symbol_is_drawn_anew():
  """Without parameters all are alike: neighbours agree one time in five."""
  model = _CASES[2][0]
  zeros = jax.tree.map(jnp.zeros_like, _params(model))
  prompt = np.ones((300, 1), int)
  drawn = np.asarray(
    sampling.sample(model, zeros, prompt, 4, jax.random.key(0))
  )
  for one, other in ((drawn[:, 1:], drawn[:, :-1]), (drawn[1:], drawn[:-1])):
    assert abs((one == other).mean() - 1 / _VOCAB_SIZE) < 0.06


def test_errors():
  model = _CASES[2][0]
  sample = functools.partial(
    sampling.sample, model, None, rng=jax.random.key(0)
  )
  prompt = [[1]]
  for arguments, message in (
    ({'prompt_BxT': [[]], 'num_tokens': 1}, 'shape'),
    ({'prompt_BxT': prompt, 'num_tokens': 0}, 'num_tokens'),
    ({'prompt_BxT': prompt, 'num_tokens': 1, 'temperature': -1}, 'temper'),
    ({'prompt_BxT': prompt, 'num_tokens': 1, 'top_k': 6}, r'top_k .*\[1, 5\]'),
  ):
    with pytest.raises(ValueError, match=message):
      sample(**arguments)
