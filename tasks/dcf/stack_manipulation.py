"""Stack Manipulation."""

import jax
import jax.numpy as jnp

from tasks import alignment, random_symbols, task

_POP, _PUSH_0 = 2, 3


class StackManipulation(task.TokenTask):
  """What is left on a stack after a sequence of actions?

  A stack of 0s and 1s, from bottom to top, is followed by actions: 2 POP, 3
  PUSH 0, 4 PUSH 1. A POP of the empty stack does nothing. The output is the
  final stack from top to bottom, then the terminator 2, then 0s; what comes
  after the terminator does not count. A string of length 1 is a stack without
  actions.

  Examples:
    0 1 1 0 PUSH 1 POP POP leaves 0 1 1 -> 1 1 0 2 0 0 0 0
    1 0 POP POP POP leaves nothing -> 2 0 0 0 0 0
  """

  input_size = 5
  input_symbols = ('0', '1', 'POP', 'PUSH0', 'PUSH1')
  output_size = 3

  def output_length(self, input_length):
    """See base class."""
    return input_length + 1

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; the stack's length, symbols and actions are uniform."""
    stack_rng, symbol_rng, action_rng = jax.random.split(rng, 3)
    stack_length_B = jax.random.randint(
      stack_rng, (batch_size,), 1, jnp.maximum(length, 2)
    )
    symbols = random_symbols.uniform_bits(symbol_rng, batch_size, width)
    actions = _POP + random_symbols.uniform_symbols(
      action_rng, batch_size, width, num_symbols=3
    )
    place_Wx1 = jnp.arange(width)[:, None]
    is_action = place_Wx1 < length - stack_length_B
    return task.right_align(jnp.where(is_action, actions, symbols), length)

  def solve(self, tokens):
    """See base class.

    Read backwards, a push stays on the stack if and only if pushes lead pops
    by more than they ever did after it; that lead is its place from the top.
    """
    step = jnp.where(tokens == _POP, -1, 1)
    step = jnp.where(tokens == task.NO_SYMBOL, 0, step)
    lead = jax.lax.cumsum(step, axis=1, reverse=True)
    record = jnp.maximum(jax.lax.cummax(lead, axis=1, reverse=True), 0)
    record_after = jnp.pad(record[:, 1:], ((0, 0), (0, 1)))
    bits = jnp.where(tokens >= _PUSH_0, tokens - _PUSH_0, tokens)
    batch_size, width = tokens.shape
    from_top = jnp.where(lead > record_after, lead - 1, width)
    stack = (
      jnp.zeros_like(tokens)
      .at[jnp.arange(batch_size)[:, None], from_top]
      .set(bits, mode='drop')
    )
    return alignment.terminated(
      stack, record[:, 0], alignment.lengths(tokens) + 1, width + 1
    )

  def accuracy_mask(self, target):
    """See base class; counts up to the terminator."""
    return alignment.mask_through_terminator(target)
