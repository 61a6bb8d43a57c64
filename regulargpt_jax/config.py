"""What a model is made of: frozen dataclasses and two presets."""

import dataclasses
from typing import Any

import jax.numpy as jnp

from regulargpt_jax import sizes

POSITION_BIASES = ('alibi', 'kerple_log', 't5', 'none')

_CHOICES = {
  'norm': ('pre', 'post', 'none'),
  'activation': ('relu', 'gelu'),
  'pad': ('learned', 'masked'),
  'initialization': ('benchmark', 'gpt2'),
  'position_bias': POSITION_BIASES,
}

# As many as strings of 2^64 symbols need.
MAX_LEVELS = 64


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
  """Hyperparameters that RegularGPT and GPT have in common.

  Attributes:
    vocab_size: Number of input symbols, V.
    output_size: Number of classes that the readout scores.
    embedding_dim: Width of the model, D; a multiple of `num_heads`.
    num_heads: Number of attention heads, H.
    widening_factor: Width of the feed-forward layer, in units of D.
    norm: Layer norm before ('pre') or after ('post') each sublayer, or 'none'.
    residual: Whether a sublayer's output is added to its input; without, it
      takes its place (as in section 7.2).
    activation: Of the feed-forward layer, 'relu' or 'gelu' (tanh form).
    attention_bias: Whether query, key, value and output projections have one.
    scale_embedding: Whether embeddings are multiplied by sqrt(D).
    tie_embedding: Whether the readout is the transposed embedding.
    initialization: Of the weights: 'benchmark' (truncated normal of deviation
      1 / sqrt(fan in)) or 'gpt2' (normal 0.02, residual projections divided
      by sqrt(2 `num_blocks`)).
    dropout_rate: On embeddings and on each sublayer's output.
    dtype: Of the computation; parameters and softmax are float32 always.
    remat: Whether the backward pass computes all of a level or layer again from
      its input. Without it, results of matrix products are kept and only cheap
      parts are computed again. Less memory, more time.
  """

  vocab_size: int
  output_size: int
  embedding_dim: int = 256
  num_heads: int = 8
  widening_factor: int = 4
  norm: str = 'post'
  residual: bool = True
  activation: str = 'relu'
  attention_bias: bool = False
  scale_embedding: bool = True
  tie_embedding: bool = False
  initialization: str = 'benchmark'
  dropout_rate: float = 0.0
  dtype: Any = jnp.float32
  remat: bool = False

  @property
  def num_blocks(self) -> int:
    """Number of blocks with parameters of their own."""
    raise NotImplementedError

  def __post_init__(self):
    for name in (
      'vocab_size',
      'output_size',
      'embedding_dim',
      'num_heads',
      'widening_factor',
    ):
      sizes.check(name, getattr(self, name))
    for name, allowed in _CHOICES.items():
      if getattr(self, name, allowed[0]) not in allowed:
        raise ValueError(
          f'{name} must be one of {", ".join(allowed)}, got'
          f' {getattr(self, name)!r}.'
        )
    if self.embedding_dim % self.num_heads:
      raise ValueError(
        f'embedding_dim ({self.embedding_dim}) must be a multiple of'
        f' num_heads ({self.num_heads}).'
      )
    if not 0.0 <= self.dropout_rate < 1.0:
      raise ValueError(
        f'dropout_rate must be in [0, 1), got {self.dropout_rate}.'
      )
    if self.tie_embedding and self.vocab_size != self.output_size:
      raise ValueError(
        'A tied embedding needs output_size equal to vocab_size, got'
        f' {self.output_size} and {self.vocab_size}.'
      )


@dataclasses.dataclass(frozen=True)
class RegularGPTConfig(TransformerConfig):
  """Hyperparameters of RegularGPT (Chi et al., 2023, section 3).

  Attributes:
    chunk_size: Width of the attention window, C >= 2.
    thickness: Number of distinct blocks per level, K >= 1.
    pad: What the window sees before the sequence: one 'learned' vector, the
      same at every block's input, or nothing ('masked'). With K > 1 the
      authors' second block reads what the first made of the pads; ours reads
      the pads again.
    min_levels: Levels that even the shortest strings go through. The paper has
      none but L(T); a model trained at one length alone knows no other depth.
    max_levels: Levels that even the longest strings go through; of such, the
      last 1 + K (C^max_levels - 1) symbols alone are read. The paper has none
      but L(T).
    node_outputs: Numbers that training reads off every node of the tree, see
      `nodes`; 0 for none, as in the paper.
  """

  chunk_size: int = 2
  thickness: int = 1
  pad: str = 'learned'
  min_levels: int = 1
  max_levels: int = MAX_LEVELS
  node_outputs: int = 0

  @property
  def num_blocks(self) -> int:
    """K: levels share their blocks."""
    return self.thickness

  @property
  def reach(self) -> int:
    """Of how many symbols the last output knows, at most."""
    return 1 + self.thickness * (self.chunk_size**self.max_levels - 1)

  def __post_init__(self):
    super().__post_init__()
    sizes.check('chunk_size', self.chunk_size, 2)
    sizes.check('thickness', self.thickness)
    sizes.check('min_levels', self.min_levels, 1, MAX_LEVELS)
    sizes.check('max_levels', self.max_levels, self.min_levels, MAX_LEVELS)


@dataclasses.dataclass(frozen=True)
class GPTConfig(TransformerConfig):
  """Hyperparameters of the baseline GPT (Chi et al., 2023, section 5).

  Attributes:
    num_layers: Number of layers.
    position_bias: What is added to the logits by distance: 'alibi',
      'kerple_log', 't5' or 'none', see `position_biases`.
  """

  num_layers: int = 12
  position_bias: str = 'alibi'

  @property
  def num_blocks(self) -> int:
    """One a layer."""
    return self.num_layers

  def __post_init__(self):
    super().__post_init__()
    sizes.check('num_layers', self.num_layers, 1, sizes.MAX_LAYERS)


# What the authors ran: `benchmark` for Tables 1 and 2 (their public fork of the
# Chomsky-hierarchy benchmark; with K > 1 but for `pad`), `language` for Table 3
# (GPT-2's block, as in nanoGPT). Fields that are not named keep the defaults
# above.
_GPT2 = {
  'embedding_dim': 768,
  'num_heads': 12,
  'norm': 'pre',
  'activation': 'gelu',
  'attention_bias': True,
  'scale_embedding': False,
  'tie_embedding': True,
  'initialization': 'gpt2',
}
PRESETS = {'benchmark': {}, 'language': _GPT2 | {'pad': 'masked'}}


def make_config(
  preset: str, vocab_size: int, output_size: int, **overrides
) -> RegularGPTConfig:
  """Returns a preset's configuration with some fields replaced.

  Args:
    preset: A key of `PRESETS`.
    vocab_size: Number of input symbols.
    output_size: Number of classes.
    **overrides: Fields of `RegularGPTConfig`.

  Raises:
    ValueError: If the preset is unknown or a field has a bad value.
  """
  if preset not in PRESETS:
    raise ValueError(
      f'Unknown preset {preset!r}; the known ones are'
      f' {", ".join(sorted(PRESETS))}.'
    )
  return RegularGPTConfig(
    vocab_size, output_size, **(PRESETS[preset] | overrides)
  )


def make_gpt_config(vocab_size: int, **overrides) -> GPTConfig:
  """Returns the configuration of a GPT: GPT-2's but for the position bias.

  Args:
    vocab_size: Number of symbols, read and predicted.
    **overrides: Fields of `GPTConfig`.

  Raises:
    ValueError: If a field has a bad value.
  """
  return GPTConfig(vocab_size, vocab_size, **(_GPT2 | overrides))
