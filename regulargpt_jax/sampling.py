"""Sampling from a model, a symbol at a time."""

import functools

from flax import linen as nn
import jax
import jax.numpy as jnp

# Logits divided by less would overflow.
_MIN_TEMPERATURE = 1e-30


def sample(
  model: nn.Module,
  params,
  prompt_BxT: jax.Array,
  num_tokens: int,
  rng: jax.Array,
  temperature: float = 1.0,
  top_k: int | None = None,
) -> jax.Array:
  """Returns what a model says after a prompt.

  The prompt is read at once, then each symbol costs what the model's `decode`
  costs: O(C) a block for RegularGPT, O(T) for GPT. The distribution that a
  symbol is drawn from is that of a call on all before it. RegularGPT's depth
  L(T) grows with the string: see its `prefill` for the levels yet to come.

  Args:
    model: `RegularGPT` or `GPT`, whose outputs are its symbols.
    params: Its variables, as `init` returns them.
    prompt_BxT: Symbols, right-aligned, -1 before the start; at least one each.
    num_tokens: Symbols to draw.
    rng: Key.
    temperature: Divides the logits; 0, or next to it, takes the likeliest
      symbol.
    top_k: Draw from the likeliest so many symbols; None for all.

  Returns:
    Symbols [B, num_tokens], int32.

  Raises:
    ValueError: If an argument is out of range.
  """
  prompt_BxT = jnp.asarray(prompt_BxT, jnp.int32)
  if prompt_BxT.ndim != 2 or not prompt_BxT.size:
    raise ValueError(
      f'The prompt must have shape [B, T], T > 0, got {prompt_BxT.shape}.'
    )
  if num_tokens < 1:
    raise ValueError(f'num_tokens must be at least 1, got {num_tokens}.')
  if not temperature >= 0:
    raise ValueError(f'temperature must be at least 0, got {temperature}.')
  vocab_size = model.config.output_size
  if top_k is not None and not 1 <= top_k <= vocab_size:
    raise ValueError(f'top_k must be in [1, {vocab_size}], got {top_k}.')
  return _sample(
    model, params, prompt_BxT, num_tokens, rng, float(temperature), top_k
  )


@functools.partial(jax.jit, static_argnums=(0, 3, 5, 6))
def _sample(model, params, prompt_BxT, num_tokens, rng, temperature, top_k):
  max_length = prompt_BxT.shape[1] + num_tokens
  first = model.apply(params, prompt_BxT, max_length, method='prefill')

  def step(carry, key):
    logits_BxV, cache = carry
    token_B = _draw(logits_BxV, key, temperature, top_k)
    carry = model.apply(params, token_B, cache, max_length, method='decode')
    return carry, token_B

  _, tokens_TxB = jax.lax.scan(step, first, jax.random.split(rng, num_tokens))
  return tokens_TxB.T


def _draw(logits_BxV, key, temperature, top_k):
  if temperature < _MIN_TEMPERATURE:
    return jnp.argmax(logits_BxV, axis=-1).astype(jnp.int32)
  if top_k is not None:
    values_BxK, token_BxK = jax.lax.top_k(logits_BxV, top_k)
    choice_B = jax.random.categorical(key, values_BxK / temperature)
    return jnp.take_along_axis(token_BxK, choice_B[:, None], 1)[:, 0]
  return jax.random.categorical(key, logits_BxV / temperature)
