"""Recurrent architectures since 2023, by the names of the command line.

Each is a Flax module of tokens: see `blocks.TokenModel`.
"""

from regulargpt_jax.recurrent import gated_delta, mamba_2

MODELS = {
  'mamba_2': mamba_2.Mamba2,
  'gated_delta_net': gated_delta.GatedDeltaNet,
  'gated_delta_product': gated_delta.GatedDeltaProduct,
}
