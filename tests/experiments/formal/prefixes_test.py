"""Answers in place: each model reads them where symbols are."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.formal import builders, config
from tests import slow
from tests.experiments.formal import tiny

_EXPERIMENT = config.Experiment(
  task='word_problem',
  answers='prefixes',
  embedding_dim=8,
  num_heads=2,
  sequence_length=5,
  max_range_test_length=8,
)
_FIELDS = {
  'regular_gpt': {'max_extra_levels': 1},
  'rnn': {'architecture_params': {'hidden_size': 4}},
  'stack_rnn': {
    'architecture_params': {'hidden_size': 4, 'stack_cell_size': 2}
  },
  'transformer_encoder': {'architecture_params': {'num_layers': 1}},
  'transformer': {'architecture_params': {'num_layers': 1}},
  'mamba_2': {
    'architecture_params': {'width': 8, 'num_layers': 1},
    **tiny.NO_SIZES,
  },
}


@pytest.mark.parametrize(
  'architecture',
  slow.unless(lambda name: name not in ('stack_rnn', 'transformer'), _FIELDS),
)
def test_an_answer_is_of_the_string_up_to_there(architecture):
  experiment = dataclasses.replace(
    _EXPERIMENT, architecture=architecture, **_FIELDS[architecture]
  )
  task, model = builders.make_task_and_model(experiment)
  params = jax.jit(model.init)(jax.random.key(0))
  tokens = np.random.default_rng(0).integers(task.input_size, size=(3, 5))
  other = tokens.copy()
  other[:, 3:] = (other[:, 3:] + 1) % task.input_size
  wide = np.pad(tokens, ((0, 0), (3, 0)), constant_values=-1)

  @jax.jit
  def logits(tokens):
    target = jax.nn.one_hot(task.solve(tokens), task.output_size)
    return model.apply(params, tokens, target)

  found = logits(jnp.asarray(tokens))
  assert found.shape == (3, 5, task.output_size)
  np.testing.assert_allclose(logits(wide)[:, 3:], found, atol=1e-5)
  of_other = logits(other)
  assert np.abs(of_other - found)[:, 3:].max() > 1e-4
  if architecture != 'transformer':  # Its encoder reads all of the string.
    np.testing.assert_allclose(of_other[:, :3], found[:, :3], atol=1e-5)
