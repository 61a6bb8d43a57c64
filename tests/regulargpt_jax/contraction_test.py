"""The penalty is the squared gain of a level."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config, contraction, model

_CONFIG = config.make_config(
  'benchmark', 2, 2, embedding_dim=8, num_heads=2, norm='none'
)


_AS_IS = np.eye(8)
# Whose states differ in every direction.
_MANY_SYMBOLS = dataclasses.replace(_CONFIG, vocab_size=40)


def _penalty(
  gpt, change=lambda block: block, transitions=None, coordinates=_AS_IS
):
  module = model.RegularGPT(gpt)
  params = jax.jit(module.init)(jax.random.key(0), np.zeros((1, 1), int))
  params = jax.device_get(params)
  # What is moved must have a size.
  for name in ('embedding', 'pad'):
    states = params['params'][name] + 1.0
    params['params'][name] = states @ coordinates.T
  block = change(params['params']['block_0'])
  params['params']['block_0'] = block

  def penalty(params):
    return contraction.penalty(module, params, jax.random.key(1), transitions)

  return jax.jit(jax.value_and_grad(penalty))(params)


def _passing(block):
  """A block that hands its last child on."""
  for name in ('projection', 'ffn_out'):
    block[name] = jax.tree.map(np.zeros_like, block[name])
  return block


@pytest.mark.parametrize(
  'chunk_size', [2, pytest.param(3, marks=pytest.mark.slow)]
)
def test_a_level_that_hands_its_last_child_on_has_gain_1(chunk_size):
  gpt = dataclasses.replace(_CONFIG, chunk_size=chunk_size)
  penalty, _ = _penalty(gpt, _passing)
  # A root mean square over chunks, of means over D = 8 squares: 1 + 2 / 8.
  np.testing.assert_allclose(penalty, (1 + 2 / 8) ** 0.5, rtol=0.1)


def _adding(matrix):
  """Returns a change of a block: to its last child x, it adds `matrix` x."""

  def change(block):
    block = _passing(block)
    signs = np.concatenate([np.eye(8), -np.eye(8)], axis=1)
    into = np.zeros_like(block['ffn_in']['kernel'])
    into[:, :16] = signs
    out = np.zeros_like(block['ffn_out']['kernel'])
    out[:16] = signs.T @ matrix.T
    block['ffn_in'] = {**block['ffn_in'], 'kernel': into}
    block['ffn_out'] = {**block['ffn_out'], 'kernel': out}
    return block

  return change


@pytest.mark.parametrize('has_maps', [False, True])
def test_in_which_coordinates_states_are_does_not_count(has_maps):
  """Their units never; nor, of maps, whether they lie along few directions."""
  rng = np.random.default_rng(0)
  matrix = rng.normal(size=(8, 8))
  coordinates = np.diag(np.linspace(0.6, 1.6, 8))
  transitions = None
  if has_maps:
    coordinates = np.linalg.qr(rng.normal(size=(8, 8)))[0] @ coordinates
    transitions = np.tile(np.arange(40), (40, 1))  # The last symbol.

  def penalty(coordinates):
    inside = coordinates @ matrix @ np.linalg.inv(coordinates)
    change = _adding(inside)
    return _penalty(_MANY_SYMBOLS, change, transitions, coordinates)[0]

  np.testing.assert_allclose(penalty(coordinates), penalty(_AS_IS), rtol=0.1)


def test_a_constant_level_has_gain_0():
  def constant(block):
    block['ffn_out'] = {
      'kernel': np.zeros_like(block['ffn_out']['kernel']),
      'bias': np.ones_like(block['ffn_out']['bias']),
    }
    return block

  gpt = dataclasses.replace(_CONFIG, residual=False)
  penalty, gradient = _penalty(gpt, constant)
  assert penalty < 1e-6
  for x in jax.tree.leaves(gradient):
    assert np.isfinite(x).all()


def test_the_spread_of_what_means_the_same_counts():
  gain, _ = _penalty(_MANY_SYMBOLS, _passing)
  # Of one state, all strings mean the same: the variance is all spread.
  spread, _ = _penalty(_MANY_SYMBOLS, _passing, np.zeros((1, 40), int))
  assert spread > 50 * gain


def test_clusters_that_shrink_from_level_to_level_are_spread():
  """What a chunk means is what its last child does: the last symbol."""

  last = np.array([[0, 1], [0, 1]])
  kept, _ = _penalty(_CONFIG, _passing, last)
  np.testing.assert_allclose(kept, (1 + 2 / 8) ** 0.5, rtol=0.1)
  shrunk, _ = _penalty(_CONFIG, _adding(-np.eye(8) / 2), last)
  assert shrunk > 10 * kept


@pytest.mark.parametrize('chunk_size', [2, 3])
def test_a_table_s_maps_are_where_its_strings_lead(chunk_size):
  transitions = np.array([[1, 0], [2, 0], [2, 1]])
  maps = contraction._maps(transitions, chunk_size, 2)
  length = chunk_size**2
  strings = [s for n in range(1, length + 1) for s in np.ndindex((2,) * n)]
  # Numbers of strings are not in this order.
  expected = [
    tuple(
      functools.reduce(lambda q, v: transitions[q, v], s, q) for q in range(3)
    )
    for s in strings
  ]
  assert sorted(map(tuple, maps.tolist())) == sorted(expected)


def test_a_mean_is_of_those_of_the_same_map():
  maps = jnp.array([[0, 1], [1, 0], [0, 1], [1, 1]])
  out = jnp.array([[1.0], [2.0], [5.0], [7.0]])
  means = contraction._means(out, maps)
  np.testing.assert_allclose(means[:, 0], [3, 2, 3, 7])
