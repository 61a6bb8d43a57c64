"""Nondeterministic stack RNN (DuSell & Chiang, 2020; arXiv:2010.04674).

At every step the network gives weights to all transitions of a pushdown
automaton, and reads the distribution of the top symbol over all its runs. There
are exponentially many; Lang's algorithm sums them in cubic time. With node (t,
q, x) for "state q and top symbol x after t steps", the paper's recurrence is

  gamma[i -> t][q,x -> r,y] = (i = t-1) push[q,x -> r,y]
    + sum_{s,z} gamma[i -> t-1][q,x -> s,z] replace[s,z -> r,y]
    + sum_{i<k<t-1} sum_{u,s,z} gamma[i -> k][q,x -> u,y]
        gamma[k -> t-1][u,y -> s,z] pop[s,z -> r]
  alpha[t][r,y] = sum_i sum_{q,x} alpha[i][q,x] gamma[i -> t][q,x -> r,y]

where gamma[i -> t] weighs the runs whose stack at t is that of node i with one
symbol on top. These weights leave the range of floats on long strings, so we
compute with probabilities instead, over the runs that are alive at t:

  joint[t][i,q,x,r,y] = alpha[i][q,x] gamma[i -> t][q,x -> r,y] / sum(alpha[t])
  below[k][u,y,i,q,x] = joint[k][i,q,x,u,y] / (its sum over i,q,x)

`joint` is the probability that the top is (r, y) with node (i, q, x) below it,
`below` that of what lies below a node. The recurrence multiplied by alpha then
needs no product of gammas: the pop's becomes below[k] * joint[t-1][k]. As every
run makes one transition a step, scaling all weights of a step scales all runs
alike, and the readings are exactly the paper's.

Letters: B batch, S nodes in time, Q states, X symbols, N = Q * X. In einsums i
and k are times, n is a node's (q, x), u, s, r are states, y, z symbols.
"""

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

# Nodes rarer than this are forgotten, so that no division overflows.
_MIN_PROBABILITY = 1e-12


class NDStackRNNCore(hk.RNNCore):
  """A recurrent core that reads the top of a nondeterministic stack.

  h_t = core([x_t, reading_{t-1}], h_{t-1}), where the reading is the
  distribution of the top symbol. For each (state, symbol), a softmax of a
  linear map of h_t weighs the transitions: pushes and replacements, to a state
  and a symbol, and pops, to a state. A run starts with state 0 and symbol 0 on
  the stack, which can be pushed on, but not be replaced or uncovered again, as
  in the paper. No parameter depends on `stack_size`.

  A state is (below [B, S, Q, X, S, N], joint [B, S, N, Q, X], top [B, Q, X],
  steps made [B], state of the inner core).
  """

  def __init__(
    self,
    stack_symbols: int,
    stack_states: int,
    stack_size: int = 30,
    inner_core: type[hk.RNNCore] = hk.VanillaRNN,
    name: str | None = None,
    **inner_core_kwargs: Any,
  ):
    """Initializes.

    Args:
      stack_symbols: X.
      stack_states: Q.
      stack_size: S: pushes are possible in the first S steps only, so it should
        be the number of steps, empty tokens included. Time and memory of a step
        are O(S^2).
      inner_core: Class of the core h.
      name: Of the module.
      **inner_core_kwargs: Arguments of the inner core, as `hidden_size`.
    """
    super().__init__(name=name)
    self._core = inner_core(**inner_core_kwargs)
    self._num_symbols = stack_symbols
    self._num_states = stack_states
    self._stack_size = stack_size

  def __call__(self, inputs, prev_state):
    """See base class; inputs are [B, V]."""
    *stack, core_state = prev_state
    top_BxQxX = stack[2]
    reading_BxX = top_BxQxX.sum(axis=1)
    output, core_state = self._core(
      jnp.concatenate([inputs, reading_BxX], axis=-1), core_state
    )
    num_symbols, num_states = self._num_symbols, self._num_states
    num_nodes = num_states * num_symbols
    logits = hk.Linear(
      num_nodes * (2 * num_nodes + num_states), name='transitions'
    )(output)
    weights = jax.nn.softmax(
      logits.reshape(-1, num_states, num_symbols, 2 * num_nodes + num_states)
    )
    push, replace, pop = jnp.split(weights, [num_nodes, 2 * num_nodes], axis=-1)
    shape = (-1, num_states, num_symbols, num_states, num_symbols)
    stack = update_stack(
      *stack, push.reshape(shape), replace.reshape(shape), pop
    )
    return output, (*stack, core_state)

  def initial_state(self, batch_size):
    """Returns a stack of symbol 0 and the inner core's initial state."""
    size, q, x = self._stack_size, self._num_states, self._num_symbols
    return (
      jnp.zeros((batch_size, size, q, x, size, q * x)),
      jnp.zeros((batch_size, size, q * x, q, x)),
      jnp.zeros((batch_size, q, x)).at[:, 0, 0].set(1.0),
      jnp.zeros(batch_size, jnp.int32),
      self._core.initial_state(batch_size),
    )


def update_stack(below, joint, top, time, push, replace, pop):
  """Returns the stack after one transition of every run.

  Args:
    below: What lies below each node, [B, S, Q, X, S, N].
    joint: Distribution of what lies below the top and of the top, [B, S, N, Q,
      X]; all zeros before the first step.
    top: Distribution of the top, [B, Q, X].
    time: Steps made, int [B].
    push: Weights [B, Q, X, Q, X] of (state, top) -> (state, pushed symbol).
    replace: Weights [B, Q, X, Q, X] of (state, top) -> (state, new top).
    pop: Weights [B, Q, X, Q] of (state, top) -> state.

  Returns:
    The new below, joint, top and time.
  """
  batch_size, size, num_nodes, *_ = joint.shape
  is_now_BxS = jnp.arange(size) == time[:, None]

  # What lies below the top now: looked up when a run comes back to this node.
  is_likely = top > _MIN_PROBABILITY
  below_top = jnp.where(
    is_likely[:, None, None],
    joint / jnp.where(is_likely, top, 1.0)[:, None, None],
    0.0,
  )
  below = jnp.where(
    is_now_BxS[:, :, None, None, None, None],
    jnp.einsum('binuy->buyin', below_top)[:, None],
    below,
  )

  pushed_BxNxQxX = (top[..., None, None] * push).reshape(
    batch_size, num_nodes, *top.shape[1:]
  )
  pushed = jnp.einsum(
    'bi,bnry->binry', is_now_BxS.astype(push.dtype), pushed_BxNxQxX
  )
  replaced = jnp.einsum('binsz,bszry->binry', joint, replace)
  uncovered = jnp.einsum(
    'bkuysz,bszr->bkuyr', joint.reshape(below.shape[:4] + top.shape[1:]), pop
  )
  popped = jnp.einsum('bkuyin,bkuyr->binry', below, uncovered)

  joint = pushed + replaced + popped
  alive_B = joint.sum(axis=(1, 2, 3, 4))
  joint /= jnp.where(alive_B > 0, alive_B, 1.0)[:, None, None, None, None]
  return below, joint, joint.sum(axis=(1, 2)), time + 1
