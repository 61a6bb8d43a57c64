"""The recurrences of sLSTM and PD-SSM against the slow, obvious ones.

sLSTM's is NumPy's in float64, and its gradients are of finite differences;
PD-SSM's, whose gradients are not, is with matrices and step by step.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax.recurrent import map_recurrence, xlstm
from tests.regulargpt_jax import equations, numpy_oracle
from tests.regulargpt_jax.recurrent import numpy_models

_B, _T = 2, 9
_RNG = np.random.default_rng(0)


def _slstm(pre, r):
  return np.stack([numpy_models.slstm(one, r) for one in pre])


def _fast_slstm(pre, r):
  return xlstm.recur_slstm(pre, r, jnp.ones((_B, _T, 1), bool))


def _slstm_inputs():
  # Input gates from e^-9 to e^9 or so.
  return [
    3 * _RNG.normal(size=(_B, _T, 4, 2, 3)),
    _RNG.normal(size=(4, 2, 3, 3)),
  ]


def _with_gradients(recur, weights):
  """Returns a function of inputs: outputs, and gradients of their sum."""

  def loss(inputs):
    out = recur(*inputs)
    return jnp.sum(out * weights), out

  return jax.jit(jax.grad(loss, has_aux=True))


def _pd_ssm_inputs(length, size):
  def normal(*shape):
    return jnp.asarray(_RNG.normal(size=shape), jnp.float32)

  chosen = jax.nn.softmax(normal(_B, length, 3))
  angle = normal(_B, length, size)
  d = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-2)
  return [chosen, normal(3, size, size), d, normal(_B, length, 2, size)]


# A chunk, one symbol, more than two chunks; places with one to go to.
@pytest.mark.parametrize(
  ('length', 'size'), [(1, 5), (16, 1), (16, 5), (37, 5)]
)
def test_maps_are_the_matrices(length, size):
  """Values, and gradients with respect to all inputs, one of symbols too."""
  inputs = _pd_ssm_inputs(length, size)
  if length == 37:
    inputs[0] = inputs[0].at[0, :20].set(0)  # As where there is no symbol.
  weights = _RNG.normal(size=inputs[-1].shape).astype(np.float32)
  (gradients, out), (expected_gradients, expected) = (
    _with_gradients(f, weights)(inputs)
    for f in (map_recurrence.run, map_recurrence.in_steps)
  )
  np.testing.assert_allclose(out, expected, atol=1e-4)
  # What is nobody's share has a gradient that is not asked for.
  is_symbol = jnp.any(inputs[0] > 0, axis=-1, keepdims=True)
  for own, other in (
    (gradients[0] * is_symbol, expected_gradients[0] * is_symbol),
    *zip(gradients[1:], expected_gradients[1:], strict=True),
  ):
    largest = max(1, jnp.abs(other).max())
    np.testing.assert_allclose(own, other, atol=1e-4 * largest)


def test_of_equal_scores_the_first_is_taken():
  chosen, dictionary = jnp.ones((1, 1, 1)), jnp.zeros((1, 3, 3))
  d = jnp.zeros((1, 1, 2, 3)).at[..., 0, :].set(jnp.array([2, 3, 4]))
  x = map_recurrence.run(chosen, dictionary.at[0, 1:, 0].set(1), d, 0 * d)
  np.testing.assert_array_equal(x[0, 0, 0], [0, 2, 0])


def test_runs_beside_each_other_are_as_alone():
  """Each with a dictionary of its own; padding changes not a bit."""
  runs = [_pd_ssm_inputs(21, 3) for _ in range(2)]
  both = [jnp.stack(x) for x in zip(*runs, strict=True)]
  weights = _RNG.normal(size=both[-1].shape).astype(np.float32)
  gradients, out = _with_gradients(jax.vmap(map_recurrence.run), weights)(both)
  chosen, dictionary, d, b = runs[1]
  front = ((0, 0), (16, 0), (0, 0))
  padded = jnp.pad(d, (*front, (0, 0))).at[:, :16, 0].set(1)
  padded = [jnp.pad(chosen, front), dictionary, padded]
  padded += [jnp.pad(b, (*front, (0, 0)))]
  found, alone = _with_gradients(
    lambda *inputs: map_recurrence.run(*inputs)[:, 16:], weights[1]
  )(padded)
  np.testing.assert_array_equal(alone, jax.jit(map_recurrence.run)(*runs[1]))
  np.testing.assert_allclose(out[1], alone, atol=1e-5)
  for own, other in zip(gradients, found, strict=True):
    other = other[:, -21:] if other.shape[1] == 37 else other
    np.testing.assert_allclose(own[1], other, atol=1e-4)


def test_nothing_of_all_positions_is_n_by_n():
  """Memory of a gradient: for each symbol as for few, whatever N."""
  inputs = _pd_ssm_inputs(64, 9)
  gradient = jax.grad(lambda inputs: jnp.sum(map_recurrence.run(*inputs)))
  assert equations.largest(gradient, inputs) < 64 * 9 * 9


def test_slstm():
  """Gradients of a random weighting, along a random direction."""
  inputs = dict(enumerate(_slstm_inputs()))
  expected = _slstm(*inputs.values())
  weights = _RNG.normal(size=expected.shape)
  found, out = _with_gradients(_fast_slstm, weights)(
    [jnp.asarray(x, jnp.float32) for x in inputs.values()]
  )
  np.testing.assert_allclose(out, expected, atol=1e-4)
  measured, by_gradient = numpy_oracle.slopes(
    lambda inputs: np.sum(weights * _slstm(*inputs.values())),
    inputs,
    dict(enumerate(found)),
  )
  np.testing.assert_allclose(by_gradient, measured, rtol=1e-3, atol=1e-2)
