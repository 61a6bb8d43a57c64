"""What the recurrent architectures share: the blocks around their mixers.

Letters: B batch, T length, D width, H heads, d head size, F features.
"""

from typing import get_args, get_origin, Literal

from flax import linen as nn
import jax
import jax.numpy as jnp

from regulargpt_jax import rows, sizes

Eigenvalues = Literal['[0,1]', '[-1,1]']
# Symbols that a short convolution sees, as in all the papers that have one.
_CONVOLUTION_SIZE = 4


class Checked(nn.Module):
  """A model of tokens, whose fields are checked.

  Tokens are right-aligned, [B, T]; -1 is no symbol. Logits are of all
  positions, [B, T, output_size]; none depends on later tokens.
  """

  input_size: int
  output_size: int
  width: int = 64

  def __post_init__(self):
    """Checks the fields.

    Raises:
      ValueError: If one is impossible, or does not fit the others.
    """
    for name, field in self.__dataclass_fields__.items():
      value = getattr(self, name)
      if isinstance(value, int) and not isinstance(value, bool):
        is_layers = name == 'num_layers'
        sizes.check(
          name, value, 1, sizes.MAX_LAYERS if is_layers else sizes.MAX_SIZE
        )
      if get_origin(field.type) is Literal:
        choices = get_args(field.type)
        if value not in choices:
          raise ValueError(
            f'{name} must be {" or ".join(choices)}, got {value!r}.'
          )
    num_heads = getattr(self, 'num_heads', 1)
    if self.width % num_heads:
      raise ValueError(
        f'num_heads must divide width ({self.width}), got {num_heads}.'
      )
    super().__post_init__()


class TokenModel(Checked):
  """Embedding, blocks of a mixer and a feed-forward layer, and a readout.

  x <- x + mixer(norm(x)), x <- x + W_3 (silu(W_1 norm(x)) * W_2 norm(x)), with
  root-mean-square norms. The papers' blocks differ; this one is common to all,
  so that what is compared are the mixers. An architecture gives its `mixer`,
  and has the arguments of that as fields.

  With `last_only` logits are of the last position alone, [B, output_size].
  """

  num_layers: int = 2
  last_only: bool = False

  def mixer(self) -> nn.Module:
    """Returns a module that mixes positions; see `__call__`."""
    raise NotImplementedError

  @nn.compact
  def __call__(self, tokens_BxT: jax.Array) -> jax.Array:
    """See class; a mixer is called with [B, T, D], 0 where no symbol is."""
    is_symbol_BxTx1 = (tokens_BxT >= 0)[..., None]
    x = nn.Embed(self.input_size, self.width)(jnp.maximum(tokens_BxT, 0))
    for layer in range(self.num_layers):
      y = jnp.where(is_symbol_BxTx1, RMSNorm()(x), 0)
      x = x + self.mixer()(y, is_symbol_BxTx1)
      # Nothing after the last mixer reads other positions.
      if self.last_only and layer == self.num_layers - 1:
        x = x[:, -1]
      x = x + FeedForward(2 * self.width)(RMSNorm()(x))
    return rows.dense(self.output_size)(RMSNorm()(x))


class FeedForward(nn.Module):
  """A gated feed-forward layer (Shazeer, 2020, SwiGLU)."""

  hidden_size: int

  @nn.compact
  def __call__(self, x):
    """Maps [..., D] to [..., D]."""
    gate, value = jnp.split(linear(2 * self.hidden_size)(x), 2, axis=-1)
    return linear(x.shape[-1])(nn.silu(gate) * value)


class ShortConvolution(nn.Module):
  """A causal convolution of each feature with itself, then SiLU."""

  @nn.compact
  def __call__(self, x_BxTxF):
    """Maps [B, T, F], which is 0 where no symbol is, to [B, T, F]."""
    kernel = self.param(
      'kernel',
      nn.initializers.normal(_CONVOLUTION_SIZE**-0.5),
      (_CONVOLUTION_SIZE, x_BxTxF.shape[-1]),
    )
    return nn.silu(_convolved(kernel, x_BxTxF))


@jax.custom_vjp
def _convolved(kernel_SxF, x_BxTxF):
  """Returns the sum of kernel i times x, S - 1 - i positions before.

  For the gradient JAX would keep x shifted by each, S times as much.
  """
  size, length = len(kernel_SxF), x_BxTxF.shape[1]
  x = jnp.pad(x_BxTxF, ((0, 0), (size - 1, 0), (0, 0)))
  return sum(kernel_SxF[i] * x[:, i : i + length] for i in range(size))


def _convolved_gradients(inputs, gradient):
  kernel, x = inputs
  size, length = len(kernel), x.shape[1]
  gradient = jnp.pad(gradient, ((0, 0), (0, size - 1), (0, 0)))
  shifted = [gradient[:, i : i + length] for i in reversed(range(size))]
  of_kernel = jnp.stack([jnp.sum(x * y, axis=(0, 1)) for y in shifted])
  return of_kernel, sum(k * y for k, y in zip(kernel, shifted, strict=True))


_convolved.defvjp(
  lambda kernel, x: (_convolved(kernel, x), (kernel, x)), _convolved_gradients
)


class RMSNorm(nn.Module):
  """x divided by the root of its mean square, times a learned scale.

  Flax's keeps more for the gradient, as would `x**2` in place of `x * x`.
  """

  @nn.compact
  def __call__(self, x):
    """Maps [..., F] to [..., F]."""
    scale = self.param('scale', nn.initializers.ones, x.shape[-1:])
    mean = jnp.mean(x * x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(mean + 1e-6) * scale


def linear(features: int) -> nn.Dense:
  """Returns a linear layer without bias: 0 stays 0."""
  return rows.dense(features, use_bias=False)


def heads(x_BxTxF: jax.Array, num_heads: int) -> jax.Array:
  """Returns [B, T, H, F / H]."""
  return x_BxTxF.reshape(*x_BxTxF.shape[:-1], num_heads, -1)


def merged(x_BxTxHxd: jax.Array) -> jax.Array:
  """Returns [B, T, H d]."""
  return x_BxTxHxd.reshape(*x_BxTxHxd.shape[:-2], -1)


def unit(x: jax.Array) -> jax.Array:
  """Returns vectors of length 1, along the last axis; 0 stays 0."""
  return x * jax.lax.rsqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-6)


class DecayGate(nn.Module):
  """Steps dt = softplus(W x + bias), and gates exp(-exp(A) dt), of each head.

  Of Gated DeltaNet and of Mamba-2 (Dao and Gu, 2024, arXiv:2405.21060), and
  initialised as the latter's: exp(A) uniform in 1..16, steps log-uniform in
  0.001..0.1.
  """

  num_heads: int

  @nn.compact
  def __call__(self, x_BxTxD):
    """Returns steps and gates, [B, T, H]."""

    def init_bias(rng, shape):
      step = jnp.exp(jax.random.uniform(rng, shape, minval=-6.9, maxval=-2.3))
      return jnp.log(jnp.expm1(step))

    def init_rate(rng, shape):
      return jnp.log(jax.random.uniform(rng, shape, minval=1.0, maxval=16.0))

    bias_H = self.param('bias', init_bias, (self.num_heads,))
    rate_H = jnp.exp(self.param('log_rate', init_rate, (self.num_heads,)))
    step = nn.softplus(linear(self.num_heads)(x_BxTxD) + bias_H)
    return step, jnp.exp(-rate_H * step)
