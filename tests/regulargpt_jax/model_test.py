"""One function, three ways to compute it (contract C1)."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config as config_lib
from regulargpt_jax import model as model_lib
from tests import slow
from tests.regulargpt_jax import equations, numpy_oracle, tiny

# Preset, chunk size, thickness, longest string, symbols, extra levels.
_SHAPES = [
  ('benchmark', 2, 1, 9, 2, 0),
  ('benchmark', 2, 3, 4, 2, 0),
  ('benchmark', 3, 2, 10, 4, 0),
  ('benchmark', 17, 1, 20, 3, 1),
  ('language', 2, 1, 5, 5, 1),
  ('language', 18, 2, 20, 7, 0),
]


def _all_logits_and_gradient(model, params, tokens, path, extra_levels):
  def f(params):
    logits = model.apply(params, tokens, path, extra_levels)
    answer = logits if path == 'reduce' else logits[:, -1]
    return jnp.sum(jnp.sin(answer)), logits

  (_, logits), gradient = jax.jit(jax.value_and_grad(f, has_aux=True))(params)
  return jax.device_get((logits, gradient))


@pytest.mark.parametrize(
  ('preset', 'chunk_size', 'thickness', 'longest', 'vocab_size', 'extra'),
  # What is left out is like others.
  slow.unless(lambda *shape: _SHAPES.index(shape) in (0, 5), _SHAPES),
)
def test_paths_agree_padded_or_not(
  preset, chunk_size, thickness, longest, vocab_size, extra
):
  """With each other, and with NumPy on bare strings."""
  model, params = tiny.model(preset, chunk_size, thickness, vocab_size)
  lengths = range(1, longest + 1)
  tokens = tiny.tokens(lengths, longest + 3, vocab_size)
  logits, gradients = {}, {}
  for path in model_lib.PATHS:
    logits[path], gradients[path] = _all_logits_and_gradient(
      model, params, tokens, path, extra
    )
  present = (tokens >= 0)[..., None]
  tiny.assert_close(logits['scan'] * present, logits['reference'] * present)
  tiny.assert_close(logits['reduce'], logits['reference'][:, -1])
  for path in ('scan', 'reduce'):
    tiny.assert_close(gradients[path], gradients['reference'])
  # Every parameter has a part in it, or the comparison shows nothing.
  for leaf in jax.tree.leaves(gradients['reference']):
    assert np.abs(leaf).max() > 0

  def by_numpy(params, length):
    string = tokens[length - 1, -length:]
    return numpy_oracle.regular_gpt(params, model.config, string, extra)

  for length in {1, 2, chunk_size, chunk_size + 1, longest}:
    actual = logits['reference'][length - 1, -length:]
    tiny.assert_close(actual, by_numpy(params, length))
  measured, by_gradient = numpy_oracle.slopes(
    lambda p: sum(np.sin(by_numpy(p, length)[-1]).sum() for length in lengths),
    params,
    gradients['reference'],
  )
  np.testing.assert_allclose(by_gradient, measured, rtol=1e-4)


@pytest.mark.parametrize('preset', ['benchmark', 'language'])
@pytest.mark.parametrize('thickness', [1, 2])
def test_causal_and_the_last_output_sees_every_token(preset, thickness):
  length = 11
  model, params = tiny.model(preset, 3, thickness, 4)
  tokens = tiny.tokens([length], length, 4)
  changed = np.repeat(tokens, length, axis=0)
  changed[np.arange(length), np.arange(length)] += 1
  changed %= 4  # Row i differs from the string at position i only.
  everything = np.concatenate([tokens, changed])
  logits = tiny.apply(model, params, everything, 'scan')
  difference = np.abs(logits[1:] - logits[:1]).max(-1)
  for i in range(length):
    assert difference[i, :i].max(initial=0) == 0, 'a later token leaked'
    assert difference[i, i] > 0
  last = tiny.apply(model, params, everything, 'reduce')
  assert np.abs(last[1:] - last[:1]).max(-1).min() > 1e-6


def test_nothing_depends_on_how_far_it_was_padded():
  model, params = tiny.model('benchmark', 2, 1, 2)
  tokens = tiny.tokens([5, 6], 6, 2)
  expected = tiny.apply(model, params, tokens)
  for width in (7, 8, 33):
    wide = np.full((2, width), -1)
    wide[:, -6:] = tokens
    tiny.assert_close(tiny.apply(model, params, wide), expected, 3e-6)


@pytest.mark.parametrize(
  ('thickness', 'min_lengths'), [(1, (2, 5)), (2, (5,))], ids=str
)
def test_knowing_the_shortest_length_changes_nothing(thickness, min_lengths):
  model, params = tiny.model('benchmark', 2, thickness, 2)
  tokens = tiny.tokens([5, 8, 9], 9, 2)
  expected = tiny.apply(model, params, tokens)
  for min_length in min_lengths:
    apply = functools.partial(model.apply, min_length=min_length)
    tiny.assert_close(jax.jit(apply)(params, tokens), expected, 3e-6)


@pytest.mark.parametrize(
  'preset', ['benchmark', pytest.param('language', marks=pytest.mark.slow)]
)
def test_tables_change_nothing(preset):
  """Few distinct chunks: shared tables, own tables and none agree."""
  model, params = tiny.model(preset, 2, 1, 2)
  tokens = tiny.tokens([1, 2, 5, 8, 15, 16], 16, 2)

  @functools.partial(jax.jit, static_argnums=1)
  def loss(params, num_symbols):
    tables = model.apply(params, num_symbols, method='tabulate')
    logits = model.apply(params, tokens, tables=tables)
    return jnp.sum(jnp.sin(logits)), (logits, len(tables))

  results = {}
  for num_symbols in (0, 10**4):
    results[num_symbols] = jax.value_and_grad(loss, has_aux=True)(
      params, num_symbols
    )
  num_tables = [aux[1] for (_, aux), _ in results.values()]
  assert num_tables == [1, 4]
  (_, (expected, _)), expected_gradient = results[0]
  for (_, (logits, _)), gradient in results.values():
    tiny.assert_close(logits, expected)
    tiny.assert_close(gradient, expected_gradient)


def test_intermediates_of_reduce_are_those_of_scan():
  model, params = tiny.model('benchmark', 2, 2, 3)
  tokens = tiny.tokens([8], 8, 3)
  scan, tree = (
    jax.device_get(
      jax.jit(
        functools.partial(model.apply, path=path, mutable='intermediates')
      )(params, tokens)[1]
    )
    for path in ('scan', 'reduce')
  )
  for k in range(2):
    scan_block = scan['intermediates'][f'block_{k}']
    tree_block = tree['intermediates'][f'block_{k}']
    assert set(scan_block) == {
      'attention_weights',
      'attention',
      'ffn',
      'output',
    }
    for name in ('ffn', 'output'):
      (all_positions,) = scan_block[name]  # [levels, B, T, D].
      for level, kept in enumerate(tree_block[name]):
        # The last block keeps one position in each chunk.
        stride = 2 ** (level + (k == 1))
        expected = all_positions[level, 0, stride - 1 :: stride]
        tiny.assert_close(kept[0], expected)


def test_dropout_is_seeded_and_off_by_default():
  model, params = tiny.model('benchmark', 2, 1, 2, dropout_rate=0.5)
  tokens = tiny.tokens([9], 9, 2)
  for path in ('scan', 'reduce'):
    apply = jax.jit(
      lambda seed, path=path: model.apply(
        params, tokens, path, rngs={'dropout': jax.random.key(seed)}
      )
    )
    chex.assert_trees_all_equal(apply(0), apply(0))
    assert np.abs(np.asarray(apply(0)) - apply(1)).max() > 0
  # Off without a key: the paths, which draw different masks, agree.
  reduce = tiny.apply(model, params, tokens, 'reduce')
  tiny.assert_close(reduce, tiny.apply(model, params, tokens, 'scan')[:, -1])


def test_dropout_is_on_embeddings_and_on_both_sublayers():
  """Where all of them are dropped, only the readout is left."""
  model, params = tiny.model('language', 2, 1, 3, dropout_rate=1 - 1e-7)
  last = numpy_oracle.as_float64(params)['params']
  expected = last['final_norm']['bias'] @ last['embedding'].T

  @jax.jit
  def logits(params):
    tokens, rngs = jnp.array([[0, 1]]), {'dropout': jax.random.key(0)}
    return [
      model.apply(params, tokens, path, rngs=rngs).reshape(-1, 3)
      for path in ('scan', 'reduce')
    ]

  for actual in logits(params):
    tiny.assert_close(actual, np.broadcast_to(expected, actual.shape))


@pytest.mark.parametrize('path', model_lib.PATHS)
def test_bfloat16_is_close_and_parameters_stay_float32(path):
  exact, params = tiny.model('benchmark', 2, 1, 2)
  coarse, _ = tiny.model('benchmark', 2, 1, 2, dtype=jnp.bfloat16)
  tokens = tiny.tokens([3], 3, 2)
  own = jax.eval_shape(coarse.init, jax.random.key(0), tokens)
  assert {x.dtype for x in jax.tree.leaves(own)} == {jnp.dtype('float32')}
  actual = tiny.last_logits(coarse, params, tokens, path)
  assert actual.dtype == jnp.float32
  tiny.assert_close(actual, tiny.last_logits(exact, params, tokens, path), 0.1)


def test_remat_changes_nothing():
  plain, params = tiny.model('benchmark', 2, 1, 2)
  remat, _ = tiny.model('benchmark', 2, 1, 2, remat=True)
  tokens = tiny.tokens([9, 5], 9, 2)
  chex.assert_trees_all_close(
    _all_logits_and_gradient(plain, params, tokens, 'scan', 1),
    _all_logits_and_gradient(remat, params, tokens, 'scan', 1),
    atol=1e-5,
  )


def test_unknown_preset_and_path_list_the_known_ones():
  with pytest.raises(ValueError, match='benchmark, language'):
    config_lib.make_config('other', 2, 2)
  model, params = tiny.model('benchmark', 2, 1, 2)
  with pytest.raises(ValueError, match='reference, scan, reduce'):
    model.apply(params, jnp.zeros((1, 2), jnp.int32), 'other')


def test_scan_never_holds_a_square_matrix():
  """No intermediate of the gradient grows with the square of the length."""
  model, params = tiny.model('benchmark', 2, 1, 2)
  length = 512

  def loss(params, tokens):
    return model.apply(params, tokens, 'scan').sum()

  tokens = jnp.zeros((1, length), jnp.int32)
  assert equations.largest(jax.grad(loss), params, tokens) < length**2


@pytest.mark.parametrize('dtype', [np.uint8, np.int8, np.int64])
def test_any_type_of_token_gives_the_same(dtype):
  """Numbers of short strings need more room than a token."""
  model, params = tiny.model('benchmark', 2, 1, 2)
  tokens = tiny.tokens([32] * 32, 32, 2)
  expected = tiny.apply(model, params, tokens)
  chex.assert_trees_all_equal(
    tiny.apply(model, params, tokens.astype(dtype)), expected
  )


@pytest.mark.parametrize('shape', [(0, 3), (2, 0), (3,)])
def test_shapes_without_symbols_are_refused(shape):
  model, params = tiny.model('benchmark', 2, 1, 2)
  with pytest.raises(ValueError, match='shape'):
    model.apply(params, jnp.zeros(shape, jnp.int32))


@pytest.mark.parametrize('path', model_lib.PATHS)
def test_a_position_bias_of_exactly_zero_hides_nothing(path):
  """A fault of the public code: its mask took a bias of 0 for hidden."""
  model, params = tiny.model('benchmark', 2, 1, 4)
  block = params['params']['block_0']
  zero = block | {'position_bias': np.zeros_like(block['position_bias'])}
  params = {'params': params['params'] | {'block_0': zero}}
  tokens = np.repeat(tiny.tokens([6], 6, 4), 7, axis=0)
  tokens[np.arange(1, 7), np.arange(6)] += 1  # Row i + 1 differs at place i.
  tokens %= 4
  logits = tiny.last_logits(model, params, tokens, path)
  assert np.abs(logits[1:] - logits[0]).max(-1).min() > 1e-6
