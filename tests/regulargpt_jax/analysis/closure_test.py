"""A proof of a trained model, attacked; and none of what is wrong."""

import functools
import json

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import model
from regulargpt_jax.analysis import (
  closure,
  equivalence,
  level_map,
  regions,
  tree,
)
from tests.regulargpt_jax.analysis import parity

_CONFIG, _SYMBOLS, _PARITY = parity.CONFIG, parity.SYMBOLS, parity.MACHINE
_MAX_CHUNKS = 100


def _close(params, max_chunks=_MAX_CHUNKS):
  """Guided by the true maps, whatever the model makes of them."""
  tokens = parity.strings(32, 64)
  trace = tree.trace(_CONFIG, params, tokens)
  maps = tree.true_maps(_PARITY[0], tokens, 2)
  states = np.concatenate([x.reshape(-1, 8) for x in trace.outputs])
  label = np.concatenate([m[..., 0].reshape(-1) for m in maps])
  return closure.close(_CONFIG, params, states, label, _SYMBOLS, max_chunks)


@pytest.fixture(scope='module')
def closed():
  return _close(parity.params())


def _outside(closed, region_N, states_NxD):
  """By what factor of its radius a state is away from its region's center."""
  away = states_NxD.astype(np.float64) - closed.centers[region_N]
  inside = np.linalg.solve(closed.shapes[region_N], away[..., None])
  return np.linalg.norm(inside, axis=(1, 2))


def _table(closed):
  table = np.full((len(closed.classes) + 1,) * 2, regions.PAD)
  table[tuple(closed.chunks.T)] = closed.products
  return table


def test_a_trained_model_is_proved_right(closed):
  assert isinstance(closed, closure.Closed), closed
  assert 0 < closed.worst <= 1
  assert closed.margin > 0
  verdict = equivalence.compare(closed, _PARITY, 2, 1)
  assert verdict.difference is None


def test_it_answers_to_no_other_automaton(closed):
  other = (np.array([[0, 1], [1, 1]]), 0, np.array([0, 1]))  # Any 1 at all.
  assert equivalence.compare(closed, other, 2, 1).difference == [1, 1]


def test_random_points_never_leave(closed):
  params, rng = parity.params(), np.random.default_rng(0)
  direction = rng.normal(size=(200, len(closed.chunks), 2, 8))
  direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
  x = closed.centers[closed.chunks] + np.einsum(
    'Ncij,pNcj->pNci', closed.shapes[closed.chunks], direction
  )
  present = np.broadcast_to(closed.chunks != regions.PAD, x.shape[:-1])
  out, _ = model.RegularGPT(_CONFIG).apply(
    params,
    x.reshape(-1, 2, 8).astype(np.float32),
    present.reshape(-1, 2),
    method='level',
  )
  filled = _outside(
    closed, np.tile(closed.products, 200), np.asarray(out[:, 0])
  )
  assert filled.max() <= closed.worst
  assert filled.max() > 0.3  # The regions are not larger than they need be.


def test_gradients_lead_none_out(closed):
  params = parity.params()
  chunks = closed.chunks[(closed.chunks != regions.PAD).all(1)]
  target = closed.products[: len(chunks)]
  centers, shapes = (
    jnp.asarray(x[chunks], jnp.float32) for x in (closed.centers, closed.shapes)
  )
  inverse = jnp.asarray(np.linalg.inv(closed.shapes[target]), jnp.float32)

  def states(e):
    x = centers + jnp.einsum('Ncij,Ncj->Nci', shapes, e)
    out, _ = model.RegularGPT(_CONFIG).apply(
      params, x, np.ones(x.shape[:2], bool), method='level'
    )
    return out[:, 0]

  def reached(e):
    away = states(e) - closed.centers[target].astype(np.float32)
    return jnp.square(jnp.einsum('Nij,Nj->Ni', inverse, away)).sum()

  @jax.jit
  def climb(e):
    e = e + jax.grad(reached)(e)
    return e / jnp.linalg.norm(e, axis=-1, keepdims=True)

  e = np.random.default_rng(1).normal(size=(len(chunks), 2, 8))
  e = (e / np.linalg.norm(e, axis=-1, keepdims=True)).astype(np.float32)
  for _ in range(30):
    e = climb(e)
  filled = _outside(closed, target, np.asarray(states(e)))
  assert filled.max() <= closed.worst
  assert filled.max() > 0.6


@pytest.mark.parametrize('length', [9, 33, 200])
def test_states_of_long_strings_are_where_the_table_says(closed, length):
  tokens, table = parity.strings(16, length), _table(closed)
  trace = tree.trace(_CONFIG, parity.params(), tokens)
  region = None
  for level, (states, span) in enumerate(
    zip(trace.outputs, tree.spans(length, 2), strict=True), 1
  ):
    if level == closed.first_level:
      # `chunk_table` numbers a string in bijective base 2.
      region = np.array(
        [
          [
            closed.start[
              int(functools.reduce(lambda n, v: 2 * n + v + 1, row[a:b], 0)) - 1
            ]
            for a, b in span
          ]
          for row in tokens
        ]
      )
    elif level > closed.first_level:
      children = tree.chunks(region, 2, regions.PAD)
      region = table[children[..., 0], children[..., 1]]
    if region is not None:
      filled = _outside(closed, region.reshape(-1), states.reshape(-1, 8))
      assert filled.max() <= 1


@pytest.mark.parametrize('name', ['readout', 'ffn_in', 'value'])
def test_a_disturbed_model_that_is_wrong_is_not_proved(name):
  params = parity.params()
  flat = traverse_util.flatten_dict(params['params'])
  path = next(path for path in flat if name in path and path[-1] == 'kernel')
  kernel = flat[path]
  tokens = parity.strings(64, 40)
  right = tokens.sum(-1) % 2
  answers = jax.jit(lambda p: model.RegularGPT(_CONFIG).apply(p, tokens))
  largest = np.unravel_index(np.abs(kernel).argmax(), kernel.shape)
  for factor in (-1.0, -3.0, -10.0, -30.0):
    flat[path] = kernel.copy()
    flat[path][largest] *= factor
    disturbed = {'params': traverse_util.unflatten_dict(flat)}
    if (answers(disturbed).argmax(-1) != right).any():
      break
  else:
    pytest.fail('It is right whatever this weight is.')
  found = _close(disturbed)
  if isinstance(found, closure.Closed):
    assert equivalence.compare(found, _PARITY, 2, 1).difference is not None


def test_a_random_model_is_not_proved():
  params = jax.jit(model.RegularGPT(_CONFIG).init)(
    jax.random.key(0), np.zeros((1, 1), int)
  )
  found = _close(params)
  assert isinstance(found, closure.Leak)
  assert found.needed > 1


def test_clusters_that_nothing_comes_into_are_said():
  """In numbers that JSON takes."""
  states = np.concatenate([np.zeros((9, 8)), np.full((9, 8), 1e3)])
  label = np.repeat([0, 1], 9)
  found = closure.close(
    _CONFIG, parity.params(), states, label, parity.SYMBOLS, 100
  )
  assert found.reason == 'Clusters do not compose.'
  assert json.dumps(found[2:]) == '[2]'


def test_weights_are_those_of_the_model():
  w = level_map.weights(_CONFIG, parity.params())
  table = model.RegularGPT(_CONFIG).apply(
    parity.params(), 0, method='tabulate'
  )[0]
  away = np.abs(np.asarray(table, np.float64)[1:] - w.symbols)
  assert (away <= w.symbols_slack).all()
