"""A user's own model: three ways to write it, and what is wrong in one line."""

import dataclasses

from flax import linen as nn
from flax import nnx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.analysis import subject
from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  builders,
  config,
  model_checks,
  range_evaluation,
  registries,
  run,
  token_models,
)
from tests import refusals
from tests.experiments.formal import own_models, tiny

_MODULE = 'tests.experiments.formal.own_models'
_DEFAULTS = dataclasses.replace(tiny.TINY, **tiny.NO_SIZES)
_TINY = dataclasses.replace(
  _DEFAULTS,
  model_module=_MODULE,
  training_steps=2,
  max_range_test_length=7,
  smallest_bucket=7,
)


@pytest.mark.parametrize(
  ('architecture', 'fields'),
  [
    pytest.param('Linen', {}, marks=pytest.mark.slow),
    ('Nnx', {'task': 'reverse_string'}),
    pytest.param('last', {}, marks=pytest.mark.slow),
    ('last', {'computation_steps_mult': 1}),
    pytest.param(
      'Linen',
      {'task': 'reverse_string', 'is_autoregressive': True},
      marks=pytest.mark.slow,
    ),
  ],
)
def test_it_trains_and_is_found_again(architecture, fields, tmp_path):
  fields |= {'architecture': architecture, 'architecture_params': {'width': 3}}
  experiment = dataclasses.replace(_TINY, **fields)
  run.train_and_evaluate(experiment, str(tmp_path))
  printed = tiny.read(tmp_path, 'range_evaluation.csv').splitlines()[1:]
  found, task, model, params = run.load(str(tmp_path), model_module=_MODULE)
  assert found == experiment
  accuracies = range_evaluation.evaluate(
    experiment, task, model, params
  ).accuracy
  assert [float(line.split(',')[1]) for line in printed] == list(accuracies[0])
  with pytest.raises(ValueError, match='needs regular_gpt'):
    subject.load(
      str(tmp_path), run.load_experiment(str(tmp_path), model_module=_MODULE)
    )


def test_three_ways_are_one_function():
  tokens = jnp.array([[-1, -1, 0, 1, 1], [1, 0, 0, 1, 1]])
  task = registries.TASK_BUILDERS['parity_check']()
  made = {
    name: token_models.make(getattr(own_models, name), _DEFAULTS, task)
    for name in ('Linen', 'Nnx', 'last')
  }
  linen = jax.jit(made['Linen'].init)(jax.random.key(0))
  inside = linen['params']
  embedding = inside['Embed_0']['embedding']
  params = {
    'Linen': linen,
    'Nnx': {
      'embed': {'embedding': embedding},
      'layers': {0: {'kernel': inside['w']}},
      'readout': inside['Dense_0'],
    },
    'last': {
      'embed': {'embeddings': embedding},
      '~': {'w': inside['w']},
      'linear': {
        'w': inside['Dense_0']['kernel'],
        'b': inside['Dense_0']['bias'],
      },
    },
  }
  logits = {
    name: jax.jit(model.apply)(params[name], tokens, None)
    for name, model in made.items()
  }
  assert logits['Linen'].shape == (2, 2)
  np.testing.assert_allclose(logits['Nnx'], logits['Linen'], atol=1e-6)
  np.testing.assert_allclose(logits['last'], logits['Linen'], atol=1e-6)
  # With a random number there is dropout, in each way of its own.
  for name, model in made.items():
    again = jax.jit(model.apply)(params[name], tokens, None, jax.random.key(1))
    assert jnp.abs(again - logits[name]).max() > 1e-3, name


def _check(builder, task_name='parity_check', **fields):
  experiment = dataclasses.replace(_DEFAULTS, **fields)
  task = registries.TASK_BUILDERS[task_name]()
  model = token_models.make(builder, experiment, task)
  model_checks.check(
    builder.__name__, model, task, [5, 9], experiment.is_autoregressive
  )


def _check_wide(builder):
  """As `_check`, where strings are padded further."""
  task = registries.TASK_BUILDERS['parity_check']()
  model = token_models.make(builder, _DEFAULTS, task)
  model_checks.check(builder.__name__, model, task, [5, 24], False)


def _of_embedding(f, **linear):
  """Returns a Haiku function: f of embedded tokens, and a readout."""

  def own(tokens, input_size, output_size):
    x = hk.Embed(input_size, 4)(jnp.maximum(tokens, 0))
    return hk.Linear(output_size, **linear)(f(tokens, x))

  return own


def _raise(tokens, x):
  raise RuntimeError('first line\nsecond line')


def _fails_beyond(width):
  def f(tokens, x):
    if tokens.shape[1] > width:
      raise ValueError('too wide')
    return x

  return f


def _without_parameters(tokens, input_size, output_size):
  return jax.nn.one_hot(tokens % 2, output_size)


def _whole_parameter(tokens, input_size, output_size):
  table = hk.get_parameter('t', (2, output_size), jnp.int32, init=jnp.ones)
  return table[tokens] * 1.0


def _empty_parameter(tokens, input_size, output_size):
  hk.get_parameter('e', (0, 3), init=jnp.zeros)
  return hk.Linear(output_size)(_counts(tokens))


def _stateful(tokens, input_size, output_size):
  return hk.BatchNorm(True, True, 0.9)(_counts(tokens), is_training=True)


def _counts(tokens):
  return jax.nn.one_hot(tokens, 2)


class BatchNorm(nn.Module):
  input_size: int
  output_size: int

  @nn.compact
  def __call__(self, tokens):
    return nn.BatchNorm(use_running_average=True)(_counts(tokens))


class NnxBatchNorm(nnx.Module):
  def __init__(self, input_size, output_size, *, rngs):
    self.norm = nnx.BatchNorm(2, rngs=rngs)

  def __call__(self, tokens):
    return self.norm(_counts(tokens))


class NnxLazy(nnx.Module):
  def __init__(self, input_size, output_size, *, rngs):
    self.embed = nnx.Embed(input_size, output_size, rngs=rngs)

  def __call__(self, tokens):
    self.layer = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    return self.layer(self.embed(tokens))


@pytest.mark.parametrize(
  ('builder', 'message'),
  [
    (
      _of_embedding(lambda tokens, x: x[:, 0, :, None]),
      r'\(1, 5, 2\) or \(1, 2',
    ),
    (_of_embedding(lambda tokens, x: x[:1, :1]), 'got float32 of shape'),
    (_of_embedding(_raise), 'RuntimeError: first line'),
    (_of_embedding(_fails_beyond(6)), r'\(1, 9\).*too wide'),
    (
      _of_embedding(lambda tokens, x: x / 0),
      'some of its logits.* are not finite',
    ),
    (_of_embedding(lambda tokens, x: x.mean(1)), 'answers change'),
    (_of_embedding(lambda tokens, x: x.cumsum(1)), 'answers change'),
    (
      _of_embedding(lambda tokens, x: x.mean(1), w_init=jnp.zeros),
      'answers change',
    ),
    (
      _of_embedding(lambda tokens, x: x + jnp.arange(x.shape[1])[:, None]),
      'answers change',
    ),
    (lambda tokens, input_size, output_size: tokens, 'there are none'),
    (_without_parameters, 'there are none'),
    (_whole_parameter, 'must be floats, and one is of int32'),
    (_empty_parameter, r'one has the shape \(0, 3\), and so no number'),
    (_stateful, 'transform_with_state'),
    (BatchNorm, 'it keeps batch_stats'),
    (NnxBatchNorm, 'it keeps BatchStat'),
    (NnxLazy, 'makes parameters when it is called'),
  ],
)
def test_what_a_model_must_not_be_is_one_line(builder, message):
  with refusals.one_line(message) as caught:
    _check(builder)
  assert str(caught.value).startswith(builder.__name__)


def _plain(tokens, x):
  return x


_calls = []


def _counting(tokens, x):
  _calls.append(0)
  return x * len(_calls)


def _beside(change):
  """Returns a Haiku function that would be right, were it not for a change."""

  def own(tokens, input_size, output_size):
    right = _of_embedding(_plain)(tokens, input_size, output_size)
    return change(tokens, right, jnp.arange(output_size) * 5.0)

  return own


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    (
      lambda tokens, x, y: x + y * jnp.arange(len(x))[:, None, None],
      'when other strings stand beside a string',
    ),
    (lambda tokens, x, y: x + y * x.mean(0), 'when other strings'),
    (lambda tokens, x, y: x * len(x), 'when other strings'),
    (
      lambda tokens, x, y: (
        x + 5 * jax.random.normal(jax.random.key(0), x.shape)
      ),
      'when other strings',
    ),
    (lambda tokens, x, y: x + y * (x.shape[1] > 12), 'when 21 more -1 stand'),
    (
      lambda tokens, x, y: x + y * ((tokens < 0).sum() > 60),
      'when 21 more -1 stand',
    ),
    (
      lambda tokens, x, y: jnp.where(x.shape[1] > 12, jnp.nan, x),
      'some of its logits.* are not finite',
    ),
    (lambda tokens, x, y: x + y * np.random.normal(), 'when it is called agai'),
    (lambda tokens, x, y: _counting(tokens, x), 'when it is called again'),
    (lambda tokens, x, y: (x, x), r'\(1, 2\), got tuple'),
    (lambda tokens, x, y: None, r'\(1, 2\), got NoneType'),
  ],
)
def test_answers_depend_on_symbols_alone(change, message):
  with refusals.one_line(message):
    _check_wide(_beside(change))


def test_later_answers_are_not_read():
  # Of one answer there are none.
  _check(own_models.Linen, 'parity_check', is_autoregressive=True)

  def backwards(tokens, x):
    seen = jnp.where((tokens >= 0)[..., None], x, 0)
    return jnp.cumsum(seen[:, ::-1], axis=1)[:, ::-1]

  _check(_of_embedding(backwards), 'reverse_string')
  with pytest.raises(ValueError, match='depends on later ones'):
    _check(_of_embedding(backwards), 'reverse_string', is_autoregressive=True)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'model_module': 'no.such_module'}, 'Cannot import model_module no.such'),
    ({'model_module': 'json'}, r'json defines no model: a Flax module'),
    ({}, 'has several: give --architecture, one of Linen, Nnx, last'),
    ({'architecture': 'helper'}, 'are Linen, Nnx, last'),
    ({'architecture_params': {'depth': 1}}, "no 'depth'.* are width"),
    ({'architecture_params': {'width': 0.5}}, 'width must be a whole number'),
    ({'architecture_params': {'width': -1}}, 'Linen, its parameters: '),
    ({'architecture_params': {'input_size': 3}}, "no 'input_size'"),
    *(
      ({name: value}, f'--{name} is not for Linen')
      for name, value in {
        'chunk_size': 3,
        'thickness': 2,
        'embedding_dim': 32,
        'num_heads': 4,
        'precision': 'bfloat16',
        'preset': 'language',
        'max_extra_levels': 1,
        'dropout_rate': 0.5,
      }.items()
    ),
    ({'architecture_params': {'width': 10**6}}, 'of memory'),
  ],
)
def test_what_cannot_be_leaves_no_workdir(fields, message, tmp_path):
  if 'architecture' not in fields and fields:
    fields = {'architecture': 'Linen', **fields}
  if fields.get('model_module'):
    fields['architecture'] = config.Experiment.architecture
  experiment = dataclasses.replace(_TINY, **fields)
  with refusals.one_line(message):
    run.train_and_evaluate(experiment, str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


def test_a_workdir_runs_no_module_that_is_not_named_again(
  tmp_path, monkeypatch
):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / 'from_anyone.py').write_text('raise RuntimeError("It ran.")')
  workdir = str(tmp_path / 'run')
  (tmp_path / 'run').mkdir()
  experiment = config.Experiment(model_module='from_anyone')
  workdir_lib.claim(experiment, workdir)
  for read in (run.load, run.evaluate):
    for other in ({}, {'model_module': 'json'}, {'task_module': 'json'}):
      with pytest.raises(ValueError, match='_module'):
        read(workdir, **other)
    with pytest.raises(ValueError, match=r'from_anyone: .* It ran\.'):
      read(workdir, model_module='from_anyone')


def test_the_only_model_need_not_be_named(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / 'only_one.py').write_text(
    'from tests.experiments.formal import own_models\n\n'
    'class Own(own_models.Linen):\n  """Ours."""\n'
  )
  experiment = dataclasses.replace(_TINY, model_module='only_one')
  _, model = builders.make_task_and_model(experiment)
  assert model.config is None
  assert config.model_title(experiment) == 'only_one'


@pytest.mark.parametrize(
  ('kind', 'module', 'title'),
  [
    ('task', 'task_module', config.task_title),
    ('architecture', 'model_module', config.model_title),
  ],
)
def test_a_title_is_the_name_if_given_else_the_module(kind, module, title):
  default = getattr(config.Experiment, kind)
  assert title(config.Experiment()) == default
  one = config.Experiment(**{module: 'mine'})
  assert title(one) == 'mine'
  assert title(dataclasses.replace(one, **{kind: 'Second'})) == 'Second'
