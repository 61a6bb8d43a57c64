"""What an output depends on, by cumulative gradients (section 7.4).

The tool is Chi et al.'s (2022, "Dissecting Transformer Length Extrapolation via
the Lens of Receptive Field Analysis"), the paper's reference for Figure 5.

Letters: B batch, T length, D width, V symbols.
"""

from collections.abc import Callable
import dataclasses

import chex
import jax
import jax.numpy as jnp

from regulargpt_jax import transformer

# Strings whose gradients are computed at a time.
_BATCH_SIZE = 32


def cumulative_gradient(
  score: Callable[[jax.Array, jax.Array], jax.Array],
  x_BxTxD: jax.Array,
  target_B: jax.Array,
) -> jax.Array:
  """Returns the share of the gradient that falls on the latest positions.

  Args:
    score: Maps embeddings [T, D] and a string's target to a scalar.
    x_BxTxD: Embeddings of strings of one length.
    target_B: Symbol whose score is differentiated, of each string.

  Returns:
    [B, T]: entry i is the sum of the norms of the gradient with respect to the
    embeddings of the i + 1 most recent positions, over the sum of all; so it
    rises to 1. NaN where the gradient is 0 everywhere.
  """

  def of_string(string):
    norm_T = jnp.linalg.norm(jax.grad(score)(*string), axis=-1)
    return jnp.cumsum(norm_T[::-1]) / jnp.sum(norm_T)

  return jax.jit(lambda x: jax.lax.map(of_string, x, batch_size=_BATCH_SIZE))(
    (x_BxTxD, target_B)
  )


def of_embeddings(
  module: transformer.Transformer, params: chex.ArrayTree
) -> Callable[[jax.Array], jax.Array]:
  """Returns a model's last logits as a function of embeddings.

  It is the model itself, for a vocabulary in which every position has a symbol
  of its own.

  Args:
    module: RegularGPT or a GPT.
    params: Its parameters, {'params': ...}.

  Returns:
    A function from embeddings [T, D], as `params` has them (not multiplied by
    sqrt(D)), to the logits at the last position, [output_size].
  """
  config = module.config

  def apply(x_TxD):
    changed = {**params['params'], 'embedding': x_TxD}
    if config.tie_embedding:
      kernel_DxV = params['params']['embedding'].T
      zeros_V = jnp.zeros(kernel_DxV.shape[1])
      changed['readout'] = {'kernel': kernel_DxV, 'bias': zeros_V}
    untied = type(module)(
      dataclasses.replace(
        config, vocab_size=x_TxD.shape[0], tie_embedding=False
      )
    )
    tokens_1xT = jnp.arange(x_TxD.shape[0])[None]
    variables = {'params': changed}
    return untied.apply(variables, tokens_1xT, method='last_logits')[0]

  return apply


def log_odds(logits_V: jax.Array, symbol: jax.Array) -> jax.Array:
  """Returns log(p / (1 - p)) of a symbol's probability p.

  Its gradient is that of log p, over 1 - p: normalised, the two are the same,
  but where p rounds to 1 this one is still not 0.
  """
  is_symbol_V = jnp.arange(logits_V.shape[-1]) == symbol
  others = jnp.where(is_symbol_V, -jnp.inf, logits_V)
  return logits_V[symbol] - jax.nn.logsumexp(others)
