"""How a gradient changes the state, and what a run that diverged keeps."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.engine import optimization

_OPTIMIZER = optax.chain(
  optax.clip_by_global_norm(optimization.MAX_GRAD_NORM),
  optax.scale_by_adam(),
)
_PARAMS = {'a': jnp.array([1.0, -2.0]), 'b': jnp.array([[0.5]])}
_GOOD = {'a': jnp.array([0.3, 0.1]), 'b': jnp.array([[-0.2]])}


def _state():
  return optimization.State(
    step=jnp.int32(0),
    params=_PARAMS,
    optimizer=_OPTIMIZER.init(_PARAMS),
    num_summed=jnp.int32(0),
    loss_sum=jnp.float32(0),
    diverged_at=jnp.int32(-1),
  )


def _updated(state, loss, grads):
  return optimization.counted(
    optimization.updated(state, _OPTIMIZER, 0.1, state.step, loss, grads)
  )


@pytest.mark.parametrize('scale', [0.1, 100.0])
def test_an_update_is_adam_behind_clipping(scale):
  """By Kingma & Ba, 2015, algorithm 1, in NumPy."""
  rng = np.random.default_rng(0)
  state, params = _state(), np.array([1.0, -2.0, 0.5])
  mean, square = np.zeros(3), np.zeros(3)
  for t in range(1, 4):
    g = rng.normal(size=3) * scale
    grads = {'a': jnp.array(g[:2]), 'b': jnp.array([g[2:]])}
    state = _updated(state, jnp.float32(t), grads)
    g /= max(1.0, np.sqrt(g @ g))
    mean = 0.9 * mean + 0.1 * g
    square = 0.999 * square + 0.001 * g**2
    unbiased = np.sqrt(square / (1 - 0.999**t)) + 1e-8
    params -= 0.1 * mean / (1 - 0.9**t) / unbiased
  flat = np.concatenate([x.reshape(-1) for x in jax.tree.leaves(state.params)])
  np.testing.assert_allclose(flat, params, rtol=1e-5)
  assert (state.step, state.num_summed, state.loss_sum) == (3, 3, 6)


def test_parameters_of_half_precision_stay_so():
  def halved(tree):
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16), tree)

  state = _state()
  state = state.replace(
    params=halved(state.params), optimizer=_OPTIMIZER.init(halved(_PARAMS))
  )
  rate = jnp.float32(0.5)
  after = optimization.updated(
    state, _OPTIMIZER, rate, state.step, jnp.float32(1), halved(_GOOD)
  )
  chex.assert_trees_all_equal_dtypes(after, state)
  assert (after.params['a'] != state.params['a']).all()


@pytest.mark.parametrize('loss', [1.0, jnp.nan, jnp.inf])
@pytest.mark.parametrize('grad', [0.1, jnp.nan, jnp.inf])
def test_a_diverged_run_stays_as_it_was_before(loss, grad):
  """Also when what comes later is finite."""
  good = _updated(_state(), jnp.float32(1), _GOOD)
  bad_grads = _GOOD | {'b': jnp.array([[grad]])}
  bad = _updated(good, jnp.float32(loss), bad_grads)
  if np.isfinite(loss) and np.isfinite(grad):
    assert bad.diverged_at == -1
    assert bad.params['b'] != good.params['b']
    return
  later = _updated(bad, jnp.float32(1), _GOOD)
  for state in (bad, later):
    assert state.diverged_at == 1
    chex.assert_trees_all_equal(
      (state.params, state.optimizer), (good.params, good.optimizer)
    )
  assert (later.step, later.num_summed) == (3, 3)
