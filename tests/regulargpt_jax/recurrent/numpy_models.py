"""The architectures since 2023 once more: NumPy, float64, symbol by symbol.

One string at a time, nothing padded: each layer as its paper and the class's
docstring say. Parameters are read by name, layers in the order of their making.

Letters: T length, D width, F features, H heads, d head size, K, V sizes of keys
and values, N state size.
"""

import numpy as np

from tests.regulargpt_jax import numpy_oracle


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def _silu(x):
  return x * _sigmoid(x)


def _softplus(x):
  return np.log1p(np.exp(x))


def _gelu(x):
  """By tanh, as Flax has it."""
  return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _linear(p, number, x):
  layer = p[number if isinstance(number, str) else f'Dense_{number}']
  return x @ layer['kernel'] + layer.get('bias', 0)


def _rms_norm(p, number, x):
  square = np.mean(x**2, axis=-1, keepdims=True)
  return x / np.sqrt(square + 1e-6) * p[f'RMSNorm_{number}']['scale']


def _convolved(p, number, x_TxF):
  kernel = p[f'ShortConvolution_{number}']['kernel']
  out = []
  for t in range(len(x_TxF)):
    seen = x_TxF[max(0, t - len(kernel) + 1) : t + 1]
    out.append((kernel[len(kernel) - len(seen) :] * seen).sum(0))
  return _silu(np.array(out))


def _unit(x):
  return x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6)


def _heads(x_TxF, num_heads):
  return x_TxF.reshape(len(x_TxF), num_heads, -1)


def _decay(p, x):
  p = p['DecayGate_0']
  step_TxH = _softplus(_linear(p, 0, x) + p['bias'])
  return step_TxH, np.exp(-np.exp(p['log_rate']) * step_TxH)


# Recurrences of one string and head, which return the outputs, [T, V]; `xp` is
# whose arrays they are of, NumPy or JAX's.
def mamba_2(xp, x_TxV, b_TxK, c_TxK, step_T, gate_T):
  """Dao and Gu, 2024."""
  state, out = xp.zeros((x_TxV.shape[-1], b_TxK.shape[-1])), []
  for x, b, c, step, gate in zip(
    x_TxV, b_TxK, c_TxK, step_T, gate_T, strict=True
  ):
    state = gate * state + step * xp.outer(x, b)
    out.append(state @ c)
  return xp.stack(out)


def gated_delta(xp, q_TxK, k_TxMxK, v_TxMxV, strength_TxM, gate_T):
  """Yang et al., 2025, with the M keys a symbol of Siems et al., 2025."""
  state, out = xp.zeros((v_TxMxV.shape[-1], q_TxK.shape[-1])), []
  for q, keys, values, strengths, gate in zip(
    q_TxK, k_TxMxK, v_TxMxV, strength_TxM, gate_T, strict=True
  ):
    state = gate * state
    for k, v, strength in zip(keys, values, strengths, strict=True):
      state = state - strength * xp.outer(state @ k - v, k)
    out.append(state @ q)
  return xp.stack(out)


def mlstm(xp, q_TxK, k_TxK, v_TxV, log_input_T, forget_T):
  """Beck et al., 2024, eq. 19 to 24."""
  size = q_TxK.shape[-1]
  state, normalizer, out = xp.zeros((v_TxV.shape[-1], size)), xp.zeros(size), []
  for q, k, v, log_input, forget in zip(
    q_TxK, k_TxK, v_TxV, log_input_T, forget_T, strict=True
  ):
    key = xp.exp(log_input) * k / size**0.5
    state = forget * state + xp.outer(v, key)
    normalizer = forget * normalizer + key
    out.append(state @ q / xp.maximum(xp.abs(normalizer @ q), 1))
  return xp.stack(out)


def rwkv_7(xp, r_TxK, decay_TxK, k_TxK, v_TxV, removal_TxK, rate_TxK):
  """Peng et al., 2025, eq. 17."""
  state, out = xp.zeros((v_TxV.shape[-1], k_TxK.shape[-1])), []
  for r, decay, k, v, removal, rate in zip(
    r_TxK, decay_TxK, k_TxK, v_TxV, removal_TxK, rate_TxK, strict=True
  ):
    erase = xp.outer(removal, rate * removal)
    state = state @ (xp.diag(decay) - erase) + xp.outer(v, k)
    out.append(state @ r)
  return xp.stack(out)


def slstm(pre_Tx4xHxd, r_4xHxdxd):
  """Returns h, [T, H, d] (Beck et al., 2024, eq. 8 to 14).

  Without the running maximum: double precision bears it.
  """
  h = c = n = np.zeros(pre_Tx4xHxd.shape[2:])
  out = []
  for pre in pre_Tx4xHxd:
    z, i, f, o = pre + np.einsum('hd,ghde->ghe', h, r_4xHxdxd)
    c = _sigmoid(f) * c + np.exp(i) * np.tanh(z)
    n = _sigmoid(f) * n + np.exp(i)
    h = _sigmoid(o) * c / n
    out.append(h)
  return np.stack(out)


def pd_ssm(p_TxNxN, d_TxN, b_TxN):
  """Returns the states, complex [T, N] (Terzic et al., 2025)."""
  state, out = np.eye(1, b_TxN.shape[-1])[0], []
  for p, d, b in zip(p_TxNxN, d_TxN, b_TxN, strict=True):
    state = p @ (d * state) + b
    out.append(state)
  return np.stack(out)


def _by_head(recurrence, *inputs):
  """Returns outputs, [T, H, V], of inputs [T, H, ...]."""
  heads = range(inputs[0].shape[1])
  return np.stack(
    [recurrence(np, *(x[:, h] for x in inputs)) for h in heads], axis=1
  )


def _merged(x_TxHxd):
  return x_TxHxd.reshape(len(x_TxHxd), -1)


def _slstm(p, model, x):
  z, o = np.split(_linear(p, 0, x), 2, axis=-1)
  i, f = np.split(_linear(p, 1, _convolved(p, 0, x)), 2, axis=-1)
  z, i, f, o = (_heads(y, model.num_heads) for y in (z, i, f, o))
  pre = np.stack([z, i, f + p['forget_bias'], o], axis=1)
  h = slstm(pre, p['recurrent'])
  return _linear(p, 2, _merged(_rms_norm(p, 0, h)))


def _mlstm(p, model, x):
  inner, z = np.split(_linear(p, 0, x), 2, axis=-1)
  convolved = _convolved(p, 0, inner)
  q, k = np.split(_linear(p, 1, convolved), 2, axis=-1)
  v = _linear(p, 2, inner)
  gates = _linear(p, 3, np.concatenate([q, k, v], axis=-1))
  log_input, forget = np.split(gates, 2, axis=-1)
  h = _by_head(
    mlstm,
    *(_heads(y, model.num_heads) for y in (q, k, v)),
    15 * np.tanh(log_input / 15),
    _sigmoid(forget + p['forget_bias']),
  )
  h = _merged(_rms_norm(p, 0, h)) + p['skip'] * convolved
  return _linear(p, 4, h * _silu(z))


def _mamba_2(p, model, x):
  inner, size = 2 * x.shape[-1], model.state_size
  z = _linear(p, 0, x)
  mixed = _convolved(p, 0, _linear(p, 1, x))
  values, b, c = np.split(mixed, [inner, inner + size], axis=-1)
  values = _heads(values, model.num_heads)
  b, c = (np.repeat(y[:, None], model.num_heads, axis=1) for y in (b, c))
  step, gate = _decay(p, x)
  if model.eigenvalues == '[-1,1]':
    gate = 2 * gate - 1
  y = _by_head(mamba_2, values, b, c, step, gate) + p['skip'][:, None] * values
  return _linear(p, 2, _rms_norm(p, 0, _merged(y) * _silu(z)))


def _gated_delta(p, model, x):
  num_factors = getattr(model, 'num_factors', 1)

  def by_factor(y):
    y = y.reshape(len(x), num_factors, model.num_heads, -1)
    return y.swapaxes(1, 2)

  q, k, v = (
    _convolved(p, number, _linear(p, number, x)) for number in range(3)
  )
  strength = by_factor(_sigmoid(_linear(p, 3, x)))[..., 0]
  if model.eigenvalues == '[-1,1]':
    strength = 2 * strength
  _, gate = _decay(p, x)
  q = _unit(_heads(q, model.num_heads))
  k, v = _unit(by_factor(k)), by_factor(v)
  h = _rms_norm(p, 0, _by_head(gated_delta, q, k, v, strength, gate))
  return _linear(p, 5, _merged(h) * _silu(_linear(p, 4, x)))


def _rwkv_7(p, model, x):
  before = np.concatenate([np.zeros_like(x[:1]), x[:-1]])
  x_r, x_w, x_k, x_v, x_a, x_g = (
    x + p[f'mix_{name}'] * (before - x) for name in 'rwkvag'
  )

  r, k, v = (_linear(p, n, y) for n, y in enumerate((x_r, x_k, x_v)))
  speed = p['decay_speed'] + _linear(p, 4, np.tanh(_linear(p, 3, x_w)))
  decay = np.exp(-np.exp(-0.5) * _sigmoid(speed))
  rate = _sigmoid(p['rate_bias'] + _linear(p, 6, _linear(p, 5, x_a)))
  removal = k * p['removal_scale']
  k = k * (1 + p['rate_scale'] * (rate - 1))
  if model.eigenvalues == '[-1,1]':
    rate = (1 + np.exp(-np.exp(-0.5))) * rate
  r, k, v, decay, rate, removal = (
    _heads(y, model.num_heads) for y in (r, k, v, decay, rate, removal)
  )
  bonus = _heads(p['bonus'][None], model.num_heads)[0]
  h = _by_head(rwkv_7, r, decay, k, v, _unit(removal), rate)
  center = h - h.mean(-1, keepdims=True)
  norm, scale = p['LayerNorm_0'], (center**2).mean(-1, keepdims=True) + 1e-6
  h = center / np.sqrt(scale) * norm['scale'] + norm['bias']
  h = h + (r * bonus * k).sum(-1, keepdims=True) * v
  gate = _linear(p, 8, _sigmoid(_linear(p, 7, x_g)))
  return _linear(p, 9, _merged(h) * gate)


def _pd_ssm(p, model, x):
  def generated(name):
    return _sigmoid(_linear(p, name, _gelu(_linear(p, f'{name}_hidden', x))))

  chosen = numpy_oracle.softmax(_linear(p, 0, x))
  mixed = np.einsum('tm,mij->tij', chosen, p['dictionary'])
  goes_to_TxN = mixed.argmax(1)
  moves = np.eye(model.state_size)[goes_to_TxN].swapaxes(1, 2)
  d = generated('magnitude') * np.exp(2j * np.pi * generated('phase'))
  b = _linear(p, 1, x).reshape(len(x), -1, 2) @ [1, 1j]
  states = pd_ssm(moves, d, b)
  states = _merged(np.stack([states.real, states.imag], axis=-1))
  return _linear(p, 2, states) + p['skip'] * x


_MIXERS = {
  'SLSTM': _slstm,
  'MLSTM': _mlstm,
  'Mamba2': _mamba_2,
  'GatedDeltaNet': _gated_delta,
  'GatedDeltaProduct': _gated_delta,
  'RWKV7': _rwkv_7,
  'PDSSM': _pd_ssm,
}


def _feed_forward(p, x):
  gate, value = np.split(_linear(p['FeedForward_0'], 0, x), 2, axis=-1)
  return _linear(p['FeedForward_0'], 1, _silu(gate) * value)


def _looped(p, model, x):
  loop = p['ScanCheckpoint_Loop_0']
  num_loops = [
    t if model.loops == 'length' else max(1, int(np.ceil(np.log2(t))))
    for t in range(1, len(x) + 1)
  ]
  h = np.zeros_like(x)
  for number in range(max(num_loops)):
    y = h + x
    q, k, v = (
      _heads(z, model.num_heads)
      for z in np.split(_linear(loop, 0, _rms_norm(loop, 0, y)), 3, axis=-1)
    )
    no_bias = np.zeros((model.num_heads, len(x)))
    attended = [
      numpy_oracle.attend(
        q[t], k[: t + 1], v[: t + 1], no_bias[:, : t + 1]
      ).reshape(-1)
      for t in range(len(x))
    ]
    y = y + _linear(loop, 1, np.array(attended))
    y = y + _feed_forward(loop, _rms_norm(loop, 1, y))
    h = np.where(np.array(num_loops)[:, None] > number, y, h)
  return _linear(p, 0, _rms_norm(p, 0, h))


def logits(params, model, string):
  """Returns a model's logits at every symbol, [T, output_size].

  Args:
    params: Its parameters, of one layer, {'params': ...}.
    model: One of `recurrent.MODELS`, made.
    string: Its symbols, int [T].
  """
  p = numpy_oracle.as_float64(params['params'])
  x = p['Embed_0']['embedding'][string]
  name = type(model).__name__
  if name == 'LoopedTransformer':
    return _looped(p, model, x)
  (mixer,) = (layer for key, layer in p.items() if 'Mixer' in key)
  x = x + _MIXERS[name](mixer, model, _rms_norm(p, 0, x))
  x = x + _feed_forward(p, _rms_norm(p, 1, x))
  return _linear(p, 0, _rms_norm(p, 2, x))
