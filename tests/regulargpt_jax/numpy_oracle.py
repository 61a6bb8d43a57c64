"""RegularGPT and GPT once more: NumPy, float64, straight from the papers.

One string at a time and one position at a time, nothing padded: slow, short,
and without a line of the code under test. Parameters are read by name.

Letters: D width, H heads, d head size, S what a position sees.
"""

import jax
import numpy as np


def as_float64(tree):
  """Returns nested dictionaries of arrays in float64."""
  if hasattr(tree, 'items'):
    return {name: as_float64(value) for name, value in tree.items()}
  return np.asarray(tree, np.float64)


def slopes(f, params, gradient):
  """Returns the slope of f in a random direction: measured, by a gradient.

  Args:
    f: From parameters, in float64, to a number.
    params: Where.
    gradient: What is said to be the gradient of f there.
  """
  params, gradient = as_float64(params), as_float64(gradient)
  rng = np.random.default_rng(0)
  direction = jax.tree.map(lambda x: rng.normal(size=x.shape), params)

  def moved(step):
    return f(jax.tree.map(lambda x, d: x + step * d, params, direction))

  by_gradient = jax.tree.map(lambda g, d: (g * d).sum(), gradient, direction)
  return (moved(1e-7) - moved(-1e-7)) / 2e-7, sum(jax.tree.leaves(by_gradient))


def softmax(logits):
  """Returns the softmax over the last axis."""
  powers = np.exp(logits - logits.max(-1, keepdims=True))
  return powers / powers.sum(-1, keepdims=True)


def layer_norm(x, scale, bias):
  """Returns the layer norm over the last axis (Ba et al., 2016)."""
  deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
  return (x - x.mean(-1, keepdims=True)) / deviation * scale + bias


def attend(query_HxD, keys_SxHxD, values_SxHxD, bias_HxS):
  """Returns softmax(q K / sqrt(d) + bias) V of every head, [H, d]."""
  num_heads, head_size = query_HxD.shape
  out = np.zeros((num_heads, head_size))
  for h in range(num_heads):
    logits = keys_SxHxD[:, h] @ query_HxD[h] / np.sqrt(head_size)
    out[h] = softmax(logits + bias_HxS[h]) @ values_SxHxD[:, h]
  return out


def _linear(p, x):
  return x @ p['kernel'] + p.get('bias', 0.0)


def _block(p, c, x_D, seen_SxD, bias_HxS):
  """Returns a block's output at a position that sees some, itself included."""

  def norm(name, x):
    return layer_norm(x, p[name]['scale'], p[name]['bias'])

  def heads(name, x):
    return _linear(p[name], x).reshape(*x.shape[:-1], c.num_heads, -1)

  query, seen = x_D, seen_SxD
  if c.norm == 'pre':
    query, seen = (norm('attention_norm', x) for x in (x_D, seen_SxD))
  attended_HxD = attend(
    heads('query', query), heads('key', seen), heads('value', seen), bias_HxS
  )
  h = x_D + _linear(p['projection'], attended_HxD.reshape(-1))
  if c.norm == 'post':
    h = norm('attention_norm', h)
  hidden = _linear(p['ffn_in'], norm('ffn_norm', h) if c.norm == 'pre' else h)
  if c.activation == 'relu':
    hidden = np.maximum(hidden, 0)
  else:  # Hendrycks & Gimpel, 2016, section 2.
    cubic = hidden + 0.044715 * hidden**3
    hidden = hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * cubic)) / 2
  h = h + _linear(p['ffn_out'], hidden)
  return norm('ffn_norm', h) if c.norm == 'post' else h


def _embed(p, c, tokens):
  return p['embedding'][tokens] * (
    np.sqrt(c.embedding_dim) ** c.scale_embedding
  )


def _logits(p, c, h):
  if c.norm == 'pre':
    h = layer_norm(h, p['final_norm']['scale'], p['final_norm']['bias'])
  return h @ p['embedding'].T if c.tie_embedding else _linear(p['readout'], h)


def regular_gpt(params, config, tokens, extra_levels=0):
  """Returns RegularGPT's logits at all positions (Chi et al., 2023, sec. 3).

  Args:
    params: As the module's `init` returns them.
    config: A `RegularGPTConfig`.
    tokens: A string, [T].
    extra_levels: Beyond L(T).
  """
  p, c = as_float64(params['params']), config
  length = len(tokens)
  num_levels = 1
  while c.chunk_size**num_levels < length:
    num_levels += 1
  h = _embed(p, c, np.array(tokens))
  num_levels = min(max(num_levels, c.min_levels), c.max_levels)
  for level in range(num_levels + extra_levels):
    for k in range(c.thickness):
      block = p[f'block_{k}']
      new = []
      for m in range(length):
        places = [m - j * c.chunk_size**level for j in range(c.chunk_size)]
        if c.pad == 'masked':
          places = [n for n in places if n >= 0]
        seen = np.array([h[n] if n >= 0 else p['pad'] for n in places])
        bias = block['position_bias'][:, : len(places)]
        new.append(_block(block, c, h[m], seen, bias))
      h = np.array(new)
  return _logits(p, c, h)


def gpt(params, config, tokens):
  """Returns GPT's logits at all positions."""
  p, c = as_float64(params['params']), config
  h = _embed(p, c, np.array(tokens))
  for layer in range(c.num_layers):
    shared = 0 if c.position_bias == 't5' else layer
    bias_p = p.get(f'position_bias_{shared}', {})
    bias = position_bias(c.position_bias, bias_p, c.num_heads, len(tokens))
    h = np.array(
      [
        _block(p[f'block_{layer}'], c, h[m], h[: m + 1], bias[:, m::-1])
        for m in range(len(tokens))
      ]
    )
  return _logits(p, c, h)


def t5_bucket(distance):
  """Returns the bucket of a distance (Raffel et al., 2020), in integers.

  16 buckets of one distance each, then 16 log_8(distance / 16) more, up to 31:
  at least i of them if distance^16 >= 16^16 8^i.
  """
  steps = [i for i in range(1, 16) if distance**16 >= 16**16 * 8**i]
  return min(distance, 16) + len(steps)


def position_bias(kind, p, num_heads, length):
  """Returns what is added to the logits by head and distance, [H, T].

  ALiBi: Press et al., 2022, section 3; KERPLE: Chi et al., 2022, eq. 6.
  """
  bias = np.zeros((num_heads, length))
  for h, distance in np.ndindex(num_heads, length):
    if kind == 'alibi':
      # Every second slope of 16 heads, beyond the first 8; and so on.
      power = 2 ** int(np.log2(num_heads))
      place = h + 1 if h < power else h - power + 0.5
      bias[h, distance] = -(2.0 ** (-8 * place / power)) * distance
    elif kind == 'kerple_log':
      r1, r2 = (np.log(1 + np.exp(p[name][h])) for name in ('r1', 'r2'))
      bias[h, distance] = -r1 * np.log(1 + r2 * distance)
    elif kind == 't5':
      bias[h, distance] = p['bias'][t5_bucket(distance), h]
  return bias
