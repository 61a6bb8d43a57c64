"""The penalty is the squared gain of a level."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config, contraction, model

_CONFIG = config.make_config(
  'benchmark', 2, 2, embedding_dim=8, num_heads=2, norm='none'
)


def _penalty(gpt, change=lambda block: block):
  module = model.RegularGPT(gpt)
  params = module.init(jax.random.key(0), jnp.zeros((1, 1), int))
  # What is moved must have a size.
  params['params']['embedding'] += 1.0
  params['params']['pad'] += 1.0
  block = change(params['params']['block_0'])
  params['params']['block_0'] = block

  def penalty(params):
    return contraction.penalty(module, params, jax.random.key(1))

  return jax.jit(jax.value_and_grad(penalty))(params)


def _passing(block):
  """A block that hands its last child on."""
  for name in ('projection', 'ffn_out'):
    block[name] = jax.tree.map(jnp.zeros_like, block[name])
  return block


@pytest.mark.parametrize('chunk_size', [2, 3])
def test_a_level_that_hands_its_last_child_on_has_gain_1(chunk_size):
  gpt = dataclasses.replace(_CONFIG, chunk_size=chunk_size)
  penalty, _ = _penalty(gpt, _passing)
  # A root mean square over chunks, of means over D = 8 squares: 1 + 2 / 8.
  np.testing.assert_allclose(penalty, (1 + 2 / 8) ** 0.5, rtol=0.1)


def test_a_constant_level_has_gain_0():
  def constant(block):
    block['ffn_out'] = {
      'kernel': jnp.zeros_like(block['ffn_out']['kernel']),
      'bias': jnp.ones_like(block['ffn_out']['bias']),
    }
    return block

  gpt = dataclasses.replace(_CONFIG, residual=False)
  penalty, gradient = _penalty(gpt, constant)
  assert penalty < 1e-6
  for x in jax.tree.leaves(gradient):
    assert np.isfinite(x).all()
