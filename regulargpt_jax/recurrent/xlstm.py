"""sLSTM and mLSTM, the two layers of xLSTM (Beck et al., 2024).

arXiv:2405.04517, sections 2.2 and 2.3. Letters: see `linear_recurrence`; D
width, d head size.
"""

from flax import linen as nn
import jax
import jax.numpy as jnp

from regulargpt_jax.recurrent import blocks, linear_recurrence

# No log input gate is near it: the first symbol's is the larger one.
_LOG_ZERO = -1e4
# Of log input gates, as in xLSTM 7B (Beck et al., 2025, arXiv:2503.13427).
_CAP = 15.0


def recur_slstm(
  pre_BxTx4xHxd: jax.Array, r_4xHxdxd: jax.Array, is_symbol_BxTx1: jax.Array
) -> jax.Array:
  """Returns the hidden states h, [B, T, H, d].

  z, i, f, o = pre_t + R h_(t-1), of each head by itself;

    c_t = sigmoid(f) c_(t-1) + exp(i) tanh(z)
    n_t = sigmoid(f) n_(t-1) + exp(i)
    h_t = sigmoid(o) c_t / n_t

  with c and n divided by a running maximum, which changes nothing (eq. 15 to
  17). Each step needs the h before, so that there is no parallel form.

  Args:
    pre_BxTx4xHxd: What the input adds to z, i, f and o.
    r_4xHxdxd: Their recurrent weights, from the axis before the last.
    is_symbol_BxTx1: A step without a symbol changes nothing.
  """

  def step(state, inputs):
    pre, is_symbol = inputs
    h, c, n, log_max = state
    z, i, f, o = jnp.moveaxis(
      pre + jnp.einsum('bhd,ghde->bghe', h, r_4xHxdxd), 1, 0
    )
    kept = nn.log_sigmoid(f) + log_max
    after_max = jnp.maximum(kept, i)
    added, kept = jnp.exp(i - after_max), jnp.exp(kept - after_max)
    c, n = kept * c + added * jnp.tanh(z), kept * n + added
    after = (nn.sigmoid(o) * c / n, c, n, after_max)
    after = [
      jnp.where(is_symbol[..., None], new, old)
      for new, old in zip(after, state, strict=True)
    ]
    return tuple(after), after[0]

  start = jnp.zeros_like(pre_BxTx4xHxd[:, 0, 0])
  state = (start, start, start, jnp.full_like(start, _LOG_ZERO))
  inputs = (pre_BxTx4xHxd.swapaxes(0, 1), is_symbol_BxTx1.swapaxes(0, 1))
  _, h = jax.lax.scan(step, state, inputs)
  return h.swapaxes(0, 1)


def recur_mlstm(
  q_BxTxHxK: jax.Array,
  k_BxTxHxK: jax.Array,
  v_BxTxHxV: jax.Array,
  log_input_BxTxH: jax.Array,
  forget_BxTxH: jax.Array,
) -> jax.Array:
  """Returns C_t q_t / max(|n_t q_t|, 1), [B, T, H, V].

  C_t = f_t C_(t-1) + i_t v_t k_t', n_t = f_t n_(t-1) + i_t k_t, with k divided
  by sqrt(K) (eq. 19 to 24). n is one more column of C, of values 1.
  """
  k = k_BxTxHxK * k_BxTxHxK.shape[-1] ** -0.5
  ones = jnp.ones_like(v_BxTxHxV[..., :1])
  out = linear_recurrence.run(
    q_BxTxHxK,
    k * jnp.exp(log_input_BxTxH)[..., None],
    jnp.concatenate([v_BxTxHxV, ones], axis=-1),
    forget_BxTxH[..., None],
  )
  return out[..., :-1] / jnp.maximum(jnp.abs(out[..., -1:]), 1)


def _init_forget(rng, shape):
  """Biases 3 to 6, head by head, as mLSTM's in the authors' code."""
  del rng
  bias_H = jnp.linspace(3.0, 6.0, shape[0])
  return jnp.broadcast_to(bias_H.reshape(-1, *[1] * (len(shape) - 1)), shape)


class SLSTMMixer(nn.Module):
  """Figure 10 of the paper, without its feed-forward layer: i and f see more.

  They are of the short convolution; z and o of the symbol itself. All see all
  features, not a block of them; only f has a bias; heads are mixed at the end.
  """

  num_heads: int

  @nn.compact
  def __call__(self, x_BxTxD, is_symbol_BxTx1):
    """See `blocks.TokenModel`."""
    width = x_BxTxD.shape[-1]
    head_size = width // self.num_heads
    convolved = blocks.ShortConvolution()(x_BxTxD)
    z, o = jnp.split(blocks.linear(2 * width)(x_BxTxD), 2, axis=-1)
    i, f = jnp.split(blocks.linear(2 * width)(convolved), 2, axis=-1)
    pre = jnp.stack(
      [blocks.heads(y, self.num_heads) for y in (z, i, f, o)], axis=2
    )
    shape = (self.num_heads, head_size)
    bias = self.param('forget_bias', _init_forget, shape)
    pre = pre.at[:, :, 2].add(bias)
    r_4xHxdxd = self.param(
      'recurrent',
      nn.initializers.normal((4 * head_size) ** -0.5),
      (4, *shape, head_size),
    )
    h = recur_slstm(pre, r_4xHxdxd, is_symbol_BxTx1)
    return blocks.linear(width)(blocks.merged(blocks.RMSNorm()(h)))


class MLSTMMixer(nn.Module):
  """Figure 11 of the paper, with its input gate's logarithm capped at 15.

  q, k and v see all features, not blocks of four; of gates only f has a bias.
  """

  num_heads: int

  @nn.compact
  def __call__(self, x_BxTxD, is_symbol_BxTx1):
    """See `blocks.TokenModel`."""
    width = x_BxTxD.shape[-1]
    inner, z = jnp.split(blocks.linear(4 * width)(x_BxTxD), 2, axis=-1)
    convolved = blocks.ShortConvolution()(inner)
    q, k = jnp.split(blocks.linear(2 * width)(convolved), 2, axis=-1)
    v = blocks.linear(2 * width)(inner)
    gates = blocks.linear(2 * self.num_heads)(
      jnp.concatenate([q, k, v], axis=-1)
    )
    log_input, forget = jnp.split(gates, 2, axis=-1)
    forget += self.param('forget_bias', _init_forget, (self.num_heads,))
    forget = jnp.where(is_symbol_BxTx1, nn.sigmoid(forget), 1)
    h = recur_mlstm(
      *(blocks.heads(y, self.num_heads) for y in (q, k, v)),
      _CAP * jnp.tanh(log_input / _CAP),
      forget,
    )
    skip = self.param('skip', nn.initializers.ones, (2 * width,))
    h = blocks.merged(blocks.RMSNorm()(h)) + skip * convolved
    return blocks.linear(width)(h * nn.silu(z))


class SLSTM(blocks.TokenModel):
  """sLSTM: an LSTM with exponential input gates, a normaliser, and heads."""

  num_heads: int = 4

  def mixer(self):
    """See base class."""
    return SLSTMMixer(self.num_heads)


class MLSTM(blocks.TokenModel):
  """mLSTM: a matrix of a state, with exponential input gates."""

  num_heads: int = 4

  def mixer(self):
    """See base class."""
    return MLSTMMixer(self.num_heads)
