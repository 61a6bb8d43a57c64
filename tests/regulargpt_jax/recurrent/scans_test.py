"""The recurrences of sLSTM and PD-SSM against plain NumPy in float64.

Gradients are of finite differences of the NumPy functions.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.recurrent import pd_ssm, xlstm
from tests.regulargpt_jax import numpy_oracle
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
  """Gradients of a random weighting, along a random direction."""
  fast, slow, make = _CASES[name]
  inputs = dict(enumerate(make()))
  expected = slow(*inputs.values())
  weights = _RNG.normal(size=expected.shape)

  def loss(inputs):
    out = fast(*inputs.values())
    return jnp.sum(out * weights), out

  found, out = jax.jit(jax.grad(loss, has_aux=True))(
    {k: jnp.asarray(x, jnp.float32) for k, x in inputs.items()}
  )
  np.testing.assert_allclose(out, expected, atol=1e-4)
  measured, by_gradient = numpy_oracle.slopes(
    lambda inputs: np.sum(weights * slow(*inputs.values())), inputs, found
  )
  np.testing.assert_allclose(by_gradient, measured, rtol=1e-3, atol=1e-2)


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
