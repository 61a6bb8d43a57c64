"""What is proved of models whose regions do not close, attacked."""

import itertools

import numpy as np
import pytest

from regulargpt_jax import chunk_table, model
from regulargpt_jax.analysis import (
  bounds,
  closure,
  depths,
  ellipsoids,
  equivalence,
  extraction,
  level_map,
  regions,
  snapping,
  strings,
  tree,
)
from tests.regulargpt_jax.analysis import parity

_TRANSITIONS, _START, _OUTPUTS = parity.MACHINE


def _right_levels(params, max_chunks=100):
  w = level_map.weights(parity.CONFIG, params)
  return depths.right_levels(w, parity.MACHINE, parity.SYMBOLS, 1, max_chunks)


def _levels(params, num=512):
  """Yields states of some strings after each level, and their parities.

  The first `num` are of full strings, each above two of the level before. As
  many follow that are not: their right child is full, their left one is not, or
  is not there.
  """
  rng = np.random.default_rng(0)
  parities = np.arange(2 * num) % 2
  states = np.asarray(params['params']['embedding'])[parities] * 8**0.5
  while True:
    left, right = rng.integers(num, size=(2, num))
    pair = np.stack([states[left], states[right]], axis=1)
    full = extraction.level(parity.CONFIG, params, pair)
    parity_of_full = (parities[left] + parities[right]) % 2
    alone, left = right[: num // 2], num + left[num // 2 :]
    other = right[num // 2 :]
    pair = np.stack([states[left], states[other]], axis=1)
    part = [
      extraction.level(parity.CONFIG, params, states[alone, None]),
      extraction.level(parity.CONFIG, params, pair),
    ]
    parity_of_part = [parities[alone], (parities[left] + parities[other]) % 2]
    states = np.concatenate([full, *part])
    parities = np.concatenate([parity_of_full, *parity_of_part])
    yield states, parities


def _first_wrong_level(params, most=16):
  """The first level at which a string is seen to be answered wrongly."""
  readout = params['params']['readout']
  for level, (states, parities) in enumerate(_levels(params), 1):
    logits = states @ readout['kernel'] + readout['bias']
    if level == most or (logits.argmax(-1) != parities).any():
      return level


def test_a_model_that_is_right_everywhere_is_right_as_deep_as_is_looked():
  assert _right_levels(parity.params()) == 24


def test_a_model_of_more_levels_for_short_strings(monkeypatch):
  monkeypatch.setattr(depths, '_MAX_LEVELS', 5)
  w = level_map.weights(parity.CONFIG, parity.params())
  for min_levels, expected in ((5, 5), (6, 0)):
    levels = depths.right_levels(
      w, parity.MACHINE, parity.SYMBOLS, min_levels, 100
    )
    assert levels == expected


@pytest.mark.parametrize('factor', [0.7, 0.6, 0.5, 0.4, 0.3])
def test_no_more_levels_are_proved_than_are_right(factor):
  params = parity.params(ffn_out=factor)
  wrong = _first_wrong_level(params)
  assert _right_levels(params) < wrong
  assert _right_levels(params, max_chunks=6) < wrong


def test_bounds_that_are_wrong_claim_too_much(monkeypatch):
  monkeypatch.setattr(closure, 'MAX_STRINGS', 7)  # Of up to 2 symbols.
  params = parity.params(ffn_out=0.4)
  assert _first_wrong_level(params) == 2
  assert _right_levels(params) == 1
  radius = bounds.radius
  monkeypatch.setattr(bounds, 'radius', lambda form: 1e-6 * radius(form))
  monkeypatch.setattr(
    ellipsoids, 'needed', lambda seen, targets: np.full(len(seen.size), 0.5)
  )
  assert _right_levels(params) >= 2


@pytest.mark.parametrize('max_chunks', [6, 100])
def test_states_are_in_regions_of_their_answer(max_chunks):
  params = parity.params(ffn_out=0.9)
  w = level_map.weights(parity.CONFIG, params)
  *_, form = strings.levels(w, parity.SYMBOLS, 2**9)
  tokens = [
    string
    for length in range(9)
    for string in itertools.product(range(2), repeat=length)
  ]
  maps = np.array([[sum(x) % 2, 1 - sum(x) % 2] for x in tokens])
  held = depths.followed(
    w, form, maps, maps[:31], chunk_table.split(2, 4, 2), max_chunks
  )
  levels = itertools.islice(_levels(params), 3, 8)
  for (found, maps_kxQ), (states, parities) in zip(held, levels, strict=False):
    answers, margins = closure.answers(ellipsoids.as_form(found, 0, 1), w)
    if not margins.min() > 0:
      break
    np.testing.assert_array_equal(answers, maps_kxQ[:, 0])
    away = states[:, None].astype(np.float64) - found.center
    share = np.linalg.norm(
      np.linalg.solve(found.shape, away[..., None]), axis=(-2, -1)
    )
    share[maps_kxQ[:, 0] != parities[:, None]] = np.inf
    assert share.min(-1).max() <= 1


def _centers(params):
  tokens = parity.strings(16, 32)
  states = tree.trace(parity.CONFIG, params, tokens).outputs[2].reshape(-1, 8)
  maps = tree.true_maps(_TRANSITIONS, tokens, 2)[2][..., 0].reshape(-1)
  return np.stack([states[maps == i].mean(0) for i in range(2)])


@pytest.mark.parametrize('factor', [1.0, 0.5, -1.0])
def test_a_snapped_model_is_what_it_does_with_centers(factor):
  params = parity.params(ffn_out=factor)
  w, centers = level_map.weights(parity.CONFIG, params), _centers(params)
  closed = snapping.close(w, centers, parity.SYMBOLS)
  full = (closed.chunks != regions.PAD).all(-1)
  chunks = centers[closed.chunks[full]].astype(np.float32)
  above = extraction.level(parity.CONFIG, params, chunks)
  away = np.linalg.norm(above[:, None] - centers, axis=-1)
  np.testing.assert_array_equal(closed.products[full], away.argmin(-1))
  # By the automaton, and by hand.
  tokens = parity.strings(64, 4)
  table = np.full((3, 3), regions.PAD)
  table[tuple(closed.chunks.T)] = closed.products
  number = 1 + tokens.reshape(-1, 2, 2) @ [2, 1] + 2 - 1
  first = closed.start[number]
  answer = closed.classes[table[first[:, 0], first[:, 1]]]
  state = centers[first].astype(np.float32)
  state = extraction.level(parity.CONFIG, params, state)
  state = centers[np.linalg.norm(state[:, None] - centers, axis=-1).argmin(-1)]
  logits = model.RegularGPT(parity.CONFIG).apply(
    params, state.astype(np.float32), method='logits'
  )
  np.testing.assert_array_equal(answer, logits.argmax(-1))


def test_a_right_model_is_right_when_snapped():
  params = parity.params()
  w = level_map.weights(parity.CONFIG, params)
  closed = snapping.close(w, _centers(params), parity.SYMBOLS)
  assert equivalence.compare(closed, parity.MACHINE, 2, 1).difference is None


def test_a_state_between_centers_is_at_none():
  center = np.array([[0.0, 0.0], [1.0, 0.0]])
  x = np.array([[0.4, 7.0], [0.5, 0.0], [0.7, 0.0], [0.45, 0.0]])
  slack = np.array([[0.0, 0.0]] * 3 + [[0.1, 0.0]])
  form = bounds.Form(x, np.zeros((4, 2, 1)), slack, 1, 0)
  np.testing.assert_array_equal(snapping.nearest(form, center), [0, -1, 1, -1])
