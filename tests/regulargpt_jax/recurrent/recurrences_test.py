"""Every recurrence against itself, step by step, in double precision."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.recurrent import (
  gated_delta,
  linear_recurrence,
  mamba_2,
  rwkv_7,
  xlstm,
)
from tests import slow
from tests.regulargpt_jax import equations, numpy_oracle
from tests.regulargpt_jax.recurrent import numpy_models

_LENGTHS = (1, 37)  # Within a chunk, and more than two of them.
_BATCH, _HEADS, _KEY, _VALUE = 2, 2, 3, 4


def _sizes(rng, length):
  def normal(*shape):
    return rng.normal(size=(_BATCH, length, *shape))

  return normal


def _unit(x):
  return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _uniform(rng, length, least, most, *shape):
  return rng.uniform(least, most, size=(_BATCH, length, *shape))


def _general(xp, q, k, v, gate, r=None, b=None):
  """The recurrence of `linear_recurrence`, as those of `numpy_models`."""
  state, out = xp.zeros((q.shape[-1], v.shape[-1])), []
  for t in range(len(q)):
    after = gate[t][:, None] * state + xp.outer(k[t], v[t])
    if r is not None:
      after = after + xp.outer(r[t], b[t] @ state)
    state = after
    out.append(q[t] @ state)
  return xp.stack(out)


def _general_case(signs, has_erase):
  def make(rng, length):
    normal = _sizes(rng, length)
    inputs = [normal(_HEADS, size) for size in (_KEY, _KEY, _VALUE)]
    if signs == 'vector':
      inputs.append(_uniform(rng, length, 0.5, 1, _HEADS, _KEY))
    else:
      gate = _uniform(rng, length, -1, 1, _HEADS, 1)
      gate[:, length // 2] = 0
      inputs.append(gate)
    if has_erase:
      key = _unit(normal(_HEADS, _KEY))
      inputs += [-_uniform(rng, length, 0, 1, _HEADS, 1) * key, key]
    return inputs

  return make


def _run(q, k, v, gate, *erase):
  return linear_recurrence.run(q, k, v, gate, erase or None)


@pytest.fixture
def form(request, monkeypatch):
  """Which form of the linear recurrence all architectures use."""
  monkeypatch.setattr(linear_recurrence, 'run', request.param)


def _mamba_2_case(rng, length):
  normal = _sizes(rng, length)
  return [
    normal(_HEADS, _VALUE),
    normal(_KEY),
    normal(_KEY),
    _uniform(rng, length, 0, 2, _HEADS),
    _uniform(rng, length, -1, 1, _HEADS),
  ]


def _mamba_2_by_head(x, b, c, *rest):
  # One b and one c for all heads.
  shared = (jnp.repeat(y[:, :, None], _HEADS, axis=2) for y in (b, c))
  return x, *shared, *rest


def _gated_delta_case(num_factors):
  def make(rng, length):
    normal = _sizes(rng, length)
    return [
      normal(_HEADS, _KEY),
      _unit(normal(num_factors, _HEADS, _KEY)),
      normal(num_factors, _HEADS, _VALUE),
      _uniform(rng, length, 0, 2, num_factors, _HEADS),
      _uniform(rng, length, 0.5, 1, _HEADS),
    ]

  return make


def _reflections(rng, length):
  # One key again and again, as PARITY needs it: nothing fades, and an
  # inverse by powers of a matrix would be wrong by more than 1.
  q, k, v, strength, gate = _gated_delta_case(1)(rng, length)
  k[:] = k[:, :1]
  strength[:], gate[:] = 2, 1
  return [q, k, v, strength, gate]


def _gated_delta_by_head(q, k, v, strength, gate):
  k, v, strength = (x.swapaxes(2, 3) for x in (k, v, strength))
  return q, k, v, strength, gate


def _mlstm_case(rng, length):
  normal = _sizes(rng, length)
  return [
    *(normal(_HEADS, size) for size in (_KEY, _KEY, _VALUE)),
    3 * normal(_HEADS),
    _uniform(rng, length, 0, 1, _HEADS),
  ]


def _rwkv_7_case(rng, length):
  normal = _sizes(rng, length)
  return [
    normal(_HEADS, _KEY),
    _uniform(rng, length, 0.545, 1, _HEADS, _KEY),
    normal(_HEADS, _KEY),
    normal(_HEADS, _VALUE),
    _unit(normal(_HEADS, _KEY)),
    _uniform(rng, length, 0, 2, _HEADS, _KEY),
  ]


def _as_is(*inputs):
  return inputs


# The fast function, the oracle, the oracle's inputs with heads on axis 2, and
# inputs.
CASES = {
  'a gate': (_run, _general, _as_is, _general_case('scalar', False)),
  'gates': (_run, _general, _as_is, _general_case('vector', False)),
  'a gate, erasing': (_run, _general, _as_is, _general_case('scalar', True)),
  'gates, erasing': (_run, _general, _as_is, _general_case('vector', True)),
  'Mamba-2': (
    mamba_2.recur,
    numpy_models.mamba_2,
    _mamba_2_by_head,
    _mamba_2_case,
  ),
  'mLSTM': (xlstm.recur_mlstm, numpy_models.mlstm, _as_is, _mlstm_case),
  'RWKV-7': (rwkv_7.recur, numpy_models.rwkv_7, _as_is, _rwkv_7_case),
  'Gated DeltaNet': (
    gated_delta.recur,
    numpy_models.gated_delta,
    _gated_delta_by_head,
    _gated_delta_case(1),
  ),
  'reflections': (
    gated_delta.recur,
    numpy_models.gated_delta,
    _gated_delta_by_head,
    _reflections,
  ),
  'Gated DeltaProduct': (
    gated_delta.recur,
    numpy_models.gated_delta,
    _gated_delta_by_head,
    _gated_delta_case(3),
  ),
}


_FORMS = (linear_recurrence.in_chunks, linear_recurrence.in_steps)
_NOT_ERASING = ('a gate', 'gates', 'Mamba-2', 'mLSTM')


def _is_used(name, form):
  """Whether a case runs in a form anywhere."""
  return form == linear_recurrence.in_chunks or name not in _NOT_ERASING


# Strings that fill a chunk, that are one symbol more, and long ones, in which
# nothing fades.
_OTHERS = (
  ('a gate', 17),
  ('a gate, erasing', 16),
  ('gates, erasing', 16),
  ('gates, erasing', 17),
  ('reflections', 500),
)


@pytest.mark.parametrize(
  ('name', 'length', 'form'),
  slow.unless(
    lambda name, length, form: _is_used(name, form),
    [
      (*case, form)
      for case in (*itertools.product(CASES, _LENGTHS), *_OTHERS)
      for form in _FORMS
    ],
  ),
  indirect=['form'],
)
@pytest.mark.usefixtures('form')
def test_values(name, length):
  fast, oracle, by_head, make = CASES[name]
  inputs = make(np.random.default_rng(0), length)
  # Not `fast` itself, of which JAX would remember the other form.
  out = jax.jit(lambda *x: fast(*x))(
    *(jnp.asarray(x, jnp.float32) for x in inputs)
  )
  for i in range(_BATCH):
    for head in range(_HEADS):
      expected = oracle(np, *(x[i][:, head] for x in by_head(*inputs)))
      largest = max(1, np.abs(expected).max() / 5)
      np.testing.assert_allclose(out[i, :, head], expected, atol=2e-4 * largest)


# Of the general cases, the one that has all that the others have; of models,
# those with one gate and with states that are normalized.
_QUICK = ('gates, erasing', 'Mamba-2', 'mLSTM')


@pytest.mark.parametrize(
  ('name', 'form'),
  slow.unless(
    lambda name, form: name in _QUICK and _is_used(name, form),
    [*itertools.product(CASES, _FORMS)],
  ),
  indirect=['form'],
)
@pytest.mark.usefixtures('form')
def test_gradients(name):
  """Of a random weighting of all outputs, with respect to every input."""
  fast, oracle, by_head, make = CASES[name]
  inputs = make(np.random.default_rng(0), 19)
  inputs = [jnp.asarray(x, jnp.float32) for x in inputs]

  def slow(*inputs):
    by_string = jax.vmap(lambda *x: oracle(jnp, *x))  # Of a head.
    by_head_too = jax.vmap(by_string, in_axes=2, out_axes=2)
    return by_head_too(*map(jnp.asarray, by_head(*inputs)))

  def gradient(function):
    def loss(inputs):
      out = function(*inputs)
      return jnp.sum(out * jnp.sin(jnp.arange(out.size)).reshape(out.shape))

    return jax.jit(jax.grad(loss))(inputs)

  # Both in single precision: what differs is the order of sums.
  for own, expected in zip(gradient(fast), gradient(slow), strict=True):
    largest = np.abs(expected).max()
    np.testing.assert_allclose(own, expected, atol=2e-4 * max(1, largest))


def test_no_solver_is_called():
  """Many small ones at once never end on a CPU: see `_inverse`."""
  *inputs, r, b = _general_case('scalar', True)(np.random.default_rng(0), 3)
  found = equations.of(linear_recurrence.in_chunks, *inputs, (r, b))
  names = {equation.primitive.name for equation in found}
  assert 'dot_general' in names
  assert 'triangular_solve' not in names


@pytest.mark.parametrize(
  ('platform', 'key', 'has_erase', 'in_chunks'),
  [
    ('cpu', 16, True, False),
    ('cpu', 17, True, True),
    ('cpu', 16, False, True),
    ('gpu', 16, True, True),
  ],
)
def test_the_faster_form_is_chosen(
  platform, key, has_erase, in_chunks, monkeypatch
):
  monkeypatch.setattr(jax, 'default_backend', lambda: platform)
  x = jnp.zeros((1, 32, 1, key))
  erase = (x, x) if has_erase else None
  # Not `run` itself, of which JAX would remember another platform's.
  found = equations.of(
    lambda *x: linear_recurrence.run(*x), x, x, x, x[..., :1], erase
  )
  (scan,) = (e for e in found if e.primitive.name == 'scan')
  assert scan.params['length'] == (2 if in_chunks else 32)


def _products(gates):
  rows = [np.eye(16)[0]]
  for i in range(1, 16):
    rows.append(rows[-1] * gates[i] + np.eye(16)[i])
  return np.stack(rows)


def _inverse(lower):
  return np.linalg.inv(np.eye(16) - np.tril(lower, -1))


def _gates(rng):
  gates = rng.uniform(-1, 1, size=16)
  gates[[5, 8, 15]] = 0
  return gates


def _reflected(rng):
  """One key in the whole chunk: entries are as large as they can be."""
  del rng
  return np.tril(np.full((16, 16), -2.0), -1)


@pytest.mark.parametrize(
  ('own', 'oracle', 'make'),
  [
    (linear_recurrence._segment_products, _products, _gates),
    (linear_recurrence._inverse, _inverse, _reflected),
  ],
)
def test_within_a_chunk(own, oracle, make):
  """Values, and the gradient along a direction, of finite differences."""
  rng = np.random.default_rng(0)
  x = make(rng)
  weights = rng.normal(size=(16, 16)).astype(np.float32)
  found, pull = jax.vjp(jax.jit(own), jnp.asarray(x, jnp.float32))
  np.testing.assert_allclose(found, oracle(x), atol=1e-5)
  (gradient,) = pull(weights)
  if x.ndim == 2:  # What is not below the diagonal is 0.
    gradient = np.tril(gradient, -1)
  measured, by_gradient = numpy_oracle.slopes(
    lambda x: np.sum(weights * oracle(x)), x, gradient
  )
  np.testing.assert_allclose(by_gradient, measured, rtol=1e-4)
