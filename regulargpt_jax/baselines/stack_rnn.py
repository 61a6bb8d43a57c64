"""Stack RNN (Joulin & Mikolov, 2015, section 3.2; arXiv:1503.01007).

Letters: B batch, N stacks, S cells of a stack, C width of a cell.
"""

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

# In the order of the action weights: push, pop, no-op.
_NUM_ACTIONS = 3


class StackRNNCore(hk.RNNCore):
  """A recurrent core that reads the tops of stacks and acts on all of them.

  h_t = core([x_t, tops of s_{t-1}], h_{t-1}); each stack has its own actions
  a_t = softmax(A h_t) and pushed value D h_t, see `update_stack`. The value is
  linear and an empty cell is 0, as in Deletang et al., 2023. No parameter
  depends on `stack_size`.

  A state is (stacks [B, N, S, C], state of the inner core).
  """

  def __init__(
    self,
    stack_cell_size: int,
    stack_size: int = 30,
    n_stacks: int = 1,
    inner_core: type[hk.RNNCore] = hk.VanillaRNN,
    name: str | None = None,
    **inner_core_kwargs: Any,
  ):
    """Initializes.

    Args:
      stack_cell_size: C.
      stack_size: S; what is pushed beyond it falls off the bottom.
      n_stacks: N.
      inner_core: Class of the core h.
      name: Of the module.
      **inner_core_kwargs: Arguments of the inner core, as `hidden_size`.
    """
    super().__init__(name=name)
    self._core = inner_core(**inner_core_kwargs)
    self._shape = (n_stacks, stack_size, stack_cell_size)

  def __call__(self, inputs, prev_state):
    """See base class; inputs are [B, V]."""
    stack_BxNxSxC, core_state = prev_state
    batch_size, num_stacks, _, cell_size = stack_BxNxSxC.shape
    tops = stack_BxNxSxC[:, :, 0].reshape(batch_size, -1)
    output, core_state = self._core(
      jnp.concatenate([inputs, tops], axis=-1), core_state
    )
    value = hk.Linear(num_stacks * cell_size, name='value')(output)
    action = hk.Linear(num_stacks * _NUM_ACTIONS, name='action')(output)
    stack_BxNxSxC = update_stack(
      stack_BxNxSxC,
      jax.nn.softmax(action.reshape(batch_size, num_stacks, _NUM_ACTIONS)),
      value.reshape(batch_size, num_stacks, cell_size),
    )
    return output, (stack_BxNxSxC, core_state)

  def initial_state(self, batch_size):
    """Returns empty stacks and the inner core's initial state."""
    stacks = jnp.zeros((batch_size, *self._shape))
    return stacks, self._core.initial_state(batch_size)


def update_stack(stack_BxNxSxC, action_BxNx3, value_BxNxC) -> jax.Array:
  """Returns the mixture of the stacks after a push, a pop and a no-op.

  With cell 0 the top (Joulin & Mikolov, 2015, eqs. 3 and 4):
  s_t[0] = push * value + pop * s[1] + no_op * s[0];
  s_t[i] = push * s[i-1] + pop * s[i+1] + no_op * s[i].

  Args:
    stack_BxNxSxC: s.
    action_BxNx3: Weights of push, pop and no-op.
    value_BxNxC: What a push puts on top.
  """
  pushed = jnp.concatenate(
    [value_BxNxC[:, :, None], stack_BxNxSxC[:, :, :-1]], axis=2
  )
  popped = jnp.pad(stack_BxNxSxC[:, :, 1:], ((0, 0), (0, 0), (0, 1), (0, 0)))
  push, pop, no_op = jnp.moveaxis(action_BxNx3, -1, 0)[..., None, None]
  return push * pushed + pop * popped + no_op * stack_BxNxSxC
