"""The benchmark's baseline models, by the names that the benchmark gives them.

Each builder returns a function to be wrapped by `hk.transform`; the wrappers in
`wrappers.py` make it read its input in the benchmark's format.
"""

import functools

import haiku as hk

from regulargpt_jax.baselines import (
  ndstack_rnn,
  rnn,
  stack_rnn,
  tape_rnn,
  transformer,
)

BUILDERS = {
  'rnn': functools.partial(rnn.make_rnn, rnn_core=hk.VanillaRNN),
  'lstm': functools.partial(rnn.make_rnn, rnn_core=hk.LSTM),
  'stack_rnn': functools.partial(
    rnn.make_rnn, rnn_core=stack_rnn.StackRNNCore, inner_core=hk.VanillaRNN
  ),
  'stack_lstm': functools.partial(
    rnn.make_rnn, rnn_core=stack_rnn.StackRNNCore, inner_core=hk.LSTM
  ),
  'ndstack_rnn': functools.partial(
    rnn.make_rnn, rnn_core=ndstack_rnn.NDStackRNNCore, inner_core=hk.VanillaRNN
  ),
  'tape_rnn': functools.partial(
    rnn.make_rnn,
    rnn_core=tape_rnn.TapeInputLengthJumpCore,
    inner_core=hk.VanillaRNN,
  ),
  'transformer_encoder': transformer.make_transformer_encoder,
  'transformer': transformer.make_transformer,
}
