"""Every registered model on every registered task."""

import collections
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.formal import builders, config, data, registries, training
from regulargpt_jax import baselines, recurrent
from tests import slow
from tests.experiments.formal import tiny

_LENGTH = 5
_WIDTHS = (5, 8)
_TINY = config.Experiment(
  chunk_size=3,
  embedding_dim=8,
  num_heads=2,
  sequence_length=_LENGTH,
  max_range_test_length=_WIDTHS[-1],
  batch_size=4,
  smallest_bucket=_LENGTH,
)
_SMALL = {
  'rnn': {'hidden_size': 4},
  'lstm': {'hidden_size': 4},
  'stack_rnn': {'hidden_size': 4, 'stack_cell_size': 2},
  'stack_lstm': {'hidden_size': 4, 'stack_cell_size': 2},
  'ndstack_rnn': {'hidden_size': 4},
  'tape_rnn': {
    'hidden_size': 4,
    'memory_cell_size': 2,
    'mlp_layers_size': (4,),
  },
  'transformer_encoder': {'num_layers': 1},
  'transformer': {'num_layers': 1},
  **{name: {'width': 8, 'num_layers': 1} for name in recurrent.MODELS},
  'looped_transformer': {'width': 8},
}


def _experiment(architecture, task, **fields):
  if architecture in recurrent.MODELS:
    fields = {**tiny.NO_SIZES, **fields}
  return dataclasses.replace(
    _TINY,
    architecture=architecture,
    architecture_params=_SMALL.get(architecture, {}),
    task=task,
    **fields,
  )


class _Recorded:
  """A task's sizes, with its batches handed in: tasks alike share programs."""

  def __init__(self, input_size, output_size, output_lengths):
    self.input_size = input_size
    self.output_size = output_size
    self._output_lengths = output_lengths

  def output_length(self, input_length):
    return self._output_lengths[input_length]


# Not all programs at once: thousands of compiled kernels exhaust the memory
# maps that a process may have.
@functools.lru_cache(maxsize=32)
def _programs(architecture, sizes, is_autoregressive):
  """Returns a model's init, training step and test logits, compiled."""
  experiment = _experiment(
    architecture, 'parity_check', is_autoregressive=is_autoregressive
  )
  model = builders.make_model(experiment, _Recorded(*sizes))

  @jax.jit
  def step(params, tokens, target):
    def loss_fn(params):
      logits = model.apply(params, tokens, target, jax.random.key(0))
      log_p = jax.nn.log_softmax(logits)
      return -jnp.sum(target * log_p), logits

    (loss, logits), gradient = jax.value_and_grad(loss_fn, has_aux=True)(params)
    params = jax.tree.map(lambda p, g: p - 0.01 * g, params, gradient)
    return params, loss, logits

  test = jax.jit(functools.partial(model.apply, is_test=True))
  return jax.jit(model.init)(jax.random.key(1)), step, test


def _batch(task, width):
  """Returns tokens and targets of one length in a width."""
  source = data.make_source(task, _TINY.batch_size, [width])
  # Compiled as one: op by op it takes many times as long.
  batch = jax.jit(source.batch, static_argnums=2)
  return batch(jax.random.key(0), jnp.int32(_LENGTH), width)


def _check(architecture, name, is_autoregressive=False):
  task = registries.TASK_BUILDERS[name]()
  lengths = tuple(task.output_length(n) for n in range(_WIDTHS[-1] + 4))
  sizes = (task.input_size, task.output_size, lengths)
  params, step, test = _programs(architecture, sizes, is_autoregressive)
  wide_tokens, wide_target = _batch(task, _WIDTHS[1])
  # The width changes no string: see test_batches_of_every_task.
  tokens, target = wide_tokens[:, -_WIDTHS[0] :], wide_target
  if target.ndim == 3:
    target = target[:, -lengths[_WIDTHS[0]] :]
  for _ in range(2):
    params, loss, logits = step(params, tokens, target)
    assert np.isfinite(loss)
    assert logits.shape == target.shape
    assert np.isfinite(logits).all()
  bare = test(params, tokens, target)
  padded = test(params, wide_tokens, wide_target)
  assert padded.shape == wide_target.shape
  bare, target, padded = map(np.asarray, (bare, target, padded))
  if target.ndim == 3:
    padded = padded[:, -target.shape[1] :]
  present = np.asarray(data.present(target))[..., None]
  np.testing.assert_allclose(padded * present, bare * present, atol=1e-5)


_LIKE_OTHERS = (
  *('d_1', 'd_2', 'd_3', 'd_4', 'tomita_1', 'tomita_2', 'tomita_4'),
  *('tomita_7', 'aa', 'abab', 'compute_sqrt', 'binary_multiplication'),
)


@pytest.mark.parametrize(
  'name',
  slow.unless(lambda name: name not in _LIKE_OTHERS, registries.TASK_BUILDERS),
)
def test_batches_of_every_task(name):
  """The width changes no string, and the targets themselves are right."""
  task = registries.TASK_BUILDERS[name]()
  tokens, target = _batch(task, _WIDTHS[0])
  wide_tokens, wide_target = _batch(task, _WIDTHS[1])
  np.testing.assert_array_equal(wide_tokens[:, -tokens.shape[1] :], tokens)
  if target.ndim == 3:
    wide_target = wide_target[:, -target.shape[1] :]
  np.testing.assert_array_equal(wide_target, target)
  right, counted = jax.jit(functools.partial(training.count_right, task))(
    target, target
  )
  assert 0 < counted <= target[..., 0].size
  assert right == counted


# One of each number of symbols and of answers; the slow tests take all.
@pytest.mark.parametrize(
  'name', ['parity_check', 'd_12', 'modular_arithmetic', 'bucket_sort']
)
def test_regular_gpt_on_every_kind_of_task(name):
  _check('regular_gpt', name)


# Models of one kind are given tasks in one way, and each is tested by itself;
# the slow tests take all.
_FIRST = ('rnn', 'rwkv_7')


@pytest.mark.parametrize(
  ('architecture', 'name'),
  [
    *((n, 'modular_arithmetic') for n in _FIRST),
    *((n, 'reverse_string') for n in ('stack_rnn', 'transformer')),
  ],
)
def test_models_on_tasks_of_one_answer_and_of_several(architecture, name):
  _check(architecture, name)


@pytest.mark.parametrize(
  'architecture',
  slow.unless(
    lambda name: name in ('regular_gpt', 'tape_rnn', 'mamba_2'),
    registries.MODEL_BUILDERS,
  ),
)
def test_every_model_autoregressively(architecture):
  _check(architecture, 'reverse_string', is_autoregressive=True)


@pytest.mark.slow
@pytest.mark.parametrize('name', registries.TASK_BUILDERS)
@pytest.mark.parametrize('architecture', registries.MODEL_BUILDERS)
def test_every_model_on_every_task(architecture, name):
  _check(architecture, name)


def test_names_are_the_benchmarks_and_those_since():
  assert set(registries.MODEL_BUILDERS) == {
    'regular_gpt',
    'rnn',
    'lstm',
    'stack_rnn',
    'stack_lstm',
    'ndstack_rnn',
    'tape_rnn',
    'transformer_encoder',
    'transformer',
    *recurrent.MODELS,
  }
  # A name that were in two levels would be missing from one.
  assert len(registries.TASK_BUILDERS) == 31
  assert collections.Counter(registries.TASK_LEVELS.values()) == {
    'regular': 4 + 15 + 1,
    'dcf': 4,
    'cs': 7,
  }


def test_options_that_a_baseline_has_not_are_refused():
  task = registries.TASK_BUILDERS['parity_check']()
  for fields in (
    {'precision': 'bfloat16'},
    {'max_extra_levels': 1},
    {'contraction_weight': 0.1},
    {'spread_weight': 0.1},
    {'node_weight': 0.1},
    {'dropout_rate': 0.1},
  ):
    with pytest.raises(ValueError, match=next(iter(fields)).split('_')[0]):
      builders.make_model(_experiment('rnn', 'parity_check', **fields), task)
  with pytest.raises(ValueError, match='hidden_sise'):
    experiment = dataclasses.replace(
      _TINY, architecture='rnn', architecture_params={'hidden_sise': 3}
    )
    builders.make_model(experiment, task)


@pytest.mark.parametrize(
  ('architecture', 'fields', 'message'),
  [
    ('transformer', {'computation_steps_mult': 2}, 'computation'),
    ('regular_gpt', {'architecture_params': {'dropout_rate': 0.5}}, 'flag'),
    (
      'transformer_encoder',
      {'architecture_params': {'causal_masking': False}},
      '--is_autoregressive',
    ),
    (
      'transformer_encoder',
      {'architecture_params': {'positional_encodings': 'X'}},
      'SIN_COS',
    ),
    (
      'transformer_encoder',
      {'architecture_params': {'randomized_positions': 15}},
      r'longest string \(16\)',
    ),
    (
      'transformer_encoder',
      {
        'architecture_params': {'randomized_positions': 17},
        'sequence_length': 9,
      },
      r'longest string \(18\)',
    ),
    ('rnn', {'architecture_params': {'input_window': 2}}, 'return all'),
  ],
)
def test_impossible_models_are_refused_at_once(architecture, fields, message):
  experiment = dataclasses.replace(_TINY, architecture=architecture, **fields)
  task = registries.TASK_BUILDERS['reverse_string']()
  with pytest.raises(ValueError, match=message):
    builders.make_model(experiment, task)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'dropout_rate': 0.5}, 'whose sizes are --architecture_params'),
    ({'architecture_params': {'widht': 8}}, 'eigenvalues, num_heads'),
    ({'architecture_params': {'width': 8.5}}, 'a whole number, got 8.5'),
    ({'architecture_params': {'last_only': True}}, 'last_only follows from'),
    (
      {'architecture_params': {'eigenvalues': '[0,2]'}},
      r"must be '\[0,1\]' or '\[-1,1\]', got",
    ),
    (
      {'architecture_params': {'eigenvalues': [-1, 1]}},
      r"must be '\[0,1\]' or '\[-1,1\]', got",
    ),
    # Of ours without what they are made of.
    ({'architecture_params': {'num_heads': 3}}, '^num_heads must divide width'),
    ({'architecture_params': {'width': 0}}, '^width must be at least 1, got 0'),
  ],
)
def test_impossible_models_of_tokens_are_refused_at_once(fields, message):
  experiment = _experiment('rwkv_7', 'parity_check')
  experiment = dataclasses.replace(experiment, **fields)
  with pytest.raises(ValueError, match=message):
    builders.make_task_and_model(experiment)


def _logits(architecture, task_name, fields, tokens, target, is_test):
  """Test or training logits from the same initial parameters."""
  task = registries.TASK_BUILDERS[task_name]()
  params = _SMALL[architecture] | fields.pop('architecture_params', {})
  experiment = _experiment(architecture, task_name, **fields)
  experiment = dataclasses.replace(experiment, architecture_params=params)
  model = builders.make_model(experiment, task)
  own = jax.jit(model.init)(jax.random.key(1))
  own = jax.tree.map(lambda x: 3.0 * x, own)
  return jax.jit(functools.partial(model.apply, is_test=is_test))(
    own, tokens, target
  )


@pytest.mark.parametrize(
  'architecture',
  slow.unless(lambda name: name == 'stack_rnn', ['stack_rnn', 'ndstack_rnn']),
)
def test_stacks_do_not_overflow_by_default(architecture):
  task = registries.TASK_BUILDERS['reverse_string']()
  tokens, target = _batch(task, _LENGTH)
  by_default, roomy, tight = (
    _logits(architecture, 'reverse_string', fields, tokens, target, True)
    for fields in (
      {},
      {'architecture_params': {'stack_size': 40}},
      {'architecture_params': {'stack_size': 1}},
    )
  )
  np.testing.assert_allclose(by_default, roomy, atol=1e-5)
  assert jnp.abs(by_default - tight).max() > 1e-4


@pytest.mark.parametrize(
  ('task_name', 'mult', 'trained', 'tested'),
  [('parity_check', 0, 6, 9), ('duplicate_string', 2, 25, 40)],
)
def test_a_tape_holds_what_the_longest_string_needs(
  task_name, mult, trained, tested, monkeypatch
):
  sizes = []
  build = baselines.BUILDERS['tape_rnn']

  def recording(*args, **kwargs):
    sizes.append(kwargs['memory_size'])
    return build(*args, **kwargs)

  recorded = functools.partial(recording, **build.keywords)
  monkeypatch.setitem(baselines.BUILDERS, 'tape_rnn', recorded)
  task = registries.TASK_BUILDERS[task_name]()
  experiment = _experiment('tape_rnn', task_name, computation_steps_mult=mult)
  builders.make_model(experiment, task)
  assert sizes == [trained, tested]  # Of strings of 5 and of 8 symbols.


def test_computation_tokens_are_read():
  task = registries.TASK_BUILDERS['parity_check']()
  tokens, target = _batch(task, _LENGTH)
  # The same parameters, after more tokens that ask for computation.
  one, two = (
    _logits(
      'rnn', 'parity_check', {'computation_steps_mult': m}, tokens, target, True
    )
    for m in (1, 2)
  )
  assert one.shape == two.shape == target.shape
  assert jnp.abs(one - two).max() > 1e-2


def test_loss_and_accuracy_do_not_count_padding():
  """Also where a user's loss is not zero on it, or nothing is asked."""

  class Squared(type(registries.TASK_BUILDERS['reverse_string']())):
    def pointwise_loss_fn(self, output, target):
      return (output - target) ** 2

  task = Squared()
  rng = np.random.default_rng(0)
  target = jax.nn.one_hot(jnp.array([[1, 0, 1]]), 2)
  logits = jnp.asarray(rng.normal(size=(1, 3, 2)))
  expected = training.loss_and_accuracy(task, logits, target)
  front = jnp.asarray(rng.normal(size=(1, 4, 2)))
  padded = training.loss_and_accuracy(
    task,
    jnp.concatenate([front, logits], 1),
    jnp.pad(target, ((0, 0), (4, 0), (0, 0))),
  )
  np.testing.assert_allclose(padded, expected, rtol=1e-6)
  nothing = training.loss_and_accuracy(task, front, jnp.zeros((1, 4, 2)))
  assert [float(x) for x in nothing] == [0.0, 0.0]
