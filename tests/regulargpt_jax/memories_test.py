"""Stacks and tapes of the baselines, by hand."""

import functools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.baselines import (
  ndstack_rnn,
  stack_rnn,
  tape_rnn,
)
from tests.regulargpt_jax import numpy_baselines


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
