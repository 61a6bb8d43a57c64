"""The architectures since 2023 once more: NumPy, float64, symbol by symbol.

One string at a time, nothing padded: each layer as its paper and the class's
docstring say. Parameters are read by name, layers in the order of their making.

Letters: T length, D width, F features, H heads, d head size.
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


def _slstm(p, model, x):
  num_heads = model.num_heads
  z, o = np.split(_linear(p, 0, x), 2, axis=-1)
  i, f = np.split(_linear(p, 1, _convolved(p, 0, x)), 2, axis=-1)
  z, i, f, o = (_heads(y, num_heads) for y in (z, i, f, o))
  h = c = n = np.zeros(z[0].shape)
  out = []
  for t in range(len(x)):
    inside = np.einsum('hd,ghde->ghe', h, p['recurrent'])
    z_t, i_t, f_t, o_t = (
      y[t] + more for y, more in zip((z, i, f, o), inside, strict=True)
    )
    kept = _sigmoid(f_t + p['forget_bias'])
    c = kept * c + np.exp(i_t) * np.tanh(z_t)
    n = kept * n + np.exp(i_t)
    h = _sigmoid(o_t) * c / n
    out.append(_rms_norm(p, 0, h).reshape(-1))
  return _linear(p, 2, np.array(out))


def _mlstm(p, model, x):
  inner, z = np.split(_linear(p, 0, x), 2, axis=-1)
  convolved = _convolved(p, 0, inner)
  q, k = np.split(_linear(p, 1, convolved), 2, axis=-1)
  v = _linear(p, 2, inner)
  gates = _linear(p, 3, np.concatenate([q, k, v], axis=-1))
  log_input, forget = np.split(gates, 2, axis=-1)
  added = np.exp(15 * np.tanh(log_input / 15))
  kept = _sigmoid(forget + p['forget_bias'])
  q, k, v = (_heads(y, model.num_heads) for y in (q, k, v))
  k = k / np.sqrt(k.shape[-1])
  cell, normalizer = np.zeros((*v[0].shape, k.shape[-1])), np.zeros(k[0].shape)
  out = []
  for t in range(len(x)):
    cell = kept[t][:, None, None] * cell + added[t][:, None, None] * (
      v[t][:, :, None] * k[t][:, None]
    )
    normalizer = kept[t][:, None] * normalizer + added[t][:, None] * k[t]
    by = np.abs((normalizer * q[t]).sum(-1, keepdims=True))
    h = np.einsum('hvk,hk->hv', cell, q[t]) / np.maximum(by, 1)
    out.append(_rms_norm(p, 0, h).reshape(-1) + p['skip'] * convolved[t])
  return _linear(p, 4, np.array(out) * _silu(z))


def _mamba_2(p, model, x):
  inner, size = 2 * x.shape[-1], model.state_size
  z = _linear(p, 0, x)
  mixed = _convolved(p, 0, _linear(p, 1, x))
  values, b, c = np.split(mixed, [inner, inner + size], axis=-1)
  values = _heads(values, model.num_heads)
  step, gate = _decay(p, x)
  if model.eigenvalues == '[-1,1]':
    gate = 2 * gate - 1
  state, out = np.zeros((*values[0].shape, size)), []
  for t in range(len(x)):
    state = gate[t][:, None, None] * state + (
      (step[t][:, None] * values[t])[:, :, None] * b[t]
    )
    out.append((state @ c[t] + p['skip'][:, None] * values[t]).reshape(-1))
  return _linear(p, 2, _rms_norm(p, 0, np.array(out) * _silu(z)))


def _gated_delta(p, model, x):
  num_factors = getattr(model, 'num_factors', 1)
  num_heads = model.num_heads

  def projected(number, num=num_factors):
    y = _convolved(p, number, _linear(p, number, x))
    return y.reshape(len(x), num, num_heads, -1)

  q = _unit(projected(0, 1))[:, 0]
  k, v = _unit(projected(1)), projected(2)
  strength = _sigmoid(_linear(p, 3, x)).reshape(len(x), num_factors, num_heads)
  if model.eigenvalues == '[-1,1]':
    strength = 2 * strength
  _, gate = _decay(p, x)
  state, out = np.zeros((num_heads, v.shape[-1], k.shape[-1])), []
  for t in range(len(x)):
    state = gate[t][:, None, None] * state
    for m in range(num_factors):
      known = np.einsum('hvk,hk->hv', state, k[t, m])
      error = strength[t, m][:, None] * (v[t, m] - known)
      state = state + error[:, :, None] * k[t, m][:, None]
    h = np.einsum('hvk,hk->hv', state, q[t])
    out.append(_rms_norm(p, 0, h).reshape(-1))
  return _linear(p, 5, np.array(out) * _silu(_linear(p, 4, x)))


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
    rate = 2 * rate
  r, k, v, decay, rate, removal = (
    _heads(y, model.num_heads) for y in (r, k, v, decay, rate, removal)
  )
  bonus = _heads(p['bonus'][None], model.num_heads)[0]
  removal = _unit(removal)
  state, out = np.zeros((*v[0].shape, k.shape[-1])), []
  for t in range(len(x)):
    erased = np.einsum('hvk,hk->hv', state, removal[t])
    state = state * decay[t][:, None] - (
      erased[:, :, None] * (rate[t] * removal[t])[:, None]
    )
    state = state + v[t][:, :, None] * k[t][:, None]
    h = np.einsum('hvk,hk->hv', state, r[t])
    center = h - h.mean(-1, keepdims=True)
    norm, scale = p['LayerNorm_0'], (center**2).mean(-1, keepdims=True) + 1e-6
    h = center / np.sqrt(scale) * norm['scale'] + norm['bias']
    h = h + (r[t] * bonus * k[t]).sum(-1, keepdims=True) * v[t]
    out.append(h.reshape(-1))
  gate = _linear(p, 8, _sigmoid(_linear(p, 7, x_g)))
  return _linear(p, 9, np.array(out) * gate)


def _pd_ssm(p, model, x):
  def generated(name):
    return _sigmoid(_linear(p, name, _gelu(_linear(p, f'{name}_hidden', x))))

  chosen = numpy_oracle.softmax(_linear(p, 0, x))
  d = generated('magnitude') * np.exp(2j * np.pi * generated('phase'))
  b = _linear(p, 1, x).reshape(len(x), -1, 2) @ [1, 1j]
  state, out = np.eye(1, model.state_size)[0], []
  for t in range(len(x)):
    mixed = np.einsum('m,mij->ij', chosen[t], p['dictionary'])
    goes_to = mixed.argmax(0)
    after = np.zeros(model.state_size, complex)
    for place, value in enumerate(d[t] * state):
      after[goes_to[place]] += value
    state = after + b[t]
    out.append(np.stack([state.real, state.imag], axis=-1).reshape(-1))
  return _linear(p, 2, np.array(out)) + p['skip'] * x


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
