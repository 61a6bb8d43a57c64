"""PD-SSM (Terzic et al., 2025, arXiv:2509.22284).

P has a 1 in each column, and the transition is P D, as in the paper and in its
code for time series. That for the benchmark's tasks (`pdssm.py`) has a 1 in
each row, and D P: there a place reads from one place, here it goes to one.

Letters: B batch, T length, D width.
"""

from flax import linen as nn
import jax.numpy as jnp

from regulargpt_jax import rows
from regulargpt_jax.recurrent import blocks, map_recurrence


class Mixer(nn.Module):
  """P of a mixture of the dictionary's matrices, d and b of the symbol."""

  state_size: int
  dictionary_size: int

  @nn.compact
  def __call__(self, x_BxTxD, is_symbol_BxTx1):
    """See `blocks.TokenModel`."""
    size = self.state_size

    def generated(name):
      hidden = nn.gelu(rows.dense(2 * size, name=f'{name}_hidden')(x_BxTxD))
      return nn.sigmoid(rows.dense(size, name=name)(hidden))

    chosen = nn.softmax(blocks.linear(self.dictionary_size)(x_BxTxD))
    chosen = jnp.where(is_symbol_BxTx1, chosen, 0)
    dictionary = self.param(
      'dictionary',
      nn.initializers.normal(size**-0.5),
      (self.dictionary_size, size, size),
    )
    magnitude, phase = generated('magnitude'), 2 * jnp.pi * generated('phase')
    turn = jnp.stack([jnp.cos(phase), jnp.sin(phase)], axis=-2)
    d = magnitude[..., None, :] * turn
    d = jnp.where(is_symbol_BxTx1[..., None], d, jnp.array([[1.0], [0.0]]))
    b = blocks.linear(2 * size)(x_BxTxD).reshape(*d.shape[:2], size, 2).mT
    states = map_recurrence.run(chosen, dictionary, d, b).mT
    out = rows.dense(x_BxTxD.shape[-1])(blocks.merged(states))
    skip = self.param('skip', nn.initializers.normal(0.1), out.shape[-1:])
    return out + skip * x_BxTxD


class PDSSM(blocks.TokenModel):
  """PD-SSM: a state moved by a map of places, and turned and scaled in each.

  Its transition matrices have one complex number in each column.
  """

  state_size: int = 32
  dictionary_size: int = 8

  def mixer(self):
    """See base class."""
    return Mixer(self.state_size, self.dictionary_size)
