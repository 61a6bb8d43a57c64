"""Architectures since 2023, by the names of the command line.

Each is a Flax module of tokens: see `blocks.TokenModel`.
"""

from regulargpt_jax.recurrent import (
  gated_delta,
  looped,
  mamba_2,
  pd_ssm,
  rwkv_7,
  xlstm,
)

MODELS = {
  'slstm': xlstm.SLSTM,
  'mlstm': xlstm.MLSTM,
  'mamba_2': mamba_2.Mamba2,
  'gated_delta_net': gated_delta.GatedDeltaNet,
  'gated_delta_product': gated_delta.GatedDeltaProduct,
  'rwkv_7': rwkv_7.RWKV7,
  'pd_ssm': pd_ssm.PDSSM,
  'looped_transformer': looped.LoopedTransformer,
}
