"""Every recurrence against a package's own, where that is installed.

pip install fla-core mlstm_kernels xlstm torch einops mamba2-jax
"""

import numpy as np
import pytest

from regulargpt_jax.recurrent import gated_delta, mamba_2, rwkv_7, xlstm

_B, _T, _H, _K, _V = 2, 37, 2, 3, 4  # Batch, length, heads, keys, values.


@pytest.fixture
def torch():
  return pytest.importorskip('torch')


@pytest.fixture
def draw():
  """Returns functions that draw normal and uniform arrays [B, T, ...]."""
  rng = np.random.default_rng(0)

  def normal(*shape):
    return rng.normal(size=(_B, _T, *shape)).astype(np.float32)

  def uniform(least, most, *shape):
    return rng.uniform(least, most, (_B, _T, *shape)).astype(np.float32)

  return normal, uniform


def _unit(x):
  return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _heads_first(torch, x):
  return torch.as_tensor(x).transpose(1, 2)


@pytest.mark.parametrize('num_factors', [1, 3])
def test_gated_delta(num_factors, torch, draw):
  name = 'product' if num_factors > 1 else 'rule'
  package = pytest.importorskip(f'fla.ops.gated_delta_{name}.naive')
  normal, uniform = draw
  q, k = normal(_H, _K), _unit(normal(num_factors, _H, _K))
  v = normal(num_factors, _H, _V)
  strength, gate = uniform(0, 2, num_factors, _H), uniform(0.5, 1, _H)

  def flat(x):
    return torch.as_tensor(x).reshape(_B, _T * num_factors, *x.shape[3:])

  if num_factors == 1:
    run, more = package.naive_recurrent_gated_delta_rule, {}
  else:
    run = package.naive_recurrent_gated_delta_product
    more = {'num_householder': num_factors}
  expected, _ = run(
    q=torch.as_tensor(q),
    k=flat(k),
    v=flat(v),
    beta=flat(strength),
    g=torch.as_tensor(np.log(gate)),
    scale=1.0,
    **more,
  )
  found = gated_delta.recur(q, k, v, strength, gate)
  np.testing.assert_allclose(found, expected.numpy(), rtol=2e-5, atol=1e-4)


def test_rwkv_7(torch, draw):
  package = pytest.importorskip('fla.ops.generalized_delta_rule.dplr.naive')
  normal, uniform = draw
  r, k, v = normal(_H, _K), normal(_H, _K), normal(_H, _V)
  decay, rate = uniform(0.545, 1, _H, _K), uniform(0, 1, _H, _K)
  removal = _unit(normal(_H, _K))
  inputs = (r * _K**0.5, k, v, removal, -rate * removal, np.log(decay))
  expected, _ = package.dplr_recurrence(
    *(_heads_first(torch, x) for x in inputs)
  )
  found = rwkv_7.recur(r, decay, k, v, removal, rate)
  expected = expected.transpose(1, 2).numpy()
  np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-4)


def test_mlstm(torch, draw):
  package = pytest.importorskip('mlstm_kernels.torch.recurrent.native_sequence')
  normal, _ = draw
  q, k, v = normal(_H, _K), normal(_H, _K), normal(_H, _V)
  log_input, forget = 3 * normal(_H), 3 * normal(_H)
  expected = package.mlstm_recurrent_sequence__native_fw(
    *(_heads_first(torch, x) for x in (q, k, v, log_input, forget)), eps=0.0
  )
  found = xlstm.recur_mlstm(q, k, v, log_input, 1 / (1 + np.exp(-forget)))
  expected = expected.transpose(1, 2).numpy()
  np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-4)


def test_slstm(torch, draw):
  package = pytest.importorskip('xlstm.blocks.slstm.src.vanilla.slstm')
  normal, _ = draw
  pre = 3 * normal(4, _H, _K)  # Of z, i, f and o.
  weights = np.random.default_rng(1).normal(size=(4, _H, _K, _K))
  weights = weights.astype(np.float32)

  def packed(x):  # As the package orders them: i, f, z and o.
    return torch.as_tensor(x[:, [1, 2, 0, 3]].reshape(_B, -1))

  state = torch.zeros(4, _B, _H * _K)
  expected = []
  for t in range(_T):
    h = state[0].numpy().reshape(_B, _H, _K)
    fed_back = np.einsum('bhd,ghde->bghe', h, weights)
    state, _ = package.slstm_forward_pointwise(
      packed(pre[:, t]), packed(fed_back), torch.zeros(1), state, {}
    )
    expected.append(state[0].numpy().reshape(_B, _H, _K))
  found = xlstm.recur_slstm(pre, weights, np.ones((_B, _T, 1), bool))
  np.testing.assert_allclose(
    found, np.stack(expected, axis=1), rtol=2e-5, atol=1e-4
  )


def test_mamba_2(draw):
  package = pytest.importorskip('mamba2_jax.modeling')
  normal, _ = draw
  x, b, c, before = normal(_H, _V), normal(_K), normal(_K), normal(_H)
  rate = np.array([-0.3, -2.0], np.float32)
  expected, _ = package.ssd_forward(
    x,
    before,
    rate,
    *(np.repeat(y[:, :, None], _H, axis=2) for y in (b, c)),
    chunk_size=8,
    D=np.zeros(_H, np.float32),
    dt_bias=np.zeros(_H, np.float32),
    dt_min=0.0,
    dt_max=np.inf,
  )
  step = np.log1p(np.exp(before))
  found = mamba_2.recur(x, b, c, step, np.exp(rate * step))
  np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-4)
