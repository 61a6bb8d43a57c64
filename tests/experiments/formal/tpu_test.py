"""The programs of every model can be compiled for TPU, from a CPU."""

import dataclasses
import functools

import jax
from jax import export
import jax.numpy as jnp
import pytest

from experiments.engine import devices
from experiments.formal import (
  builders,
  config,
  data,
  range_evaluation,
  registries,
  training,
)
from regulargpt_jax import recurrent
from tests import slow
from tests.experiments.formal import tiny

_TINY = config.Experiment(embedding_dim=8, num_heads=2, sequence_length=9)
_WIDTH = 9
_QUICK = ('regular_gpt', 'ndstack_rnn')
# With a single answer, and, of some, with an answer a symbol.
_CASES = [
  *((name, 'parity_check') for name in sorted(registries.MODEL_BUILDERS)),
  ('regular_gpt', 'reverse_string'),
  ('rnn', 'reverse_string'),
  ('transformer_encoder', 'reverse_string'),
]


def _lowers(function, *args):
  exported = export.export(jax.jit(function), platforms=['tpu'])(*args)
  assert exported.platforms == ('tpu',)


@pytest.mark.parametrize(
  ('architecture', 'task_name'),
  slow.unless(
    lambda name, task_name: (
      name in _QUICK and (task_name == 'parity_check' or name == 'regular_gpt')
    ),
    _CASES,
  ),
)
def test_training_and_evaluation_lower_for_tpu(architecture, task_name):
  params = {}
  sizes = {}
  if architecture in recurrent.MODELS:
    sizes = tiny.NO_SIZES
    params['width'] = 8
  elif not architecture.startswith(('transformer', 'regular')):
    params['hidden_size'] = 8
  elif architecture.startswith('transformer'):
    params |= {'num_layers': 1, 'positional_encodings': 'RELATIVE'}
  experiment = dataclasses.replace(
    _TINY,
    task=task_name,
    architecture=architecture,
    architecture_params=params,
    max_extra_levels=2 * (architecture == 'regular_gpt'),
    **sizes,
  )
  task, model = builders.make_task_and_model(experiment)
  source = data.make_source(task, experiment.batch_size, [_WIDTH])
  runs = training.make_runs([(1e-3, 0, 0), (1e-3, 1, 1)])
  mesh = devices.make_mesh(2, experiment.batch_size)
  step = training.make_step(task, source, model, mesh, _WIDTH)
  state = jax.eval_shape(
    lambda: training.init_state(experiment, model, [(1e-3, 0, 0)] * 2)
  )
  _lowers(step, state, runs, jnp.int32(_WIDTH))

  shared = jax.eval_shape(
    jax.vmap(functools.partial(model.share, num_symbols=10**6, num_runs=2)),
    state.params,
  )
  source = data.make_source(task, experiment.range_test_batch_size, [_WIDTH])
  test = range_evaluation.make_test(task, source, model, mesh, _WIDTH)
  _lowers(test, state.params, shared, jnp.int32(_WIDTH), jnp.int32(_WIDTH))
