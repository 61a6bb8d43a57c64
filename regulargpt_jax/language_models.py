"""The language models by name: GPT-2's size, bfloat16 products.

Both kinds read right-aligned tokens [B, T], -1 standing for "no symbol", and
share what `transformer.Transformer` declares; as in

  model = language_models.BUILDERS['gpt_lm'](50257, position_bias='t5')
  params = model.init(key, tokens)
  losses_BxT = model.apply(params, inputs, targets, method='losses')
  logits_BxV = model.apply(params, tokens, method='last_logits')

With GPT-2's 50,257 symbols, RegularGPT has 81.1 M parameters (K = 6) or 123.7 M
(K = 12), a GPT of 12 layers 123.7 M. The vocabulary is not padded: XLA pads
products in bfloat16 to what a GPU multiplies fast, and every symbol is real.
"""

import jax.numpy as jnp

from regulargpt_jax import config as config_lib
from regulargpt_jax import gpt_lm, model


def make_regular_gpt_lm(
  vocab_size: int, chunk_size: int = 128, thickness: int = 6, **overrides
) -> model.RegularGPT:
  """Returns RegularGPT as a language model (Chi et al., 2023, section 5).

  Args:
    vocab_size: Number of symbols, read and predicted.
    chunk_size: C.
    thickness: K.
    **overrides: Fields of `config.RegularGPTConfig`.

  Raises:
    ValueError: If a field has a bad value.
  """
  fields = {'dtype': jnp.bfloat16} | overrides
  return model.RegularGPT(
    config_lib.make_config(
      'language',
      vocab_size,
      vocab_size,
      chunk_size=chunk_size,
      thickness=thickness,
      **fields,
    )
  )


def make_gpt_lm(
  vocab_size: int, position_bias: str = 'alibi', **overrides
) -> gpt_lm.GPT:
  """Returns a GPT with a position bias (Chi et al., 2023, section 5).

  Args:
    vocab_size: Number of symbols, read and predicted.
    position_bias: 'alibi', 'kerple_log', 't5' or 'none'.
    **overrides: Fields of `config.GPTConfig`.

  Raises:
    ValueError: If a field has a bad value.
  """
  fields = {'dtype': jnp.bfloat16} | overrides
  return gpt_lm.GPT(
    config_lib.make_gpt_config(
      vocab_size, position_bias=position_bias, **fields
    )
  )


BUILDERS = {'regular_gpt_lm': make_regular_gpt_lm, 'gpt_lm': make_gpt_lm}
