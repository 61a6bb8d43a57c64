"""The language models: counts, dense against blocks, precision, learning."""

import collections
import functools

from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from regulargpt_jax import attention, language_models
from tests import slow
from tests.regulargpt_jax import equations, numpy_oracle, parameters

_BIASES = ('alibi', 'kerple_log', 't5', 'none')
_TINY = {'embedding_dim': 16, 'num_heads': 2}


def _tiny(name, vocab_size=11, **overrides):
  return language_models.BUILDERS[name](vocab_size, **(_TINY | overrides))


def _params(model):
  return parameters.random(model, np.zeros((1, 2), np.int32))


@pytest.mark.parametrize(
  'case',
  [
    ('regular_gpt_lm', {'thickness': 6}, 81_135_360),
    ('regular_gpt_lm', {'thickness': 12}, 123_671_808),
    ('gpt_lm', {'position_bias': 'alibi'}, 123_653_376),
    ('gpt_lm', {'position_bias': 'kerple_log'}, 123_653_376 + 12 * 12 * 2),
    ('gpt_lm', {'position_bias': 't5'}, 123_653_376 + 32 * 12),
  ],
  ids=str,
)
def test_number_of_parameters(case):
  name, fields, expected = case
  model = language_models.BUILDERS[name](50257, **fields)
  tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
  params = jax.eval_shape(model.init, jax.random.key(0), tokens)
  leaves = jax.tree.leaves(params)
  assert sum(x.size for x in leaves) == expected
  assert {x.dtype for x in leaves} == {jnp.dtype('float32')}


def _dense_causal(q, k, v, bias_HxT, visible_BxT):
  """The T x T logits at once."""
  length = q.shape[1]
  distance = np.arange(length)[:, None] - np.arange(length)
  bias = bias_HxT[:, np.clip(distance, 0, None)]
  mask = jnp.where(distance >= 0, bias, -1e30)
  return attention.dense_attention(q, k, v, mask, visible_BxT)[0]


@pytest.mark.parametrize(
  'kind', slow.unless(lambda kind: kind in ('kerple_log', 't5'), _BIASES)
)
def test_gpt_in_blocks_equals_dense(kind, monkeypatch):
  """And NumPy on the bare strings."""
  monkeypatch.setattr(attention, '_QUERY_BLOCK', 2)
  model = _tiny('gpt_lm', position_bias=kind, num_layers=1, dtype='float32')
  params = _params(model)
  tokens = np.random.default_rng(0).integers(11, size=(3, 18))
  inputs = np.where(np.arange(18) >= [[0], [5], [17]], tokens, -1)
  weights = inputs >= 0

  def run():
    @jax.jit
    def f(params):
      losses = model.apply(params, inputs, tokens, method='losses')
      return (losses * weights).sum(), losses * weights

    return jax.device_get(jax.value_and_grad(f, has_aux=True)(params))

  actual = run()
  monkeypatch.setattr(attention, 'causal_attention', _dense_causal)
  expected = run()
  jax.tree.map(
    lambda a, e: np.testing.assert_allclose(a, e, atol=2e-4, rtol=1e-4),
    actual,
    expected,
  )
  for leaf in jax.tree.leaves(expected[1]):
    assert np.abs(leaf).max() > 0

  def by_numpy(params):
    for string, target in zip(inputs, tokens, strict=True):
      seen = string >= 0
      logits = numpy_oracle.gpt(params, model.config, string[seen])
      p = numpy_oracle.softmax(logits)[np.arange(seen.sum()), target[seen]]
      yield -np.log(p)

  for losses, present, found in zip(
    actual[0][1], weights, by_numpy(params), strict=True
  ):
    np.testing.assert_allclose(losses[present], found, atol=2e-4)
  measured, by_gradient = numpy_oracle.slopes(
    lambda p: sum(map(np.sum, by_numpy(p))), params, actual[1]
  )
  np.testing.assert_allclose(by_gradient, measured, rtol=1e-4)


@pytest.mark.parametrize('name', list(language_models.BUILDERS))
def test_padding_and_the_last_position(name):
  """The same answer padded or not, and whichever way one asks."""
  fields = {'chunk_size': 18} if name == 'regular_gpt_lm' else {}
  fields |= {'thickness': 2} if name == 'regular_gpt_lm' else {'num_layers': 2}
  model = _tiny(name, dtype='float32', **fields)
  params = _params(model)
  bare = np.random.default_rng(0).integers(11, size=(2, 20))
  padded = np.pad(bare, [(0, 0), (6, 0)], constant_values=-1)
  logits, last, losses = (
    np.asarray(
      jax.jit(functools.partial(model.apply, method=method))(params, *inputs)
    )
    for method, inputs in (
      ('all_logits', (padded,)),
      ('last_logits', (bare,)),
      ('losses', (bare, bare)),
    )
  )
  np.testing.assert_allclose(logits[:, -1], last, atol=1e-4)
  probabilities = np.asarray(jax.nn.softmax(logits[:, 6:]))
  for b, t in np.ndindex(2, 20):
    expected = -np.log(probabilities[b, t, bare[b, t]])
    assert losses[b, t] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize('remat', [False, True])
@pytest.mark.parametrize('name', list(language_models.BUILDERS))
def test_gradient_is_fast_and_repeatable_on_a_gpu(name, remat):
  """No product in float32, forward or backward, and no scatter that adds."""
  blocks = {'thickness' if name == 'regular_gpt_lm' else 'num_layers': 2}
  model = _tiny(name, vocab_size=2000, remat=remat, **blocks)
  tokens = jnp.zeros((1, 130), jnp.int32)
  params = jax.eval_shape(model.init, jax.random.key(0), tokens)

  def loss(params):
    return model.apply(params, tokens, tokens, method='losses').mean()

  by_name = collections.defaultdict(list)
  for equation in equations.of(jax.grad(loss), params):
    by_name[equation.primitive.name].append(equation)
  assert 'scatter' in by_name  # The embedding's: of distinct rows.
  assert not [n for n in by_name if n.startswith('scatter') and 'add' in n]
  assert len(by_name['dot_general']) > 50
  for equation in by_name['dot_general']:
    assert {x.aval.dtype for x in equation.invars} == {jnp.dtype('bfloat16')}
  assert jax.eval_shape(loss, params).dtype == jnp.float32


@pytest.mark.slow  # So does a test of the loop.
@pytest.mark.parametrize('name', ['regular_gpt_lm', 'gpt_lm'])
def test_learns_one_batch(name):
  fields = {'chunk_size': 18} if name == 'regular_gpt_lm' else {}
  fields |= {'thickness': 1} if name == 'regular_gpt_lm' else {'num_layers': 2}
  model = _tiny(name, embedding_dim=32, **fields)
  tokens = jax.random.randint(jax.random.key(0), (4, 21), 0, 11)
  inputs, targets = tokens[:, :-1], tokens[:, 1:]
  optimizer = optax.adam(1e-2)

  def loss_fn(params):
    return model.apply(params, inputs, targets, method='losses').mean()

  def step(carry, _):
    params, state = carry
    loss, gradient = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(gradient, state)
    return (optax.apply_updates(params, updates), state), loss

  @jax.jit
  def train(key):
    params = model.init(key, inputs)
    return jax.lax.scan(step, (params, optimizer.init(params)), length=150)[1]

  losses = train(jax.random.key(1))
  assert losses[0] > 2
  # What a string's first symbol is followed by may be a guess.
  assert losses[-1] < 0.3


def test_errors_name_what_is_allowed():
  for fields, message in (
    ({'position_bias': 'rope'}, 'alibi, kerple_log, t5, none'),
    ({'num_layers': 0}, 'num_layers must be at least 1'),
    ({'num_heads': 5}, 'must be a multiple'),
  ):
    with pytest.raises(ValueError, match=message):
      language_models.make_gpt_lm(7, **fields)


@pytest.mark.parametrize(
  ('num_repeats', 'chunk_size'),
  slow.unless(
    lambda *case: case in ((0, 17), (2, 2)),
    [(0, 2), (0, 17), (2, 2), (2, 17)],
  ),
)
def test_repeated_levels_have_the_last_dilation(num_repeats, chunk_size):
  """Gathered and in blocks, against the T x T mask level by level."""
  fields = {'chunk_size': chunk_size, 'thickness': 2, 'dtype': jnp.float32}
  model = _tiny('regular_gpt_lm', **fields)
  params = _params(model)
  tokens = np.random.default_rng(0).integers(11, size=(2, 20))
  dilations = {2: [1, 2, 4, 8, 16], 17: [1, 17]}[chunk_size]
  dilations += dilations[-1:] * num_repeats

  def slow(model):
    h = model.embed(tokens)
    for dilation in dilations:
      for block in model.blocks:
        h = block.dense(h, jnp.ones((2, 20), bool), dilation)
    return h

  found = jax.jit(
    lambda p: model.apply(p, tokens, num_repeats, method='states')
  )(params)
  expected = jax.jit(lambda p: nn.apply(slow, model)(p))(params)
  np.testing.assert_allclose(found, expected, 1e-5, 1e-5)
