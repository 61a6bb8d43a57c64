"""What a level of RegularGPT makes of regions: its block, enclosed.

Letters: N regions at a time, C chunk size, D width, H heads, d head size, U
hidden units.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import chex
import numpy as np

from regulargpt_jax import config as config_lib
from regulargpt_jax.analysis import bounds, nonlinear

# Of flax.linen.LayerNorm, as `transformer.Block` sets it.
_EPSILON = 1e-5
# Entries of the largest array, about.
_MAX_ENTRIES = 2**23


class Weights(NamedTuple):
  """A model's parameters in float64, which holds float32 exactly.

  Attributes:
    block: Of block_0, as a tree.
    bias: r by head and position in the chunk, the last one last; [H, C].
    symbols: What stands for each symbol, [V, D].
    symbols_slack: How far it may be from that in the model's arithmetic.
    pad: [D].
    readout: Kernel [D, classes] and bias [classes].
    arithmetic: The model's.
  """

  block: Any
  bias: np.ndarray
  symbols: np.ndarray
  symbols_slack: np.ndarray
  pad: np.ndarray
  readout: tuple[np.ndarray, np.ndarray]
  arithmetic: bounds.Arithmetic


def weights(
  config: config_lib.RegularGPTConfig, params: chex.ArrayTree
) -> Weights:
  """Returns what `level` needs of a model.

  Args:
    config: Of the model: post-norm with residuals, ReLU, no attention bias, a
      learned pad, one block.
    params: Its parameters, {'params': ...}.

  Raises:
    ValueError: If it is another kind of model.
  """
  needed = {
    'norm': 'post',
    'residual': True,
    'activation': 'relu',
    'attention_bias': False,
    'tie_embedding': False,
    'pad': 'learned',
    'thickness': 1,
  }
  for name, value in needed.items():
    if getattr(config, name) != value:
      raise ValueError(
        f'Only models with {name} {value} are enclosed; this one has'
        f' {getattr(config, name)}.'
      )

  def in_float64(tree):
    if isinstance(tree, dict):
      return {name: in_float64(branch) for name, branch in tree.items()}
    return np.asarray(tree, np.float64)

  tree = in_float64(params['params'])
  scale = config.embedding_dim**0.5 if config.scale_embedding else 1.0
  symbols = tree['embedding'] * scale
  return Weights(
    tree['block_0'],
    np.flip(tree['block_0']['position_bias'], -1),
    symbols,
    # The factor is rounded, and the product; and ours are.
    np.abs(symbols) * (4 * bounds.FLOAT32.unit + 2.0**-50),
    tree['pad'],
    (tree['readout']['kernel'], tree['readout']['bias']),
    bounds.FLOAT32,
  )


def _stacked(forms: list[bounds.Form], num_heads: int) -> bounds.Form:
  """Puts forms of H d entries side by side, in the order [H, forms, d]."""

  def joined(arrays):
    parts = [x.reshape(len(x), num_heads, 1, -1, *x.shape[2:]) for x in arrays]
    x = np.concatenate(parts, axis=2)
    return x.reshape(len(x), -1, *x.shape[4:])

  return forms[0]._replace(
    center=joined([f.center for f in forms]),
    gens=joined(bounds.aligned(*(f.gens for f in forms))),
    slack=joined([f.slack for f in forms]),
  )


def _attention(children: list[bounds.Form], w: Weights) -> bounds.Form:
  """Returns the attention's output before its projection, [N, D].

  In real numbers it is v_C + sum_c w_c (v_c - v_C) over the keys c but the
  last, since weights sum to 1, and weights depend on differences of logits, q
  (k_c - k_C) / sqrt(d) + r_c - r_C. The computed logits, each a sum of d
  products and a bias, differ by gamma times the sum of absolute values. The
  computed output, a sum of C products, by gamma times the largest value, and
  by the relative error of the weights times the largest value; what that makes
  of differences v_c - v_C is in the weights' slack already.
  """
  unit = w.arithmetic.unit
  (num_heads, num_keys), dim = w.bias.shape, children[0].center.shape[-1]
  head_size = dim // num_heads
  q = bounds.linear(
    children[-1], w.block['query']['kernel'] * head_size**-0.5, 0.0, unit
  )
  keys, values = (
    [bounds.linear(x, w.block[name]['kernel'], unit=unit) for x in children]
    for name in ('key', 'value')
  )
  differences = _stacked(
    [bounds.added(k, keys[-1], -1.0) for k in keys[:-1]], num_heads
  )
  queries = _stacked([q] * (num_keys - 1), num_heads)
  logits = bounds.dot(queries, differences, num_heads * (num_keys - 1))
  bias = w.bias[:, :-1] - w.bias[:, -1:]
  sizes = [
    (bounds.sup(q) * bounds.sup(k)).reshape(-1, num_heads, head_size).sum(-1)
    for k in keys
  ]
  # [N, H, C - 1]
  rounding = np.stack(sizes[:-1], -1) + sizes[-1][..., None]
  rounding += np.abs(w.bias[:, :-1]) + np.abs(w.bias[:, -1:])
  rounding *= 2 * bounds.gamma(head_size + 4, unit)
  logits = logits._replace(
    center=logits.center + bias.reshape(-1),
    slack=logits.slack + rounding.reshape(len(rounding), -1),
  )
  attention, relative = nonlinear.softmax(logits, num_keys, w.arithmetic)
  differences = _stacked(
    [bounds.added(v, values[-1], -1.0) for v in values[:-1]], num_heads
  )
  terms = bounds.times(differences, attention)
  # From [H, C - 1, d] to [H, d].
  kernel = np.kron(
    np.eye(num_heads),
    np.kron(np.ones((num_keys - 1, 1)), np.eye(head_size)),
  )
  out = bounds.added(bounds.linear(terms, kernel), values[-1], 1.0)
  largest = np.max([bounds.sup(v) for v in values], axis=0)
  error = np.repeat(relative[..., 0], head_size, axis=1)
  error = error + 2 * bounds.gamma(num_keys + 2, unit)
  return out._replace(slack=bounds.up(out.slack + error * largest))


def level(children: list[bounds.Form], w: Weights) -> bounds.Form:
  """Returns the state above C children; see `model.RegularGPT.level`.

  Args:
    children: C forms [N, D], the last child last; `pad` among them.
    w: Of the model.
  """
  unit = w.arithmetic.unit

  def norm(x, name):
    part = w.block[name]
    return nonlinear.layer_norm(
      x, part['scale'], part['bias'], _EPSILON, w.arithmetic
    )

  def dense(x, name):
    part = w.block[name]
    return bounds.linear(x, part['kernel'], part.get('bias', 0.0), unit)

  out = dense(_attention(children, w), 'projection')
  h = norm(bounds.added(out, children[-1], 1.0, unit), 'attention_norm')
  h = bounds.tracked(h)
  ffn = dense(nonlinear.relu(dense(h, 'ffn_in')), 'ffn_out')
  return norm(bounds.added(ffn, h, 1.0, unit), 'ffn_norm')


def blocks(items_N: np.ndarray, w: Weights) -> Iterator[np.ndarray]:
  """Yields as many items at a time as `level` has room for."""
  # Hidden units times symbols, most of which are hidden units' own.
  kernel = w.block['ffn_in']['kernel']
  size = max(1, _MAX_ENTRIES // (2 * kernel.shape[1] * sum(kernel.shape)))
  for i in range(0, len(items_N), size):
    yield items_N[i : i + size]
