"""The recurrences of sLSTM and PD-SSM against plain NumPy in float64.

Gradients are of finite differences of the NumPy functions.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.recurrent import pd_ssm, xlstm
from tests.regulargpt_jax.recurrent import numpy_models

_B, _T = 2, 9
_RNG = np.random.default_rng(0)


def _slstm(pre, r):
  return np.stack([numpy_models.slstm(one, r) for one in pre])


def _pd_ssm(p, d, b):
  d, b = (y[..., 0] + 1j * y[..., 1] for y in (d, b))
  strings = zip(p, d, b, strict=True)
  x = np.stack([numpy_models.pd_ssm(*string) for string in strings])
  return np.stack([x.real, x.imag], axis=-1)


def _fast_slstm(pre, r):
  return xlstm.recur_slstm(pre, r, jnp.ones((_B, _T, 1), bool))


def _slstm_inputs():
  # Input gates from e^-9 to e^9 or so.
  return [
    3 * _RNG.normal(size=(_B, _T, 4, 2, 3)),
    _RNG.normal(size=(4, 2, 3, 3)),
  ]


def _pd_ssm_inputs():
  p = np.eye(4)[_RNG.integers(4, size=(_B, _T, 4))].swapaxes(-1, -2)
  turned = np.exp(1j * _RNG.uniform(0, 2 * np.pi, size=(_B, _T, 4)))
  d = np.stack([turned.real, turned.imag], axis=-1)
  return [p, d, _RNG.normal(size=(_B, _T, 4, 2))]


_CASES = {
  'sLSTM': (_fast_slstm, _slstm, _slstm_inputs),
  'PD-SSM': (pd_ssm.recur, _pd_ssm, _pd_ssm_inputs),
}


@pytest.mark.parametrize('name', _CASES)
def test_values_and_gradients(name):
  """Gradients of a random weighting, along a random direction of each input."""
  fast, slow, make = _CASES[name]
  inputs = make()
  expected = slow(*inputs)
  weights = _RNG.normal(size=expected.shape)

  def loss(*inputs):
    out = fast(*inputs)
    return jnp.sum(out * weights), out

  which = tuple(range(len(inputs)))
  gradient = jax.jit(jax.grad(loss, which, has_aux=True))
  found, out = gradient(*(jnp.asarray(x, jnp.float32) for x in inputs))
  np.testing.assert_allclose(out, expected, atol=1e-4)
  for k, own in enumerate(found):
    direction = _RNG.normal(size=inputs[k].shape)
    step = [1e-5 * direction if j == k else 0 for j in which]
    above, below = (
      np.sum(
        weights * slow(*(x + s * y for x, y in zip(inputs, step, strict=True)))
      )
      for s in (1, -1)
    )
    slope = (above - below) / 2e-5
    assert np.sum(own * direction) == pytest.approx(slope, rel=1e-3, abs=1e-2)


def test_columns_are_one_hot_and_their_gradient_is_the_softmaxs():
  scores = jnp.asarray(_RNG.normal(size=(3, 4, 4)), jnp.float32)
  weights = jnp.asarray(_RNG.normal(size=(3, 4, 4)), jnp.float32)
  columns = pd_ssm.one_hot_columns(scores)
  np.testing.assert_allclose(np.sort(columns, axis=-2)[:, -1], 1, atol=1e-6)
  np.testing.assert_allclose(jnp.sum(columns, axis=-2), 1, atol=1e-6)
  own, soft = (
    jax.grad(lambda s, f=f: jnp.sum(f(s) * weights))(scores)
    for f in (pd_ssm.one_hot_columns, lambda s: jax.nn.softmax(s, axis=-2))
  )
  np.testing.assert_allclose(own, soft, atol=1e-6)
