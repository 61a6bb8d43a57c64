"""Models of a user who writes them for this project: one function thrice."""

from flax import linen as nn
from flax import nnx
import haiku as hk
import jax
import jax.numpy as jnp


def _read(step, x_BxWxD, tokens_BxW):
  """Returns the states of a recurrent model, which passes over no symbol."""

  def read(state_BxD, inputs):
    x_BxD, is_symbol_B = inputs
    new = jnp.where(is_symbol_B[:, None], step(state_BxD, x_BxD), state_BxD)
    return new, new

  inputs = (x_BxWxD.swapaxes(0, 1), (tokens_BxW >= 0).T)
  _, states = jax.lax.scan(read, jnp.zeros_like(x_BxWxD[:, 0]), inputs)
  return states.swapaxes(0, 1)


class Linen(nn.Module):
  """A recurrent model; all positions."""

  input_size: int
  output_size: int
  width: int = 4

  @nn.compact
  def __call__(self, tokens):
    x = nn.Embed(self.input_size, self.width)(tokens)
    w = self.param('w', nn.initializers.normal(), (self.width, self.width))
    h = _read(lambda state, x: jnp.tanh(state @ w + x), x, tokens)
    h = nn.Dropout(0.5, deterministic=not self.has_rng('dropout'))(h)
    return nn.Dense(self.output_size)(h)


class Nnx(nnx.Module):
  """The same; its layers are a list."""

  def __init__(self, input_size, output_size, width: int = 4, *, rngs):
    self.embed = nnx.Embed(input_size, width, rngs=rngs)
    self.layers = nnx.List(
      [nnx.Linear(width, width, use_bias=False, rngs=rngs)]
    )
    self.dropout = nnx.Dropout(0.5, rngs=rngs)
    self.readout = nnx.Linear(width, output_size, rngs=rngs)

  def __call__(self, tokens):
    (w,) = self.layers
    h = _read(
      lambda state, x: jnp.tanh(w(state) + x), self.embed(tokens), tokens
    )
    return self.readout(self.dropout(h))


def last(tokens, input_size, output_size, width: int = 4, *, last_only: bool):
  """The same in Haiku; the last position, where that is asked for alone."""
  x = hk.Embed(input_size, width)(tokens)
  w = hk.get_parameter('w', (width, width), init=hk.initializers.RandomNormal())
  h = _read(lambda state, x: jnp.tanh(state @ w + x), x, tokens)
  if (rng := hk.maybe_next_rng_key()) is not None:
    h = hk.dropout(rng, 0.5, h)
  logits = hk.Linear(output_size)(h)
  return logits[:, -1] if last_only else logits


def helper(tokens):
  """No model: it takes no sizes."""
  return tokens
