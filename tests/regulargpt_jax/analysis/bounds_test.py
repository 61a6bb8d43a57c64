"""Every bound is attacked, and a wrong one does not withstand."""

import functools

import jax
import numpy as np
import pytest

from regulargpt_jax import config, model
from regulargpt_jax.analysis import bounds, level_map, nonlinear
from tests.regulargpt_jax.analysis import forms

_NUM, _POINTS = 3, 200


def _softmax(x, num_keys):
  logits = x.reshape(*x.shape[:-1], -1, num_keys - 1)
  logits = np.pad(logits, ((0, 0),) * (logits.ndim - 1) + ((0, 1),))
  exp = np.exp(logits - logits.max(-1, keepdims=True))
  weights = exp / exp.sum(-1, keepdims=True)
  return weights[..., :-1].reshape(x.shape)


def _layer_norm(x):
  center = x - x.mean(-1, keepdims=True)
  variance = np.mean(center**2, -1, keepdims=True)
  scale, bias = np.linspace(0.5, 2, x.shape[-1]), np.arange(x.shape[-1])
  return center / np.sqrt(variance + 1e-5) * scale + bias


_KERNEL = np.random.default_rng(0).normal(size=(6, 6))
# A function of one form, what it bounds.
_UNARY = {
  'linear': (
    lambda f: bounds.linear(f, _KERNEL, 0.3),
    lambda x: x @ _KERNEL + 0.3,
  ),
  'scaled': (lambda f: bounds.scaled(f, _KERNEL[0]), lambda x: x * _KERNEL[0]),
  'tracked': (bounds.tracked, lambda x: x),
  'relu': (nonlinear.relu, lambda x: np.maximum(x, 0)),
  'softmax of 2': (
    lambda f: nonlinear.softmax(f, 2, forms.REAL)[0],
    lambda x: _softmax(x, 2),
  ),
  'softmax of 3': (
    lambda f: nonlinear.softmax(f, 3, forms.REAL)[0],
    lambda x: _softmax(x, 3),
  ),
  'layer norm': (
    lambda f: nonlinear.layer_norm(
      f, np.linspace(0.5, 2, 6), np.arange(6), 1e-5, forms.REAL
    ),
    _layer_norm,
  ),
}


@pytest.mark.parametrize('scale', [0.0, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize('name', _UNARY)
def test_a_form_holds_a_function_of_one(name, scale):
  bound, function = _UNARY[name]
  rng = np.random.default_rng(len(name))
  for slack in (0.0, 0.01):
    form = forms.random(rng, _NUM, 6, scale, slack)
    e = forms.symbols(form, rng, _POINTS)
    values = function(forms.points(form, e, rng))
    assert forms.excess(bound(form), e, values) <= 0


@pytest.mark.parametrize('scale', [0.0, 0.01, 1.0])
def test_a_form_holds_a_function_of_two(scale):
  rng = np.random.default_rng(0)
  one = forms.random(rng, _NUM, 6, scale, 0.01)
  other = forms.random(rng, _NUM, 6, scale, 0.01)
  scalar = forms.random(rng, _NUM, 2, scale, 0.01, symbols=5)
  e = forms.symbols(scalar, rng, _POINTS)
  x, y, z = (forms.points(f, e, rng) for f in (one, other, scalar))
  sums = (x * y).reshape(*x.shape[:2], 2, 3).sum(-1)
  fewer = e[:, : one.gens.shape[-1]]  # Those behind are the result's own.
  for form, known, values in (
    (bounds.added(one, other, -1.0), fewer, x - y),
    (bounds.dot(one, other, 2), fewer, sums),
    (bounds.times(one, scalar), e, x * np.repeat(z, 3, -1)),
  ):
    assert forms.excess(form, known, values) <= 0


def _model(chunk_size, seed=0):
  gpt = config.make_config(
    'benchmark', 2, 2, embedding_dim=8, num_heads=2, chunk_size=chunk_size
  )
  module = model.RegularGPT(gpt)
  params = jax.jit(module.init)(jax.random.key(seed), np.zeros((1, 1), int))
  return gpt, module, jax.tree.map(lambda x: 1.5 * x, params)


def _regions(rng, chunk_size, scale):
  children = []
  for slot in range(chunk_size):
    gens = np.zeros((_NUM, 8, 8 * chunk_size))
    gens[..., 8 * slot : 8 * slot + 8] = scale * rng.normal(size=(_NUM, 8, 8))
    center = rng.normal(size=(_NUM, 8))
    children.append(
      bounds.Form(center, gens, np.zeros((_NUM, 8)), 8, chunk_size)
    )
  return children


def _attack(chunk_size, scale):
  """By how much a level of random regions leaves its form, in float32."""
  gpt, module, params = _model(chunk_size)
  weights = level_map.weights(gpt, params)
  rng = np.random.default_rng(chunk_size)
  children = _regions(rng, chunk_size, scale)
  e = forms.symbols(children[0], rng, _POINTS)
  x = np.stack([forms.points(f, e, rng) for f in children], axis=2)
  x = x.astype(np.float32).reshape(-1, chunk_size, 8)
  out, _ = jax.jit(functools.partial(module.apply, method='level'))(
    params, x, np.ones(x.shape[:2], bool)
  )
  values = np.asarray(out[:, 0], np.float64).reshape(_POINTS, _NUM, 8)
  return forms.excess(level_map.level(children, weights), e, values)


@pytest.mark.parametrize('chunk_size', [2, 3])
@pytest.mark.parametrize('scale', [0.0, 1e-3, 0.03, 0.3])
def test_a_form_holds_a_level(chunk_size, scale):
  assert _attack(chunk_size, scale) <= 0


def _without_new_symbols(form, size):
  del size
  return form


def _without_slack(*args):
  out = _LAYER_NORM(*args)
  return out._replace(slack=0.0 * out.slack)


_LAYER_NORM = nonlinear.layer_norm


@pytest.mark.parametrize(
  ('where', 'name', 'wrong', 'scale'),
  [
    (bounds, 'with_symbols', _without_new_symbols, 0.3),
    (nonlinear, 'layer_norm', _without_slack, 0.0),
  ],
)
def test_a_wrong_bound_is_caught(where, name, wrong, scale, monkeypatch):
  monkeypatch.setattr(where, name, wrong)
  assert _attack(2, scale) > 0


def test_a_wrong_relu_is_caught():
  rng = np.random.default_rng(0)
  form = forms.random(rng, _NUM, 6, 0.3)
  is_on = form.center > 0
  tangent = form._replace(
    center=is_on * form.center, gens=is_on[..., None] * form.gens
  )
  e = forms.symbols(form, rng, _POINTS)
  values = np.maximum(forms.points(form, e, rng), 0)
  assert forms.excess(tangent, e, values) > 0


def test_other_models_are_refused():
  gpt = config.make_config('language', 2, 2, embedding_dim=8, num_heads=2)
  with pytest.raises(ValueError, match='norm post'):
    level_map.weights(gpt, {})
