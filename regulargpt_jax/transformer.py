"""What RegularGPT and GPT share: a block around its attention, and both ends.

Letters: B batch, T length, N rows, D width, H heads, d head size, V vocabulary.
"""

import functools

from flax import linen as nn
import jax
import jax.numpy as jnp

from regulargpt_jax import attention, lookup, rows
from regulargpt_jax import config as config_lib


def _fan_in_init(key, shape, dtype=jnp.float32):
  """Truncated normal of deviation 1 / sqrt(fan in): Haiku's linear layer."""
  stddev = shape[0] ** -0.5
  return nn.initializers.truncated_normal(stddev)(key, shape, dtype)


def _dense(config, features, name, use_bias=True, residual=False):
  """A linear layer with the preset's initialisation."""
  if config.initialization == 'gpt2':
    scale = (2 * config.num_blocks) ** -0.5 if residual else 1.0
    kernel_init = nn.initializers.normal(0.02 * scale)
  else:
    kernel_init = _fan_in_init
  return rows.dense(
    features,
    use_bias=use_bias,
    dtype=config.dtype,
    kernel_init=kernel_init,
    name=name,
  )


def remat(function, config: config_lib.TransformerConfig, in_scan=False):
  """Returns a module's method that keeps less for its backward pass.

  What is computed position by position is cheaper to compute again than to
  keep; with `config.remat` all of it is computed again.

  Args:
    function: The method, of arrays and lists of arrays.
    config: The module's.
    in_scan: Whether it is the body of a scan.
  """
  policies = jax.checkpoint_policies
  policy = policies.save_from_both_policies(
    policies.dots_with_no_batch_dims_saveable,
    policies.save_only_these_names(*attention.SAVED_NAMES),
  )
  return nn.remat(
    function, prevent_cse=not in_scan, policy=None if config.remat else policy
  )


class Block(nn.Module):
  """Attention, then a feed-forward layer; how to attend is the subclass's.

  Sows, in the collection 'intermediates': `attention`, `ffn` (the two
  sublayers' outputs before the residual sum) and `output`.
  """

  config: config_lib.TransformerConfig

  def setup(self):  # noqa: D102
    c = self.config
    dense = functools.partial(_dense, c)
    self.query = dense(c.embedding_dim, 'query', c.attention_bias)
    self.key = dense(c.embedding_dim, 'key', c.attention_bias)
    self.value = dense(c.embedding_dim, 'value', c.attention_bias)
    self.projection = dense(
      c.embedding_dim, 'projection', c.attention_bias, residual=True
    )
    self.ffn_in = dense(c.widening_factor * c.embedding_dim, 'ffn_in')
    self.ffn_out = dense(c.embedding_dim, 'ffn_out', residual=True)
    if c.norm != 'none':
      norm = functools.partial(nn.LayerNorm, epsilon=1e-5, dtype=c.dtype)
      self.attention_norm = norm(name='attention_norm')
      self.ffn_norm = norm(name='ffn_norm')
    self.dropout = nn.Dropout(c.dropout_rate)

  def project(self, x_NxD) -> list[jax.Array]:
    """Returns queries, keys and values, [N, H, d] each."""
    y = self.before_attention(x_NxD)
    return [self.heads(f(y)) for f in (self.query, self.key, self.value)]

  def heads(self, x_NxD) -> jax.Array:
    """Splits the last axis into heads, [N, H, d]."""
    return x_NxD.reshape(*x_NxD.shape[:-1], self.config.num_heads, -1)

  def before_attention(self, x_NxD) -> jax.Array:
    """Returns what is projected."""
    return self.attention_norm(x_NxD) if self.config.norm == 'pre' else x_NxD

  def after_attention(self, x_NxD, out_NxHxd, deterministic) -> jax.Array:
    """Everything behind the attention, position by position."""
    norm = self.config.norm
    activation = {
      'relu': jax.nn.relu,
      'gelu': functools.partial(jax.nn.gelu, approximate=True),
    }[self.config.activation]
    out = self.projection(out_NxHxd.reshape(*out_NxHxd.shape[:-2], -1))
    self.sow('intermediates', 'attention', out)
    h = self._joined(x_NxD, self.dropout(out, deterministic))
    if norm == 'post':
      h = self.attention_norm(h)
    ffn = self.ffn_norm(h) if norm == 'pre' else h
    ffn = self.ffn_out(activation(self.ffn_in(ffn)))
    self.sow('intermediates', 'ffn', ffn)
    h = self._joined(h, self.dropout(ffn, deterministic))
    if norm == 'post':
      h = self.ffn_norm(h)
    self.sow('intermediates', 'output', h)
    return h

  def decode(
    self, x_BxD, keys_values, slot, bias_HxN, visible_BxN, slots=slice(None)
  ):
    """Maps the next position's input to its output.

    Args:
      x_BxD: The input.
      keys_values: Those of earlier positions, each [B, S, H, d].
      slot: Where on the second axis its own key and value go.
      bias_HxN: By key.
      visible_BxN: False for keys that it may not see; None for all seen.
      slots: Which N of the S keys and values it attends to.

    Returns:
      Output [B, D], and `keys_values` with its own.
    """
    q_BxHxd, *new = self.project(x_BxD)
    keys_values = tuple(
      jax.lax.dynamic_update_slice_in_dim(old, x[:, None], slot, 1)
      for old, x in zip(keys_values, new, strict=True)
    )
    out_BxHxd, _ = attention.window_attention(
      q_BxHxd, *(x[:, slots] for x in keys_values), bias_HxN, visible_BxN
    )
    return self.after_attention(x_BxD, out_BxHxd, True), keys_values

  def _joined(self, x_NxD, out_NxD):
    return x_NxD + out_NxD if self.config.residual else out_NxD


class Transformer(nn.Module):
  """Embedding and readout; what lies between is the subclass's.

  Tokens are right-aligned, -1 standing for "no symbol". Outputs at positions
  before the start of a string mean nothing.
  """

  config: config_lib.TransformerConfig

  def setup(self):  # noqa: D102
    c = self.config
    stddev = 0.02
    embedding_init = (
      nn.initializers.truncated_normal(stddev)
      if c.initialization == 'benchmark'
      else nn.initializers.normal(stddev)
    )
    self.embedding_VxD = self.param(
      'embedding', embedding_init, (c.vocab_size, c.embedding_dim)
    )
    if c.norm == 'pre':
      self.final_norm = nn.LayerNorm(epsilon=1e-5, dtype=c.dtype)
    if not c.tie_embedding:
      self.readout = _dense(c, c.output_size, 'readout')
    self.dropout = nn.Dropout(c.dropout_rate)

  def states(self, tokens_BxT, **options) -> jax.Array:
    """Returns the last block's output at all positions, [B, T, D]."""
    raise NotImplementedError

  def all_logits(self, tokens_BxT, **options) -> jax.Array:
    """Returns the logits at all positions, float32 [B, T, output_size]."""
    return self.logits(self.states(tokens_BxT, **options))

  def last_logits(self, tokens_BxT) -> jax.Array:
    """Returns the logits at the last position, float32 [B, output_size].

    Those at other positions are never computed.
    """
    return self.logits(self.states(tokens_BxT)[:, -1])

  def losses(self, tokens_BxT, targets_BxT, **options) -> jax.Array:
    """Returns the cross-entropy of the target at each position, [B, T], nats.

    Args:
      tokens_BxT: What is read.
      targets_BxT: What comes next at each position, in [0, output_size).
      **options: Of the model's `states`.
    """
    logits = self.all_logits(tokens_BxT, **options)
    # A sum over a mask, as the gradient of an index is a scatter.
    is_target = jnp.arange(logits.shape[-1]) == targets_BxT[..., None]
    target_logits = jnp.where(is_target, logits, 0.0).sum(-1)
    return jax.nn.logsumexp(logits, axis=-1) - target_logits

  @property
  def scaled_embedding(self) -> jax.Array:
    """What stands for each symbol, float32 [V, D]."""
    c = self.config
    scale = c.embedding_dim**0.5 if c.scale_embedding else 1.0
    return self.embedding_VxD * scale

  def embed(self, tokens_N) -> jax.Array:
    """Returns what stands for symbols, [N, D]; anything for no symbol."""
    x = lookup.take_rows(self.scaled_embedding, jnp.maximum(tokens_N, 0))
    return self.dropout(x.astype(self.config.dtype), self.deterministic)

  def logits(self, h_NxD) -> jax.Array:
    """Returns the logits of states, float32 [N, output_size]."""
    h_NxD = self.normalized(h_NxD)
    if not self.config.tie_embedding:
      return self.readout(h_NxD).astype(jnp.float32)
    embedding_VxD = self.embedding_VxD.astype(h_NxD.dtype)
    return attention.einsum_float32('...d,vd->...v', h_NxD, embedding_VxD)

  def normalized(self, h_NxD) -> jax.Array:
    """Returns states as readouts read them."""
    return self.final_norm(h_NxD) if self.config.norm == 'pre' else h_NxD

  @property
  def deterministic(self) -> bool:
    """Whether there is no dropout in this call."""
    return not (self.config.dropout_rate and self.has_rng('dropout'))
