"""RegularGPT for Haiku, under the benchmark's builder signature.

One line in MODEL_BUILDERS of DeepMind's `neural_networks_chomsky_hierarchy`
makes it train there:

  'regular_gpt': haiku_model.make_regular_gpt,
"""

from collections.abc import Callable

from flax import traverse_util
import haiku as hk
import jax
import jax.numpy as jnp

from regulargpt_jax import config as config_lib
from regulargpt_jax import model as model_lib
from regulargpt_jax.baselines import strings


def make_regular_gpt(
  output_size: int,
  return_all_outputs: bool = False,
  preset: str = 'benchmark',
  max_extra_levels: int = 0,
  **hyperparameters,
) -> Callable[..., jax.Array]:
  """Returns RegularGPT as a function for `hk.transform`.

  The function is f(x, input_length=None, extra_levels=0) with x one-hot, [B, T,
  V]; rows that are all zeros at the front are no symbols. `input_length` is
  ignored; `extra_levels` may be traced. It returns logits [B, T, output_size],
  or [B, output_size] at the last position. The number of levels follows the
  length of each string, whatever shape it is traced with.

  Args:
    output_size: Number of classes.
    return_all_outputs: Whether to return the logits at all positions.
    preset: A key of `config.PRESETS`.
    max_extra_levels: Static bound on `extra_levels`.
    **hyperparameters: Fields of `config.RegularGPTConfig`.
  """

  def regular_gpt(x_BxTxV, input_length=None, extra_levels=0):
    del input_length
    module = model_lib.RegularGPT(
      config_lib.make_config(
        preset,
        vocab_size=x_BxTxV.shape[-1],
        output_size=output_size,
        **hyperparameters,
      )
    )
    is_symbol_BxT = strings.is_symbol(x_BxTxV)
    tokens_BxT = jnp.where(is_symbol_BxT, jnp.argmax(x_BxTxV, axis=-1), -1)

    # Haiku's parameters are a mapping of two levels.
    def init(rng):
      params = module.init(rng, tokens_BxT[:, :1])['params']
      return {'~': traverse_util.flatten_dict(params, sep='/')}

    flat = hk.lift(init, name='regular_gpt')(
      hk.next_rng_key() if hk.running_init() else None
    )
    params = {'params': traverse_util.unflatten_dict(flat['~'], sep='/')}
    key = hk.maybe_next_rng_key()
    return module.apply(
      params,
      tokens_BxT,
      path='scan' if return_all_outputs else 'reduce',
      extra_levels=extra_levels,
      max_extra_levels=max_extra_levels,
      rngs=None if key is None else {'dropout': key},
    )

  return regular_gpt
