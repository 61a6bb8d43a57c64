"""The fast attentions against the T x T mask, at every dilation at once."""

import functools
import itertools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import attention
from tests import slow

_HEADS, _HEAD_SIZE, _BATCH = 2, 3, 2
# Length and chunk size: T below, at and above multiples and powers of C.
_SHAPES = [(1, 2), (7, 2), (8, 3), (9, 3), (16, 4), (21, 5), (33, 16), (40, 7)]


def _inputs(length, chunk_size):
  rng = np.random.default_rng(length)
  shape = (_BATCH, length, _HEADS, _HEAD_SIZE)
  q, k, v = (jnp.asarray(rng.normal(size=shape), jnp.float32) for _ in range(3))
  k_pad, v_pad = (
    jnp.asarray(rng.normal(size=shape[2:]), jnp.float32) for _ in range(2)
  )
  bias = jnp.asarray(rng.normal(size=(_HEADS, chunk_size)), jnp.float32)
  visible = jnp.arange(length) >= jnp.array([[0], [length // 3]])
  return q, k, v, k_pad, v_pad, bias, visible


def _dilations(length, chunk_size):
  return [1, 2, 3, chunk_size, length, length + 1, 10**6]


def _dense(q, k, v, k_pad, v_pad, bias, visible, dilation):
  """Enough pads in front, then the additive mask of eq. (1)."""
  pads = 0
  if k_pad is not None:
    pads = (bias.shape[1] - 1) * q.shape[1]
    front = (_BATCH, pads, _HEADS, _HEAD_SIZE)
    q = jnp.concatenate([jnp.zeros(front), q], 1)
    k = jnp.concatenate([jnp.broadcast_to(k_pad, front), k], 1)
    v = jnp.concatenate([jnp.broadcast_to(v_pad, front), v], 1)
    visible = jnp.ones(q.shape[:2], bool)
  mask = attention.additive_mask(bias, q.shape[1], dilation)
  return attention.dense_attention(q, k, v, mask, visible)[0][:, pads:]


@functools.cache
def _expected(length, chunk_size, has_pad):
  """Outputs by the mask at all dilations, [N, B, T, H, d]."""
  q, k, v, k_pad, v_pad, bias, visible = _inputs(length, chunk_size)
  if not has_pad:
    k_pad = v_pad = None
  # The mask repeats itself beyond the length; its pads reach that far.
  dilations = np.minimum(_dilations(length, chunk_size), length)
  output = functools.partial(_dense, q, k, v, k_pad, v_pad, bias, visible)
  return jax.jit(functools.partial(jax.lax.map, output))(dilations)


def _gathered(q, k, v, k_pad, v_pad, bias, visible, dilation):
  windows = functools.partial(
    attention.dilated_windows, dilation=dilation, chunk_size=bias.shape[1]
  )
  seen = None
  if k_pad is None:
    k_pad = v_pad = jnp.zeros(())
    seen = windows(visible, False)
  return attention.window_attention(
    q, windows(k, k_pad), windows(v, v_pad), bias, seen
  )[0]


def _block_local(q, k, v, k_pad, v_pad, bias, visible, dilation):
  visible = visible if k_pad is None else None
  return attention.block_local_attention(
    q, k, v, k_pad, v_pad, bias, dilation, visible
  )


def _block_local_unshared(*inputs):
  """No short residues in one block."""
  with mock.patch.object(attention, '_MIN_BLOCK', 1):
    return _block_local(*inputs)


def _id(value):
  return getattr(value, '__name__', str(value))


_FAST = (_gathered, _block_local, _block_local_unshared)


def _is_quick(fast, has_pad, shape):
  """Whether it is one of those that have each pair of two of the three."""
  return (_FAST.index(fast) + has_pad + _SHAPES.index(shape)) % 2 == 0


@pytest.mark.parametrize(
  ('fast', 'has_pad', 'shape'),
  slow.unless(_is_quick, [*itertools.product(_FAST, (True, False), _SHAPES)]),
  ids=_id,
)
def test_fast_attention_equals_the_mask(fast, has_pad, shape):
  length, chunk_size = shape
  q, k, v, k_pad, v_pad, bias, visible = _inputs(length, chunk_size)
  if not has_pad:
    k_pad = v_pad = None
  dilations = _dilations(length, chunk_size)

  def outputs(q, k, v, k_pad, v_pad, bias):
    def output(dilation):
      return fast(q, k, v, k_pad, v_pad, bias, visible, dilation)

    if fast is _gathered:  # The dilation may be traced.
      return jax.lax.map(output, jnp.array(dilations))
    return [output(d) for d in dilations]

  actual = jax.jit(outputs)(q, k, v, k_pad, v_pad, bias)
  expected = _expected(length, chunk_size, has_pad)
  seen = jnp.ones_like(visible) if has_pad else visible
  for out, by_mask in zip(actual, expected, strict=True):
    np.testing.assert_allclose(
      out * seen[..., None, None], by_mask * seen[..., None, None], atol=2e-6
    )
