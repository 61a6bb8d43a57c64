"""Transformer baselines (Vaswani et al., 2017; arXiv:1706.03762).

Strings are right-aligned one-hot arrays; a row that is all zeros is no symbol.
Absent keys are masked and positions count from a string's first symbol, so that
the answer does not depend on how far a string is padded. Strings of different
lengths may share a batch.

Letters: B batch, T length, Q queries, K keys, H heads, d head size, D width, V
symbols, O outputs.
"""

from collections.abc import Callable
import dataclasses
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

from regulargpt_jax import sizes
from regulargpt_jax.baselines import layers, strings
from regulargpt_jax.baselines import positional_encodings as encodings_lib

_Encodings = encodings_lib.PositionalEncodings
# Which random positions cannot be of.
_REGULARLY_SPACED = (_Encodings.NONE, _Encodings.RELATIVE, _Encodings.COPE)


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
  """Hyperparameters of both transformers; the benchmark's names and defaults.

  Attributes:
    embedding_dim: Width of the model, D.
    num_layers: Layers of the encoder, and of the decoder.
    num_heads: Heads, H.
    num_hiddens_per_head: Head size d; D / H by default.
    dropout_prob: Of dropout on embeddings and on each sublayer's output; it
      acts only in calls that are given a random key.
    emb_init_scale: Deviation of the initial embeddings.
    attention_window: Self-attention sees keys at most half of it away; None for
      all.
    positional_encodings: A `PositionalEncodings`, or its name.
    max_time: Longest wavelength of the encodings, in units of 2 pi.
    widening_factor: Width of the feed-forward layer, in units of D.
    randomized_positions: Number of positions of which those of a string are
      drawn, see `positional_encodings.random_positions`; None for its own.
  """

  embedding_dim: int = 64
  num_layers: int = 5
  num_heads: int = 8
  num_hiddens_per_head: int | None = None
  dropout_prob: float = 0.1
  emb_init_scale: float = 0.02
  attention_window: int | None = None
  positional_encodings: _Encodings | str = _Encodings.SIN_COS
  max_time: int = 10_000
  widening_factor: int = 4
  randomized_positions: int | None = None

  def __post_init__(self):
    encodings = _Encodings(self.positional_encodings)
    for name in (
      'embedding_dim',
      'num_heads',
      'num_hiddens_per_head',
      'attention_window',
      'max_time',
      'widening_factor',
      'randomized_positions',
    ):
      value = getattr(self, name)
      if value is not None:
        sizes.check(name, value)
    sizes.check('num_layers', self.num_layers, 1, sizes.MAX_LAYERS)
    if self.randomized_positions and encodings in _REGULARLY_SPACED:
      raise ValueError(
        f'randomized_positions are not for {encodings} encodings, which see no'
        ' positions, count them, or see distances of regularly spaced ones.'
      )
    if not self.emb_init_scale > 0:
      raise ValueError(
        f'emb_init_scale must be positive, got {self.emb_init_scale}.'
      )
    if not 0 <= self.dropout_prob < 1:
      raise ValueError(
        f'dropout_prob must be in [0, 1), got {self.dropout_prob}.'
      )
    if self.num_hiddens_per_head is None and (
      self.embedding_dim % self.num_heads
    ):
      raise ValueError(
        f'embedding_dim ({self.embedding_dim}) must be a multiple of'
        f' num_heads ({self.num_heads}).'
      )
    must_be_even = {
      _Encodings.SIN_COS: self.embedding_dim,
      _Encodings.RELATIVE: self.num_heads * self.head_size,
      _Encodings.ROTARY: self.head_size,
    }
    if must_be_even.get(encodings, 0) % 2:
      raise ValueError(
        f'{encodings} encodings need an even width, got'
        f' {must_be_even[encodings]}.'
      )

  @property
  def head_size(self) -> int:
    """Size of a head, d."""
    return self.num_hiddens_per_head or self.embedding_dim // self.num_heads


def make_transformer_encoder(
  output_size: int,
  return_all_outputs: bool = False,
  causal_masking: bool = False,
  **hyperparameters: Any,
) -> Callable[..., jax.Array]:
  """Returns a transformer encoder with a readout, not Haiku-transformed.

  The model is f(x, input_length=None) with x [B, T, V]; `input_length` is
  ignored. It returns logits [B, T, O], or [B, O] at the last position.

  Args:
    output_size: Number of classes, O.
    return_all_outputs: Whether to return the logits at all positions.
    causal_masking: Whether a position sees only those up to it.
    **hyperparameters: Fields of `TransformerConfig`.
  """
  config = TransformerConfig(**hyperparameters)

  def transformer_encoder(x_BxTxV, input_length=None):
    del input_length
    last_only = not return_all_outputs
    rng = _position_key(config)
    h_BxTxD = _encode(config, x_BxTxV, causal_masking, rng, last_only)
    if last_only:
      h_BxTxD = h_BxTxD[:, -1]
    return layers.linear(h_BxTxD, output_size, 'readout')

  return transformer_encoder


def make_transformer(
  output_size: int, return_all_outputs: bool = False, **hyperparameters: Any
) -> Callable[[jax.Array, jax.Array], jax.Array]:
  """Returns an encoder-decoder transformer, not Haiku-transformed.

  The model is f(inputs, targets) with one-hot inputs [B, T, V] and targets
  [B, T', O] or [B, O], whose rows before the start are all zeros. The decoder
  reads the targets one place late, after a start symbol; it returns logits [B,
  T', O], or [B, O] at the last position. Logits before the start of the targets
  mean nothing.

  Args:
    output_size: Number of classes, O.
    return_all_outputs: Whether to return the logits at all positions.
    **hyperparameters: Fields of `TransformerConfig`.
  """
  config = TransformerConfig(**hyperparameters)

  def transformer(x_BxTxV, y_BxTxO):
    y_BxTxO = strings.with_time(y_BxTxO)
    rng = _position_key(config)
    with hk.name_scope('encoder'):
      memory = _encode(config, x_BxTxV, is_causal=False, rng=rng)
    with hk.name_scope('decoder'):
      is_memory = strings.is_symbol(x_BxTxV)
      h_BxTxD = _decode(config, y_BxTxO, memory, is_memory, rng)
    if not return_all_outputs:
      h_BxTxD = h_BxTxD[:, -1]
    return layers.linear(h_BxTxD, output_size, 'readout')

  return transformer


def shift_right(y_BxTxO: jax.Array) -> jax.Array:
  """Returns the targets one place later, after a start symbol, [B, T, O + 1].

  The start symbol, class O, stands at the place of the first target.
  """
  is_target = strings.is_symbol(y_BxTxO)
  is_first = is_target & (jnp.cumsum(is_target, axis=-1) == 1)
  before = jnp.pad(y_BxTxO[:, :-1], ((0, 0), (1, 0), (0, 0)))
  return jnp.concatenate(
    [before, is_first[..., None].astype(before.dtype)], axis=-1
  )


def _encode(config, x_BxTxV, is_causal, rng, last_only=False):
  """Returns vectors [B, T, D], or of the last position alone, [B, 1, D]."""
  is_symbol_BxT = strings.is_symbol(x_BxTxV)
  position_BxT = _positions(config, is_symbol_BxT, rng)
  h = _embed(config, x_BxTxV, position_BxT)
  visible = is_symbol_BxT[:, None] & _window(config, h.shape[1], is_causal)
  for layer in range(config.num_layers):
    with hk.name_scope(f'layer_{layer}'):
      keys = h
      # Nothing reads what the other positions make of them.
      if last_only and layer == config.num_layers - 1:
        h = h[:, -1:]
      attended = _attention(config, 'attention', h, keys, visible, position_BxT)
      h = _add_and_norm(config, 'attention_norm', h, attended)
      h = _add_and_norm(config, 'ffn_norm', h, _feed_forward(config, h))
  return h


def _decode(config, y_BxTxO, memory_BxKxD, is_memory_BxK, rng):
  is_target_BxT = strings.is_symbol(y_BxTxO)
  position_BxT = _positions(config, is_target_BxT, rng)
  memory_position_BxK = _positions(config, is_memory_BxK, rng)
  h = _embed(config, shift_right(y_BxTxO), position_BxT)
  visible = is_target_BxT[:, None] & _window(config, h.shape[1], is_causal=True)
  for layer in range(config.num_layers):
    with hk.name_scope(f'layer_{layer}'):
      attended = _attention(config, 'attention', h, h, visible, position_BxT)
      h = _add_and_norm(config, 'attention_norm', h, attended)
      attended = _attention(
        config,
        'cross_attention',
        h,
        memory_BxKxD,
        is_memory_BxK[:, None],
        position_BxT,
        memory_position_BxK,
      )
      h = _add_and_norm(config, 'cross_attention_norm', h, attended)
      h = _add_and_norm(config, 'ffn_norm', h, _feed_forward(config, h))
  return h


def _position_key(config):
  """Returns the key with which all positions of a call are drawn, if any."""
  is_random = config.randomized_positions is not None
  return hk.maybe_next_rng_key() if is_random else None


def _positions(config, is_symbol_BxT, rng):
  """Returns positions from the first symbol; before it they mean nothing."""
  length = is_symbol_BxT.shape[1]
  padding_B = length - is_symbol_BxT.sum(axis=-1)
  position_BxT = jnp.arange(length) - padding_B[:, None]
  if config.randomized_positions is None:
    return position_BxT
  return encodings_lib.random_positions(
    position_BxT, config.randomized_positions, rng
  )


def _window(config, length, is_causal):
  """Returns the keys that each query may see in self-attention, [T, T]."""
  distance = jnp.arange(length)[:, None] - jnp.arange(length)
  visible = jnp.full((length, length), True)
  if is_causal:
    visible &= distance >= 0
  if config.attention_window is not None:
    visible &= jnp.abs(distance) <= config.attention_window // 2
  return visible


def _embed(config, x_BxTxV, position_BxT):
  h = layers.linear(
    x_BxTxV,
    config.embedding_dim,
    'embedding',
    with_bias=False,
    w_init=hk.initializers.TruncatedNormal(config.emb_init_scale),
  )
  h *= config.embedding_dim**0.5
  if config.positional_encodings == _Encodings.SIN_COS:
    h += encodings_lib.sinusoids(
      position_BxT, config.embedding_dim, config.max_time
    )
  return _dropout(config, h)


def _attention(
  config, name, x_BxQxD, memory_BxKxD, visible, position, memory_position=None
):
  """Multi-head attention; `memory_position` None for self-attention.

  That is of the last Q of the K positions. `visible` broadcasts to [B, Q, K],
  in self-attention to [B, K, K].
  """
  num_queries, num_keys = x_BxQxD.shape[1], memory_BxKxD.shape[1]
  is_self = memory_position is None
  if is_self:
    memory_position = position
    position, visible = position[:, -num_queries:], visible[:, -num_queries:]

  def heads(x, name):
    size = config.num_heads * config.head_size
    y = layers.linear(x, size, name, with_bias=False)
    return y.reshape(*y.shape[:2], config.num_heads, config.head_size)

  with hk.name_scope(name):
    q = heads(x_BxQxD, 'query')
    k = heads(memory_BxKxD, 'key')
    v = heads(memory_BxKxD, 'value')
    encodings = config.positional_encodings
    if encodings == _Encodings.ROTARY:
      q = encodings_lib.rotate(q, position, config.max_time)
      k = encodings_lib.rotate(k, memory_position, config.max_time)
    if encodings == _Encodings.RELATIVE:
      first_distance = position[:, 0] - memory_position[:, 0]
      if is_self:  # The same for all strings: computed once, not B times.
        first_distance = jnp.array([num_keys - num_queries])
      logits = encodings_lib.relative_logits(
        q, k, first_distance, config.max_time
      )
    else:
      logits = jnp.einsum('bqhd,bkhd->bhqk', q, k)
    logits *= config.head_size**-0.5
    distance = position[:, :, None] - memory_position[:, None]
    if encodings == _Encodings.ALIBI:
      logits += encodings_lib.alibi_bias(distance, config.num_heads)
    if encodings == _Encodings.KERPLE:
      logits += encodings_lib.kerple_bias(distance, config.num_heads)
    if encodings == _Encodings.FIRE:
      logits += encodings_lib.fire_bias(distance, position, config.num_heads)
    if encodings == _Encodings.COPE:
      bias = encodings_lib.cope_bias(q, logits, distance, visible)
      logits += config.head_size**-0.5 * bias
    # Where there is nothing to see, all weights are 0.
    weights = jax.nn.softmax(logits, where=visible[:, None])
    out = jnp.einsum('bhqk,bkhd->bqhd', weights, v)
    out = out.reshape(*out.shape[:2], -1)
    return layers.linear(
      out, config.embedding_dim, 'projection', with_bias=False
    )


def _feed_forward(config, h):
  hidden = layers.linear(
    h, config.widening_factor * config.embedding_dim, 'ffn_in'
  )
  return layers.linear(jax.nn.relu(hidden), config.embedding_dim, 'ffn_out')


def _add_and_norm(config, name, h, update):
  return hk.LayerNorm(-1, create_scale=True, create_offset=True, name=name)(
    h + _dropout(config, update)
  )


def _dropout(config, x):
  rng = hk.maybe_next_rng_key()
  if rng is None or not config.dropout_prob:
    return x
  return hk.dropout(rng, config.dropout_prob, x)
