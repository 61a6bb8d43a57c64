"""Tests of the baselines and of the wrappers around them."""

import dataclasses
import functools

import haiku as hk
import jax
from jax import test_util
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import baselines, position_biases
from regulargpt_jax.baselines import (
  ndstack_rnn,
  positional_encodings,
  rnn,
  stack_rnn,
  tape_rnn,
  transformer,
  wrappers,
)
from tests.regulargpt_jax import numpy_baselines

ENCODINGS = list(positional_encodings.PositionalEncodings)
V, O = 3, 4  # Input and output classes.

RNN_PARAMS = {
  'rnn': {},
  'lstm': {},
  'stack_rnn': {'stack_cell_size': 2, 'stack_size': 5, 'n_stacks': 2},
  'stack_lstm': {'stack_cell_size': 2, 'stack_size': 5},
  'ndstack_rnn': {'stack_symbols': 2, 'stack_states': 2, 'stack_size': 9},
  'tape_rnn': {
    'memory_cell_size': 2,
    'memory_size': 7,
    'n_tapes': 2,
    'mlp_layers_size': (3,),
  },
}
TRANSFORMER_PARAMS = {'embedding_dim': 8, 'num_layers': 1, 'num_heads': 2}


def _make(name, **params):
  """Returns a tiny model with all its outputs."""
  if 'transformer' in name:
    params = TRANSFORMER_PARAMS | params
  else:
    params = {'hidden_size': 3} | RNN_PARAMS[name] | params
  return baselines.BUILDERS[name](
    output_size=O, return_all_outputs=True, **params
  )


def _init(f, *args, **kwargs):
  """Returns random parameters, large enough that every part of f matters."""
  shapes = jax.eval_shape(
    functools.partial(f.init, **kwargs), jax.random.key(0), *args
  )
  rng = np.random.default_rng(1)
  return jax.tree.map(
    lambda p: jnp.array(0.5 * rng.normal(size=p.shape), p.dtype), shapes
  )


@functools.cache
def _jitted(f, **static):
  return jax.jit(functools.partial(f.apply, **static))


def _apply(f, params, *args, **static):
  """Calls f without dropout, compiled once for each width."""
  return np.asarray(_jitted(f, **static)(params, None, *args))


def _strings(lengths, width, num_symbols=V, seed=0):
  """Returns right-aligned one-hot strings, the same in every width."""
  rng = np.random.default_rng(seed)
  x = np.zeros((len(lengths), width, num_symbols), np.float32)
  for row, length in zip(x, lengths, strict=True):
    symbols = rng.integers(num_symbols, size=64)[:length]
    if length:
      row[-length:] = np.eye(num_symbols)[symbols]
  return jnp.array(x)


@dataclasses.dataclass
class _Task:
  """Knows how many outputs a string has."""

  outputs_per_symbol: float

  def output_length(self, input_length):
    # Python's own arithmetic: cannot be traced.
    return max(1, int(input_length * self.outputs_per_symbol))


# ---------------------------------------------------------------- padding

NON_AUTOREGRESSIVE = [(name, {}) for name in RNN_PARAMS] + [
  ('transformer_encoder', {'positional_encodings': e, 'num_layers': 2})
  for e in ENCODINGS
]
AUTOREGRESSIVE = (
  [(name, {}) for name in RNN_PARAMS]
  + [
    ('transformer_encoder', {'positional_encodings': e, 'causal_masking': True})
    for e in ENCODINGS
  ]
  + [('transformer', {'positional_encodings': e}) for e in ENCODINGS]
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


@pytest.mark.parametrize('outputs_per_symbol', [0, 1.5])
@pytest.mark.parametrize('name, params', NON_AUTOREGRESSIVE, ids=_id)
def test_padding_does_not_change_the_answer(name, params, outputs_per_symbol):
  task = _Task(outputs_per_symbol)
  is_single = not outputs_per_symbol
  f = hk.transform(
    wrappers.make_model_with_empty_targets(
      _make(name, **params), task, 0 if is_single else 1, is_single
    )
  )
  unpadded = _strings([4, 4], 4)
  model_params = _init(f, unpadded)
  expected = _apply(f, model_params, unpadded)
  # A longer neighbour in the batch must not matter either.
  padded = jnp.concatenate([_strings([4, 4], 7), _strings([7], 7, seed=1)])
  actual = _apply(f, model_params, padded)

  assert np.ptp(np.asarray(expected[0])) > 1e-3
  if is_single:
    assert actual.shape == (3, O)
    np.testing.assert_allclose(actual[:2], expected, atol=1e-5)
  else:
    assert actual.shape == (3, task.output_length(7), O)
    start = task.output_length(7) - task.output_length(4)
    np.testing.assert_allclose(actual[:2, start:], expected, atol=1e-5)
    assert not np.any(actual[:2, :start])
    assert np.all(np.any(actual[2], axis=-1))


@pytest.mark.parametrize('name, params', AUTOREGRESSIVE, ids=_id)
def test_padding_does_not_change_autoregressive_answers(name, params):
  model = _make(name, **params)
  if name != 'transformer':
    model = wrappers.make_model_with_targets_as_input(model, 1)
  f = hk.transform(wrappers.add_sampling_to_autoregressive_model(model))
  x, y = _strings([4, 4], 4), _strings([3, 3], 3, O)
  model_params = _init(f, x, y, sample=False)

  expected = _apply(f, model_params, x, y, sample=False)
  x = jnp.concatenate([_strings([4, 4], 6), _strings([6], 6, seed=1)])
  # Inputs and outputs are padded by different amounts.
  y = jnp.concatenate([_strings([3, 3], 6, O), _strings([5], 6, O, seed=1)])
  actual = _apply(f, model_params, x, y, sample=False)
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
  model = _make(name, **params)
  if name != 'transformer':
    model = wrappers.make_model_with_targets_as_input(model)
  f = hk.transform(wrappers.add_sampling_to_autoregressive_model(model))
  x, y = _strings([4, 6], 6), _strings([3, 5], 5, O)
  params = _init(f, x, y, sample=False)
  sampled = _apply(f, params, x, y, sample=True)
  is_output = np.any(y != 0, axis=-1, keepdims=True)
  predictions = jnp.eye(O)[sampled.argmax(-1)] * is_output
  given = _apply(f, params, x, y, sample=False)
  fed_back = _apply(f, params, x, predictions, sample=False)
  np.testing.assert_allclose(sampled, fed_back, atol=1e-5)
  assert np.abs(given - sampled).max() > 1e-3


@pytest.mark.parametrize('name', ['tape_rnn', 'transformer'])
def test_padding_does_not_change_single_autoregressive_answers(name):
  model = _make(name)
  if name != 'transformer':
    model = wrappers.make_model_with_targets_as_input(model)
  f = hk.transform(wrappers.add_sampling_to_autoregressive_model(model, True))
  y = _strings([1, 1], 1, O)[:, 0]
  params = _init(f, _strings([4, 4], 4), y, sample=False)
  expected = _apply(f, params, _strings([4, 4], 4), y, sample=False)
  assert expected.shape == (2, O)
  actual = _apply(f, params, _strings([4, 4], 6), y, sample=True)
  np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_models_return_the_last_output():
  for name in ('rnn', 'transformer_encoder'):
    params = {'hidden_size': 4} if name == 'rnn' else TRANSFORMER_PARAMS
    build = functools.partial(baselines.BUILDERS[name], O, **params)
    x = _strings([3, 3], 4)
    every = hk.transform(build(return_all_outputs=True))
    last = hk.transform(build())
    p = _init(every, x)
    np.testing.assert_allclose(
      _apply(last, p, x), _apply(every, p, x)[:, -1], atol=1e-6
    )


# ---------------------------------------------------------------- the papers


@pytest.mark.parametrize('name', RNN_PARAMS)
def test_recurrent_models_are_those_of_the_papers(name):
  f = hk.transform(_make(name))
  x = _strings([4], 4)
  params = _init(f, x)
  expected = numpy_baselines.recurrent(
    params, name, np.asarray(x[0]), hidden_size=3, **RNN_PARAMS[name]
  )
  np.testing.assert_allclose(_apply(f, params, x)[0], expected, atol=1e-5)


@pytest.mark.parametrize('encodings', ENCODINGS)
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
  x, y = _strings([3], 3), _strings([4], 4, O)
  string, target = np.asarray(x[0]), np.asarray(y[0])
  for fields in ({'causal_masking': True}, {'attention_window': 3}):
    fields = hyperparameters | fields
    f = hk.transform(transformer.make_transformer_encoder(O, True, **fields))
    params = _init(f, x)
    is_causal = fields.pop('causal_masking', False)
    expected = numpy_baselines.encoder(
      params, transformer.TransformerConfig(**fields), string, is_causal
    )
    actual = f.apply(params, None, x)[0]
    np.testing.assert_allclose(actual, expected, atol=1e-5)
  f = hk.transform(transformer.make_transformer(O, True, **hyperparameters))
  params = _init(f, x, y)
  expected = numpy_baselines.encoder_decoder(
    params, transformer.TransformerConfig(**hyperparameters), string, target
  )
  actual = f.apply(params, None, x, y)[0]
  np.testing.assert_allclose(actual, expected, atol=1e-5)


# ---------------------------------------------------------------- recurrent


@pytest.mark.parametrize(
  'name, params',
  [(name, {}) for name in RNN_PARAMS]
  + [('transformer_encoder', {'positional_encodings': 'RELATIVE'})],
  ids=_id,
)
def test_gradients_match_finite_differences(name, params):
  with jax.enable_x64(True):
    f = hk.transform(_make(name, **params))
    x = _strings([3], 4).astype(jnp.float64)
    params = _init(f, x)
    assert all(p.dtype == jnp.float64 for p in jax.tree.leaves(params))
    loss = jax.jit(lambda p: jnp.sum(f.apply(p, None, x)[:, 1:] ** 2))
    test_util.check_grads(loss, (params,), order=1, modes=['rev'], eps=1e-6)


def test_input_windows_are_counted_from_the_end():
  x = _strings([4], 4)
  f = hk.transform(
    rnn.make_rnn(O, hk.LSTM, True, input_window=3, hidden_size=4)
  )
  params = _init(f, x)
  out = _apply(f, params, x)
  assert out.shape == (1, 2, O)
  padded = _apply(f, params, _strings([4], 8))
  assert padded.shape == (1, 3, O)
  np.testing.assert_allclose(padded[:, 1:], out, atol=1e-5)
  # The same as a window of 1 on concatenated rows.
  rows = jnp.pad(x, ((0, 0), (2, 0), (0, 0))).reshape(1, 2, 3 * V)
  joined = hk.transform(rnn.make_rnn(O, hk.LSTM, True, hidden_size=4))
  np.testing.assert_allclose(_apply(joined, params, rows), out, atol=1e-5)


MEMORY = {
  'stack_rnn': 'stack_size',
  'stack_lstm': 'stack_size',
  'ndstack_rnn': 'stack_size',
  'tape_rnn': 'memory_size',
}


@pytest.mark.parametrize('name, size', MEMORY.items())
def test_parameters_do_not_depend_on_the_memory_size(name, size):
  x = _strings([4], 4)
  small, large = (
    hk.transform(_make(name, **{size: cells})) for cells in (6, 11)
  )
  params = _init(small, x)
  shapes = jax.eval_shape(large.init, jax.random.key(0), x)
  assert jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, shapes)
  out = _apply(small, params, x), _apply(large, params, x)
  if name != 'tape_rnn':  # Four pushes fill neither stack.
    np.testing.assert_allclose(*out, atol=1e-5)


def test_stack_pushes_pops_and_stays():
  size = 3
  stack = jnp.zeros((1, 2, size, 1))
  expected = [[0.0] * size, [0.0] * size]
  rng = np.random.default_rng(0)
  for step in range(1, 30):
    actions = rng.integers(3, size=2)
    for cells, action in zip(expected, actions, strict=True):
      if action == 0:
        cells.insert(0, float(step))
        cells.pop()
      elif action == 1:
        cells.pop(0)
        cells.append(0.0)
    stack = stack_rnn.update_stack(
      stack, jnp.eye(3)[actions][None], jnp.full((1, 2, 1), float(step))
    )
    np.testing.assert_array_equal(stack[0, :, :, 0], expected)


@pytest.mark.parametrize('action', range(5))
def test_tape_moves_and_jumps(action):
  jumps = [2, 3]
  tape = jnp.arange(2.0 * 1 * 5 * 1).reshape(2, 1, 5, 1)
  value = jnp.full((2, 1, 1), -1.0)
  weights = jnp.broadcast_to(jnp.eye(5)[action], (2, 1, 5))
  new = tape_rnn.update_tape(tape, weights, value, jnp.array(jumps))
  for row, old, jump in zip(new, np.array(tape), jumps, strict=True):
    old[0, 0] = -1.0
    roll = [0, -1, 1, -jump, jump][action]
    for cell in range(5):
      assert row[0, cell, 0] == old[0, (cell - roll) % 5, 0]


def test_tape_mixes_moves():
  rng = np.random.default_rng(0)
  tape, value = rng.normal(size=(2, 3, 5, 2)), rng.normal(size=(2, 3, 2))
  weights = rng.dirichlet(np.ones(5), size=(2, 3))
  jumps = jnp.array([2, 3])
  update = functools.partial(
    tape_rnn.update_tape, jnp.array(tape), value_BxNxC=value, jump_B=jumps
  )
  each = [
    update(action_BxNx5=jnp.broadcast_to(e, (2, 3, 5))) for e in np.eye(5)
  ]
  expected = sum(weights[:, :, a, None, None] * each[a] for a in range(5))
  actual = update(action_BxNx5=jnp.array(weights))
  np.testing.assert_allclose(actual, expected, atol=1e-5)


def _new_stack(num_states, num_symbols, size, batch_size=1):
  core = hk.transform(
    lambda: ndstack_rnn.NDStackRNNCore(
      num_symbols, num_states, size, hidden_size=1
    ).initial_state(batch_size)[:-1]
  )
  return core.apply({}, None)


@pytest.mark.parametrize('num_states, num_symbols', [(1, 2), (2, 3)])
def test_ndstack_sums_over_all_runs(num_states, num_symbols):
  rng = np.random.default_rng(0)
  stack = _new_stack(num_states, num_symbols, 6)
  update = jax.jit(ndstack_rnn.update_stack)
  runs = {(0, (0,)): 1.0}
  nodes = (num_states, num_symbols)
  for _ in range(6):
    push, replace = rng.gamma(0.5, size=(2, *nodes, *nodes))
    pop = 3 * rng.gamma(0.5, size=(*nodes, num_states))
    stack = update(*stack, push[None], replace[None], pop[None])
    runs, expected = numpy_baselines.enumerated_reading(
      runs, push, replace, pop
    )
    np.testing.assert_allclose(stack[2][0], expected, atol=1e-5)


def test_ndstack_is_a_stack_at_any_length():
  length = 60
  rng = np.random.default_rng(0)
  symbols = rng.integers(2, size=length)
  stack = _new_stack(1, 2, length)
  update = jax.jit(ndstack_rnn.update_stack)
  nothing = jnp.zeros((1, 1, 2, 1, 2))
  # However unlikely each step, the reading is that of the only run.
  weight = 1e-3
  for symbol in symbols:
    push = nothing.at[..., symbol].set(weight)
    stack = update(*stack, push, nothing, jnp.zeros((1, 1, 2, 1)))
    np.testing.assert_allclose(stack[2][0, 0], np.eye(2)[symbol], atol=1e-5)
  for symbol in symbols[-2::-1]:
    pop = jnp.full((1, 1, 2, 1), weight)
    stack = update(*stack, nothing, nothing, pop)
    np.testing.assert_allclose(stack[2][0, 0], np.eye(2)[symbol], atol=1e-5)
  # The first symbol of all cannot be uncovered: no run is left.
  stack = update(*stack, nothing, nothing, pop)
  assert not np.any(stack[2])


# ---------------------------------------------------------------- encodings


def test_sinusoids_match_the_formula():
  positions = np.array([[0, 1, 7], [-2, 5, 300]])
  actual = positional_encodings.sinusoids(jnp.array(positions), 6, 100)
  for b, t, i in np.ndindex(2, 3, 3):
    angle = positions[b, t] / 100 ** (2 * i / 6)
    np.testing.assert_allclose(actual[b, t, i], np.sin(angle), atol=1e-5)
    np.testing.assert_allclose(actual[b, t, 3 + i], np.cos(angle), atol=1e-5)


def test_rotation_matches_the_formula():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(2, 3, 1, 4)).astype(np.float32)
  positions = np.array([[0, 1, 2], [-1, 0, 9]])
  actual = positional_encodings.rotate(jnp.array(x), jnp.array(positions), 100)
  for b, t, i in np.ndindex(2, 3, 2):
    angle = positions[b, t] * 100 ** (-2 * i / 4)
    pair = complex(*x[b, t, 0, 2 * i : 2 * i + 2]) * np.exp(1j * angle)
    np.testing.assert_allclose(
      actual[b, t, 0, 2 * i : 2 * i + 2], [pair.real, pair.imag], atol=1e-5
    )


def test_rotated_products_depend_on_the_distance_only():
  rng = np.random.default_rng(0)
  q, k = jnp.array(rng.normal(size=(2, 1, 5, 1, 6)), jnp.float32)
  products = []
  for offset in (0, 3):
    position = jnp.arange(5)[None] + offset
    products.append(
      jnp.einsum(
        'bqhd,bkhd->bhqk',
        positional_encodings.rotate(q, position, 100),
        positional_encodings.rotate(k, position, 100),
      )
    )
  np.testing.assert_allclose(*products, atol=1e-5)
  assert np.abs(products[0] - jnp.einsum('bqhd,bkhd->bhqk', q, k)).max() > 0.1


def test_alibi_matches_the_formula():
  assert position_biases.alibi_slopes(8) == [2.0**-h for h in range(1, 9)]
  assert position_biases.alibi_slopes(3) == [2**-4, 2**-8, 2**-2]
  slopes = position_biases.alibi_slopes(2)
  q_position, k_position = np.array([[0, 3]]), np.array([[0, 1, 5]])
  bias = positional_encodings.alibi_bias(
    jnp.array(q_position[:, :, None] - k_position[:, None]), 2
  )
  for h, q, k in np.ndindex(2, 2, 3):
    distance = q_position[0, q] - k_position[0, k]
    penalty = distance - 0.5 if distance > 0 else -distance
    assert bias[0, h, q, k] == -slopes[h] * penalty


@pytest.mark.parametrize('num_queries, num_keys', [(4, 4), (1, 3), (3, 5)])
@pytest.mark.parametrize('first_distance', [[0], [2, -3]])
def test_relative_logits_match_the_formula(
  num_queries, num_keys, first_distance
):
  num_heads, size, max_time = 2, 3, 50
  rng = np.random.default_rng(0)
  q = rng.normal(size=(2, num_queries, num_heads, size)).astype(np.float32)
  k = rng.normal(size=(2, num_keys, num_heads, size)).astype(np.float32)
  f = hk.transform(positional_encodings.relative_logits)
  args = (jnp.array(q), jnp.array(k), jnp.array(first_distance), max_time)
  params = _init(f, *args)
  actual = jax.jit(f.apply, static_argnums=5)(params, None, *args)
  (biases,) = [p for p in params.values() if 'content_bias' in p]
  u, v = biases['content_bias'], biases['position_bias']
  w = params['relative_key']['w']
  for b, h, i, j in np.ndindex(2, num_heads, num_queries, num_keys):
    distance = i - j + first_distance[b % len(first_distance)]
    r = positional_encodings.sinusoids(
      jnp.array(distance), num_heads * size, max_time
    )
    r = np.asarray(r @ w).reshape(num_heads, size)[h]
    expected = (q[b, i, h] + u[h]) @ k[b, j, h] + (q[b, i, h] + v[h]) @ r
    np.testing.assert_allclose(actual[b, h, i, j], expected, atol=1e-4)


def test_relative_encodings_need_no_array_beyond_the_shifted_logits():
  batch_size, length, num_heads = 2, 40, 8
  f = hk.transform(
    transformer.make_transformer_encoder(
      O, embedding_dim=16, num_layers=1, positional_encodings='RELATIVE'
    )
  )
  x = _strings([length] * batch_size, length)
  params = _init(f, x)
  jaxpr = jax.make_jaxpr(jax.grad(lambda p: f.apply(p, None, x).sum()))(params)
  largest = max(
    variable.aval.size
    for equation in jaxpr.eqns
    for variable in equation.outvars
  )
  assert largest <= batch_size * num_heads * length * 2 * length


# -------------------------------------------------------------- transformers


def _is_changed(f, params, args, changed_args):
  """Returns where the outputs differ, bool [B, T]."""
  new, old = (_apply(f, params, *a) for a in (changed_args, args))
  return np.abs(new - old).max(-1) > 1e-5


@pytest.mark.parametrize('encodings', ['ALIBI', 'RELATIVE'])
@pytest.mark.parametrize('is_causal', [False, True])
def test_causal_masking(encodings, is_causal):
  f = hk.transform(
    _make(
      'transformer_encoder',
      positional_encodings=encodings,
      causal_masking=is_causal,
    )
  )
  x = _strings([5], 6)
  params = _init(f, x)
  changed = x.at[:, 3].set(jnp.roll(x[:, 3], 1, axis=-1))
  is_changed = _is_changed(f, params, (x,), (changed,))[0, 1:]
  assert is_changed.tolist() == [not is_causal] * 2 + [True] * 3


@pytest.mark.parametrize('encodings', ['SIN_COS', 'RELATIVE'])
def test_decoder_reads_earlier_targets_only(encodings):
  f = hk.transform(_make('transformer', positional_encodings=encodings))
  x, y = _strings([4], 4), _strings([5], 6, O)
  params = _init(f, x, y)
  changed = y.at[:, 3].set(jnp.roll(y[:, 3], 1, axis=-1))
  is_changed = _is_changed(f, params, (x, y), (x, changed))[0, 1:]
  assert is_changed.tolist() == [False, False, False, True, True]


def test_targets_start_with_a_start_symbol():
  y = _strings([3, 1], 4, 2)
  shifted = transformer.shift_right(y)
  start = [0, 0, 1]
  np.testing.assert_array_equal(shifted[0, :2], [[0, 0, 0], start])
  np.testing.assert_array_equal(shifted[0, 2:, :2], y[0, 1:3])
  np.testing.assert_array_equal(shifted[1], [[0, 0, 0]] * 3 + [start])


@pytest.mark.parametrize('encodings', ENCODINGS)
def test_encodings_tell_the_order(encodings):
  f = hk.transform(_make('transformer_encoder', positional_encodings=encodings))
  x = jnp.eye(V)[jnp.array([[0, 0, 1, 2, 2], [1, 0, 0, 2, 2]])]
  params = _init(f, x)
  first, second = _apply(f, params, x)[:, -1]
  is_same = np.abs(first - second).max() < 1e-5
  assert is_same == (encodings == 'NONE')


@pytest.mark.parametrize('window', [1, 2, 4])
def test_attention_window(window):
  f = hk.transform(_make('transformer_encoder', attention_window=window))
  x = _strings([7], 7)
  params = _init(f, x)
  changed = x.at[:, 3].set(jnp.roll(x[:, 3], 1, axis=-1))
  is_changed = _is_changed(f, params, (x,), (changed,))[0]
  expected = [abs(t - 3) <= window // 2 for t in range(7)]
  assert is_changed.tolist() == expected


def test_dropout_acts_only_with_a_key():
  f = hk.transform(_make('transformer_encoder', dropout_prob=0.5))
  x = _strings([4], 4)
  params = _init(f, x)
  outs = [
    _jitted(f)(params, key, x)
    for key in (None, None, jax.random.key(0), jax.random.key(1))
  ]
  np.testing.assert_array_equal(outs[0], outs[1])
  assert not np.allclose(outs[1], outs[2])
  assert not np.allclose(outs[2], outs[3])


@pytest.mark.parametrize(
  'params',
  [
    {'embedding_dim': 10, 'num_heads': 4},
    {'positional_encodings': 'LEARNED'},
    {'embedding_dim': 7, 'num_heads': 7, 'positional_encodings': 'SIN_COS'},
    {'embedding_dim': 6, 'num_heads': 2, 'positional_encodings': 'ROTARY'},
    {'attention_window': 0},
  ],
)
def test_bad_hyperparameters_are_refused(params):
  with pytest.raises(ValueError):
    transformer.make_transformer_encoder(O, **params)


# ---------------------------------------------------------------- wrappers


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
  wrap = lambda m: wrappers.make_model_with_empty_targets(m, _Task(2))  # noqa: E731
  symbols, lengths = _read_by(wrap, x)
  assert symbols == [
    [-1, -1, -1, 0, 1, 2, 2, 2, 2],
    [1, 1, 0, 2, 2, 2, 2, 2, 2],
  ]
  assert lengths == [2, 3]
  wrap = lambda m: wrappers.make_model_with_empty_targets(m, _Task(0), 2)  # noqa: E731
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
  sampled = _apply(f, {}, x, y, sample=True)
  assert sampled.argmax(-1).tolist() == [[2, 3, 4, 0, 1], [0, 0, 2, 3, 4]]
  given = _apply(f, {}, x, y, sample=False)
  assert given.argmax(-1).tolist() == [[2, 1, 1, 1, 1], [0, 0, 2, 0, 0]]


@pytest.mark.parametrize(
  'model',
  [
    rnn.make_rnn(O, hk.VanillaRNN, hidden_size=2),
    rnn.make_rnn(O, hk.VanillaRNN, True, input_window=2, hidden_size=2),
  ],
)
def test_wrappers_refuse_models_without_all_outputs(model):
  f = hk.transform(wrappers.make_model_with_empty_targets(model, _Task(2)))
  with pytest.raises(ValueError, match='all its outputs'):
    jax.eval_shape(f.init, jax.random.key(0), _strings([3], 3))
