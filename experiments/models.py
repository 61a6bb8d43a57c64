"""The small interface behind which every architecture stands."""

from collections.abc import Callable
import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp

from experiments import config as config_lib
from regulargpt_jax import config as regular_gpt_config
from regulargpt_jax import model as regular_gpt_model
from tasks import task as task_lib

# Entries of the largest table that range evaluation may share among calls.
_MAX_TABLE_SIZE = 2**26


@dataclasses.dataclass(frozen=True)
class Model:
  """An architecture for a task.

  Attributes:
    init: `init(rng) -> params`.
    apply: `apply(params, tokens, rng=None, extra_levels=0, shared=None) ->
      logits` for right-aligned tokens [B, W]; logits are float32, [B,
      output_size]. The answer does not depend on W. `rng` is for dropout, None
      at test; `extra_levels` may be traced.
    share: `share(params, num_symbols) -> shared`: what calls with the same
      parameters can share when they read that many symbols in all, a tree of
      arrays, or None.
    bucket_base: Widths of buckets are powers of it.
  """

  init: Callable[[chex.PRNGKey], chex.ArrayTree]
  apply: Callable[..., jax.Array]
  share: Callable[[chex.ArrayTree, int], Any]
  bucket_base: int


def make_regular_gpt(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> Model:
  """Returns RegularGPT for a task with one output symbol.

  Raises:
    ValueError: If a hyperparameter is out of range.
  """
  config = regular_gpt_config.make_config(
    experiment.preset,
    vocab_size=task.input_size,
    output_size=task.output_size,
    chunk_size=experiment.chunk_size,
    thickness=experiment.thickness,
    embedding_dim=experiment.embedding_dim,
    num_heads=experiment.num_heads,
    dropout_rate=experiment.dropout_rate,
    dtype=jnp.dtype(experiment.precision),
  )
  module = regular_gpt_model.RegularGPT(config)

  def init(rng):
    return module.init(rng, jnp.zeros((1, 1), jnp.int32))

  def apply(params, tokens, rng=None, extra_levels=0, shared=None):
    return module.apply(
      params,
      tokens,
      extra_levels=extra_levels,
      max_extra_levels=experiment.max_extra_levels,
      tables=shared,
      rngs=None if rng is None else {'dropout': rng},
    )

  def share(params, num_symbols):
    max_rows = _MAX_TABLE_SIZE // config.embedding_dim
    return module.apply(
      params, num_symbols, max_rows=max_rows, method=module.tabulate
    )

  return Model(init, apply, share, bucket_base=config.chunk_size)
