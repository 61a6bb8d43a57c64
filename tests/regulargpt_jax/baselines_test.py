"""Tests of the baselines and of the wrappers around them."""

import haiku as hk
import jax
from jax import test_util
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import baselines
from regulargpt_jax.baselines import (
  rnn,
  transformer,
  wrappers,
)
from tests import slow
from tests.regulargpt_jax import numpy_baselines
from tests.regulargpt_jax import small_baselines as small

# ---------------------------------------------------------------- padding


def _is_relative(params):
  return params['positional_encodings'] == 'RELATIVE'


NON_AUTOREGRESSIVE = [(name, {}) for name in small.RNN_PARAMS] + [
  ('transformer_encoder', {'positional_encodings': e, 'num_layers': 2})
  for e in small.ENCODINGS
]
AUTOREGRESSIVE = (
  [(name, {}) for name in small.RNN_PARAMS]
  + [
    ('transformer_encoder', {'positional_encodings': e, 'causal_masking': True})
    for e in small.ENCODINGS
  ]
  + [('transformer', {'positional_encodings': e}) for e in small.ENCODINGS]
)


def test_padding_is_tested_for_every_model():
  assert {name for name, _ in AUTOREGRESSIVE} == set(baselines.BUILDERS)
  # The decoder of `transformer` reads targets.
  assert {name for name, _ in NON_AUTOREGRESSIVE} == (
    set(baselines.BUILDERS) - {'transformer'}
  )


def _id(value):
  if isinstance(value, dict):
    return str(value.get('positional_encodings', ''))
  return str(value)


@pytest.mark.parametrize(
  'name, params, outputs_per_symbol',
  # Transformers differ in their encodings only.
  slow.unless(
    lambda name, params, n: (
      n if 'transformer' not in name else _is_relative(params)
    ),
    [(*model, n) for model in NON_AUTOREGRESSIVE for n in (0, 1.5)],
  ),
  ids=_id,
)
def test_padding_does_not_change_the_answer(name, params, outputs_per_symbol):
  task = small.Task(outputs_per_symbol)
  is_single = not outputs_per_symbol
  f = hk.transform(
    wrappers.make_model_with_empty_targets(
      small.make(name, **params), task, 0 if is_single else 1, is_single
    )
  )
  unpadded = small.strings([4, 4], 4)
  model_params = small.init(f, unpadded)
  expected = small.apply(f, model_params, unpadded)
  # A longer neighbour in the batch must not matter either.
  padded = jnp.concatenate(
    [small.strings([4, 4], 7), small.strings([7], 7, seed=1)]
  )
  actual = small.apply(f, model_params, padded)

  assert np.ptp(np.asarray(expected[0])) > 1e-3
  if is_single:
    assert actual.shape == (3, small.O)
    np.testing.assert_allclose(actual[:2], expected, atol=1e-5)
  else:
    assert actual.shape == (3, task.output_length(7), small.O)
    start = task.output_length(7) - task.output_length(4)
    np.testing.assert_allclose(actual[:2, start:], expected, atol=1e-5)
    assert not np.any(actual[:2, :start])
    assert np.all(np.any(actual[2], axis=-1))


@pytest.mark.parametrize(
  'name, params',
  slow.unless(
    lambda name, params: 'transformer' not in name or _is_relative(params),
    AUTOREGRESSIVE,
  ),
  ids=_id,
)
def test_padding_does_not_change_autoregressive_answers(name, params):
  model = small.make(name, **params)
  if name != 'transformer':
    model = wrappers.make_model_with_targets_as_input(model, 1)
  f = hk.transform(wrappers.add_sampling_to_autoregressive_model(model))
  x, y = small.strings([4, 4], 4), small.strings([3, 3], 3, small.O)
  model_params = small.init(f, x, y, sample=False)

  expected = small.apply(f, model_params, x, y, sample=False)
  x = jnp.concatenate([small.strings([4, 4], 6), small.strings([6], 6, seed=1)])
  # Inputs and outputs are padded by different amounts.
  y = jnp.concatenate(
    [small.strings([3, 3], 6, small.O), small.strings([5], 6, small.O, seed=1)]
  )
  actual = small.apply(f, model_params, x, y, sample=False)
  assert np.ptp(expected[0]) > 1e-3
  np.testing.assert_allclose(actual[:2, 3:], expected, atol=1e-5)
  assert not np.any(actual[:2, :3])


@pytest.mark.parametrize(
  'name, params',
  [
    ('stack_lstm', {}),
    ('transformer_encoder', {'causal_masking': True}),
    ('transformer', {'positional_encodings': 'RELATIVE'}),
  ],
  ids=_id,
)
def test_sampling_reads_its_own_predictions(name, params):
  model = small.make(name, **params)
  if name != 'transformer':
    model = wrappers.make_model_with_targets_as_input(model)
  f = hk.transform(wrappers.add_sampling_to_autoregressive_model(model))
  x, y = small.strings([4, 6], 6), small.strings([3, 5], 5, small.O)
  params = small.init(f, x, y, sample=False)
  sampled = small.apply(f, params, x, y, sample=True)
  is_output = np.any(y != 0, axis=-1, keepdims=True)
  predictions = jnp.eye(small.O)[sampled.argmax(-1)] * is_output
  given = small.apply(f, params, x, y, sample=False)
  fed_back = small.apply(f, params, x, predictions, sample=False)
  np.testing.assert_allclose(sampled, fed_back, atol=1e-5)
  assert np.abs(given - sampled).max() > 1e-3


@pytest.mark.parametrize('name', ['tape_rnn', 'transformer'])
def test_padding_does_not_change_single_autoregressive_answers(name):
  model = small.make(name)
  if name != 'transformer':
    model = wrappers.make_model_with_targets_as_input(model)
  f = hk.transform(wrappers.add_sampling_to_autoregressive_model(model, True))
  y = small.strings([1, 1], 1, small.O)[:, 0]
  params = small.init(f, small.strings([4, 4], 4), y, sample=False)
  expected = small.apply(f, params, small.strings([4, 4], 4), y, sample=False)
  assert expected.shape == (2, small.O)
  actual = small.apply(f, params, small.strings([4, 4], 6), y, sample=True)
  np.testing.assert_allclose(actual, expected, atol=1e-5)


_LAST = [
  (
    'transformer_encoder',
    {**fields, 'positional_encodings': e, 'num_layers': 2},
  )
  for e in small.ENCODINGS
  for fields in ({}, {'causal_masking': True}, {'attention_window': 4})
]


@pytest.mark.parametrize(
  ('name', 'params'),
  [('rnn', {}), *slow.unless(lambda _, params: _is_relative(params), _LAST)],
  ids=_id,
)
def test_models_return_the_last_output(name, params):
  x = small.strings([3, 6], 6)
  every = hk.transform(small.make(name, **params))
  last = hk.transform(small.make(name, return_all_outputs=False, **params))
  p = small.init(every, x)
  np.testing.assert_allclose(
    small.apply(last, p, x), small.apply(every, p, x)[:, -1], atol=1e-5
  )


# ---------------------------------------------------------------- the papers


@pytest.mark.parametrize('name', small.RNN_PARAMS)
def test_recurrent_models_are_those_of_the_papers(name):
  f = hk.transform(small.make(name))
  x = small.strings([4], 4)
  params = small.init(f, x)
  expected = numpy_baselines.recurrent(
    params, name, np.asarray(x[0]), hidden_size=3, **small.RNN_PARAMS[name]
  )
  np.testing.assert_allclose(small.apply(f, params, x)[0], expected, atol=1e-5)


@pytest.mark.parametrize('encodings', small.ENCODINGS)
def test_transformers_are_those_of_the_papers(encodings):
  """A head is neither D / H wide, nor as wide as there are heads."""
  hyperparameters = {
    'embedding_dim': 6,
    'num_heads': 2,
    'num_hiddens_per_head': 4,
    'num_layers': 1,
    'widening_factor': 2,
    'max_time': 30,
    'positional_encodings': encodings,
  }
  x, y = small.strings([3], 3), small.strings([4], 4, small.O)
  string, target = np.asarray(x[0]), np.asarray(y[0])
  for fields in ({'causal_masking': True}, {'attention_window': 3}):
    fields = hyperparameters | fields
    f = hk.transform(
      transformer.make_transformer_encoder(small.O, True, **fields)
    )
    params = small.init(f, x)
    is_causal = fields.pop('causal_masking', False)
    expected = numpy_baselines.encoder(
      params, transformer.TransformerConfig(**fields), string, is_causal
    )
    actual = small.apply(f, params, x)[0]
    np.testing.assert_allclose(actual, expected, atol=1e-5)
  f = hk.transform(
    transformer.make_transformer(small.O, True, **hyperparameters)
  )
  params = small.init(f, x, y)
  expected = numpy_baselines.encoder_decoder(
    params, transformer.TransformerConfig(**hyperparameters), string, target
  )
  actual = small.apply(f, params, x, y)[0]
  np.testing.assert_allclose(actual, expected, atol=1e-5)


# ---------------------------------------------------------------- recurrent


@pytest.mark.parametrize(
  'name, params',
  # LSTMs differ in Haiku's cell alone.
  slow.unless(
    lambda name, params: not name.endswith('lstm'),
    [(name, {}) for name in small.RNN_PARAMS]
    + [('transformer_encoder', {'positional_encodings': 'RELATIVE'})],
  ),
  ids=_id,
)
def test_gradients_match_finite_differences(name, params):
  with jax.enable_x64(True):
    f = hk.transform(small.make(name, **params))
    x = small.strings([3], 4).astype(jnp.float64)
    params = small.init(f, x)
    assert all(p.dtype == jnp.float64 for p in jax.tree.leaves(params))
    loss = jax.jit(lambda p: jnp.sum(f.apply(p, None, x)[:, 1:] ** 2))
    test_util.check_grads(loss, (params,), order=1, modes=['rev'], eps=1e-6)


def test_input_windows_are_counted_from_the_end():
  x = small.strings([4], 4)
  f = hk.transform(
    rnn.make_rnn(small.O, hk.LSTM, True, input_window=3, hidden_size=4)
  )
  params = small.init(f, x)
  out = small.apply(f, params, x)
  assert out.shape == (1, 2, small.O)
  padded = small.apply(f, params, small.strings([4], 8))
  assert padded.shape == (1, 3, small.O)
  np.testing.assert_allclose(padded[:, 1:], out, atol=1e-5)
  # The same as a window of 1 on concatenated rows.
  rows = jnp.pad(x, ((0, 0), (2, 0), (0, 0))).reshape(1, 2, 3 * small.V)
  joined = hk.transform(rnn.make_rnn(small.O, hk.LSTM, True, hidden_size=4))
  np.testing.assert_allclose(small.apply(joined, params, rows), out, atol=1e-5)


MEMORY = {
  'stack_rnn': 'stack_size',
  'stack_lstm': 'stack_size',
  'ndstack_rnn': 'stack_size',
  'tape_rnn': 'memory_size',
}


@pytest.mark.parametrize('name, size', MEMORY.items())
def test_parameters_do_not_depend_on_the_memory_size(name, size):
  x = small.strings([4], 4)
  few, many = (
    hk.transform(small.make(name, **{size: cells})) for cells in (6, 11)
  )
  params = small.init(few, x)
  shapes = jax.eval_shape(many.init, jax.random.key(0), x)
  assert jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, shapes)
  out = small.apply(few, params, x), small.apply(many, params, x)
  if name != 'tape_rnn':  # Four pushes fill neither stack.
    np.testing.assert_allclose(*out, atol=1e-5)


# -------------------------------------------------------------- transformers


def _is_changed(f, params, args, changed_args):
  """Returns where the outputs differ, bool [B, T]."""
  new, old = (small.apply(f, params, *a) for a in (changed_args, args))
  return np.abs(new - old).max(-1) > 1e-5


@pytest.mark.parametrize('encodings', ['ALIBI', 'RELATIVE'])
@pytest.mark.parametrize('is_causal', [False, True])
def test_causal_masking(encodings, is_causal):
  f = hk.transform(
    small.make(
      'transformer_encoder',
      positional_encodings=encodings,
      causal_masking=is_causal,
    )
  )
  x = small.strings([5], 6)
  params = small.init(f, x)
  changed = x.at[:, 3].set(jnp.roll(x[:, 3], 1, axis=-1))
  is_changed = _is_changed(f, params, (x,), (changed,))[0, 1:]
  assert is_changed.tolist() == [not is_causal] * 2 + [True] * 3


@pytest.mark.parametrize('encodings', ['SIN_COS', 'RELATIVE'])
def test_decoder_reads_earlier_targets_only(encodings):
  f = hk.transform(small.make('transformer', positional_encodings=encodings))
  x, y = small.strings([4], 4), small.strings([5], 6, small.O)
  params = small.init(f, x, y)
  changed = y.at[:, 3].set(jnp.roll(y[:, 3], 1, axis=-1))
  is_changed = _is_changed(f, params, (x, y), (x, changed))[0, 1:]
  assert is_changed.tolist() == [False, False, False, True, True]


def test_targets_start_with_a_start_symbol():
  y = small.strings([3, 1], 4, 2)
  shifted = transformer.shift_right(y)
  start = [0, 0, 1]
  np.testing.assert_array_equal(shifted[0, :2], [[0, 0, 0], start])
  np.testing.assert_array_equal(shifted[0, 2:, :2], y[0, 1:3])
  np.testing.assert_array_equal(shifted[1], [[0, 0, 0]] * 3 + [start])


@pytest.mark.parametrize('encodings', small.ENCODINGS)
def test_encodings_tell_the_order(encodings):
  f = hk.transform(
    small.make('transformer_encoder', positional_encodings=encodings)
  )
  x = jnp.eye(small.V)[jnp.array([[0, 0, 1, 2, 2], [1, 0, 0, 2, 2]])]
  params = small.init(f, x)
  first, second = small.apply(f, params, x)[:, -1]
  is_same = np.abs(first - second).max() < 1e-5
  assert is_same == (encodings == 'NONE')


@pytest.mark.parametrize('window', [1, 2, 4])
def test_attention_window(window):
  f = hk.transform(small.make('transformer_encoder', attention_window=window))
  x = small.strings([7], 7)
  params = small.init(f, x)
  changed = x.at[:, 3].set(jnp.roll(x[:, 3], 1, axis=-1))
  is_changed = _is_changed(f, params, (x,), (changed,))[0]
  expected = [abs(t - 3) <= window // 2 for t in range(7)]
  assert is_changed.tolist() == expected


def test_dropout_acts_only_with_a_key():
  f = hk.transform(small.make('transformer_encoder', dropout_prob=0.5))
  x = small.strings([4], 4)
  params = small.init(f, x)
  outs = [
    small.jitted(f)(params, key, x)
    for key in (None, None, jax.random.key(0), jax.random.key(1))
  ]
  np.testing.assert_array_equal(outs[0], outs[1])
  assert not np.allclose(outs[1], outs[2])
  assert not np.allclose(outs[2], outs[3])


@pytest.mark.parametrize(
  ('params', 'message'),
  [
    ({'embedding_dim': 10, 'num_heads': 4}, 'a multiple of num_heads'),
    ({'positional_encodings': 'LEARNED'}, 'LEARNED'),
    (
      {'positional_encodings': 'RELATIVE', 'randomized_positions': 50},
      'randomized_positions are not for RELATIVE',
    ),
    ({'randomized_positions': 0}, 'randomized_positions must be at least 1'),
    ({'embedding_dim': 7, 'num_heads': 7}, 'SIN_COS'),
    ({'num_hiddens_per_head': 3, 'positional_encodings': 'ROTARY'}, 'ROTARY'),
    ({'attention_window': 0}, 'attention_window must be at least 1'),
  ],
)
def test_bad_hyperparameters_are_refused(params, message):
  with pytest.raises(ValueError, match=message):
    transformer.make_transformer_encoder(small.O, **params)
