"""The loss of a tree's nodes against substrings, one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import config as config_lib
from regulargpt_jax import depth, node_loss
from regulargpt_jax import model as model_lib

_TRANSITIONS = np.array([[1, 0], [2, 0], [2, 1]])


def _slow_loss(module, variables, tokens, chunk_size, extra_levels):
  """Node by node: what its symbols do, and the last state of what it read."""
  max_levels = depth.depth(tokens.shape[1], chunk_size) + extra_levels

  @jax.jit
  def read(string_T, num_levels):
    bound = module.bind(variables)
    h = bound._reference(string_T[None], num_levels[None], max_levels)
    logits = bound.node_readout(bound.normalized(h[0, -1]))
    return jax.nn.log_softmax(logits.reshape(3, 3))

  by_level = {}
  for row in tokens:
    string = row[row >= 0]
    length = len(string)
    for level in range(depth.depth(length, chunk_size) + extra_levels):
      size = chunk_size ** (level + 1)
      for end in range(length, 0, -size):
        # With K > 1 a node's first blocks look to the left of its symbols.
        before = np.pad(string[:end], (len(row) - end, 0), constant_values=-1)
        scores = np.asarray(read(before, np.int32(level + 1)))
        losses = []
        for state in range(3):
          after = state
          for symbol in string[max(0, end - size) : end]:
            after = _TRANSITIONS[after, symbol]
          losses.append(-scores[state, after])
        by_level.setdefault(level, []).append(np.mean(losses))
  return np.mean([np.mean(losses) for losses in by_level.values()])


@pytest.mark.parametrize(
  ('preset', 'chunk_size', 'thickness', 'extra_levels', 'is_tabulated'),
  [
    ('benchmark', 2, 1, 0, False),
    pytest.param('benchmark', 2, 1, 1, True, marks=pytest.mark.slow),
    pytest.param('benchmark', 3, 2, 0, False, marks=pytest.mark.slow),
    ('language', 3, 1, 1, True),
  ],
)
def test_loss_is_that_of_each_substring(
  preset, chunk_size, thickness, extra_levels, is_tabulated
):
  config = config_lib.make_config(
    preset,
    vocab_size=2,
    output_size=2,
    embedding_dim=4,
    num_heads=2,
    chunk_size=chunk_size,
    thickness=thickness,
    tie_embedding=False,
    node_outputs=9,
  )
  module = model_lib.RegularGPT(config)
  rng = np.random.default_rng(0)
  lengths = [1, 2, 9]
  width = 9
  tokens = np.full((3, width), -1)
  for row, length in zip(tokens, lengths, strict=True):
    row[width - length :] = rng.integers(0, 2, length)
  # Copies change no mean; with many symbols the first levels have tables.
  copies = 20 if is_tabulated else 1
  many = jnp.asarray(np.tile(tokens, (copies, 1)))
  variables = jax.jit(module.init)(jax.random.key(0), many)

  @jax.jit
  def apply(tokens):
    nodes = module.apply(variables, tokens, extra_levels, method='nodes')
    return (
      module.apply(variables, tokens, extra_levels=extra_levels),
      nodes,
      node_loss.loss(*nodes[1:], tokens, _TRANSITIONS, chunk_size),
    )

  expected, (logits, node_logits, _), loss = apply(many)
  assert any(x.ndim == 2 for x in node_logits) == is_tabulated
  np.testing.assert_allclose(logits, expected, atol=1e-6)
  expected = _slow_loss(module, variables, tokens, chunk_size, extra_levels)
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
