"""Table 3 as data, and smaller sets of models to compare in the same way."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from experiments.language import config as config_lib

Fields = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Preset:
  """Language models, each trained with each seed and read at each length.

  Attributes:
    base: Fields of `LanguageExperiment` that all share.
    models: Fields of each, by its name in reports.
    lengths: Tokens of context in the test.
    num_sequences: Last tokens to predict at each.
    seeds: Of the parameters and of the data's order.
  """

  base: Fields
  models: Mapping[str, Fields]
  lengths: Sequence[int] = config_lib.LENGTHS
  num_sequences: int = config_lib.NUM_SEQUENCES
  seeds: Sequence[int] = (0, 1, 2)


def experiment(
  preset: Preset, model: str, seed: int, **overrides: Any
) -> config_lib.LanguageExperiment:
  """Returns what a preset says of a model and a seed.

  Args:
    preset: The preset.
    model: A name in it.
    seed: Of the parameters and of the data's order.
    **overrides: Fields that are to be different.

  Raises:
    ValueError: If a field has a bad value.
  """
  return config_lib.LanguageExperiment(
    **{
      **preset.base,
      **preset.models[model],
      **overrides,
      'seed': seed,
      'model_init_seed': seed,
    }
  )


def _regular_gpt(chunk_size: int, thickness: int, **fields: Any) -> Fields:
  return {
    'architecture': 'regular_gpt_lm',
    'chunk_size': chunk_size,
    'thickness': thickness,
    **fields,
  }


def _gpt(position_bias: str) -> Fields:
  return {'architecture': 'gpt_lm', 'position_bias': position_bias}


_TABLE_3 = {
  'kerple': _gpt('kerple_log'),
  't5': _gpt('t5'),
  'alibi': _gpt('alibi'),
  'regular_gpt_32_6': _regular_gpt(32, 6),
  'regular_gpt_64_6': _regular_gpt(64, 6),
  'regular_gpt_128_6': _regular_gpt(128, 6),
  'regular_gpt_128_12': _regular_gpt(128, 12),
  'regular_gpt_256_6': _regular_gpt(256, 6),
}
_TINY = {
  'embedding_dim': 64,
  'num_heads': 4,
  'precision': 'float32',
  'sequence_length': 64,
  'learning_rate': 2e-3,
  'warmup_steps': 100,
  'training_steps': 1000,
}
_SHORT = ('alibi', 'regular_gpt_32_6', 'regular_gpt_64_6', 'regular_gpt_128_6')

PRESETS = {
  # The defaults of `LanguageExperiment` are the paper's.
  'table3': Preset({}, _TABLE_3),
  # The lengths of the paper, smaller models: minutes on a GPU.
  'short': Preset(
    {
      'embedding_dim': 512,
      'num_heads': 8,
      'warmup_steps': 100,
      'training_steps': 10_000,
    },
    {name: _TABLE_3[name] for name in _SHORT},
    seeds=(0,),
  ),
  # Trained at 64 tokens, C = 4 has three levels, enough for 64 tokens; C = 16
  # and 32 have two, enough for 256 and 1,024. In the paper C = 32, 64 and 128
  # have two, enough for 1,024, 4,096 and 16,384. Half an hour on a CPU.
  'tiny': Preset(
    _TINY,
    {
      'alibi': {**_gpt('alibi'), 'num_layers': 4},
      'regular_gpt_4_2': _regular_gpt(4, 2),
      'regular_gpt_16_2': _regular_gpt(16, 2),
      'regular_gpt_32_2': _regular_gpt(32, 2),
    },
    lengths=(64, 128, 256, 512, 1024, 2048),
    seeds=(0,),
  ),
  # To contexts that need up to four levels more than training strings: as in
  # the paper, stopping at the levels of training, and trained for more.
  'tiny_deep': Preset(
    {**_TINY, 'training_steps': 500},
    {
      **{
        kind: {**_gpt(kind), 'num_layers': 4}
        for kind in ('alibi', 'kerple_log', 't5')
      },
      'regular_gpt_4_2': _regular_gpt(4, 2),
      'regular_gpt_4_2_levels_3': _regular_gpt(4, 2, max_levels=3),
      'regular_gpt_4_2_extra': _regular_gpt(4, 2, max_extra_levels=4),
      'regular_gpt_16_2': _regular_gpt(16, 2),
      'regular_gpt_16_2_levels_2': _regular_gpt(16, 2, max_levels=2),
      'regular_gpt_32_2': _regular_gpt(32, 2),
      'regular_gpt_32_2_levels_2': _regular_gpt(32, 2, max_levels=2),
    },
    lengths=(64, 256, 1024, 2048, 8192),
    num_sequences=300,
  ),
}
