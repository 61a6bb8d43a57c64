"""Tape RNN (Deletang et al., 2023, section 4 and appendix A).

A Baby-NTM (Suzgun et al., 2019; arXiv:1911.03329) that can also jump by the
length of the input.

Letters: B batch, N tapes, M cells of a tape, C width of a cell.
"""

from collections.abc import Sequence
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

# Stay, move left, move right, jump left, jump right.
_NUM_ACTIONS = 5


class TapeInputLengthJumpCore(hk.RNNCore):
  """A recurrent core that writes on circular tapes and moves them.

  The head stands at cell 0 of every tape: h_t = core([x_t, cells at the head],
  h_{t-1}); then MLP(h_t) is written there, and each tape moves by its own
  actions softmax(A h_t), see `update_tape`. No parameter depends on
  `memory_size`.

  A state is (tapes [B, N, M, C], jump length [B], state of the inner core).
  """

  def __init__(
    self,
    memory_cell_size: int,
    memory_size: int = 30,
    n_tapes: int = 1,
    mlp_layers_size: Sequence[int] = (64, 64),
    inner_core: type[hk.RNNCore] = hk.VanillaRNN,
    name: str | None = None,
    **inner_core_kwargs: Any,
  ):
    """Initializes.

    Args:
      memory_cell_size: C.
      memory_size: M.
      n_tapes: N.
      mlp_layers_size: Hidden layers of the MLP that computes what is written.
      inner_core: Class of the core h.
      name: Of the module.
      **inner_core_kwargs: Arguments of the inner core, as `hidden_size`.
    """
    super().__init__(name=name)
    self._core = inner_core(**inner_core_kwargs)
    self._mlp_layers_size = tuple(mlp_layers_size)
    self._shape = (n_tapes, memory_size, memory_cell_size)

  def __call__(self, inputs, prev_state):
    """See base class; inputs are [B, V]."""
    tape_BxNxMxC, jump_B, core_state = prev_state
    batch_size, num_tapes, _, cell_size = tape_BxNxMxC.shape
    read = tape_BxNxMxC[:, :, 0].reshape(batch_size, -1)
    output, core_state = self._core(
      jnp.concatenate([inputs, read], axis=-1), core_state
    )
    value = hk.nets.MLP(
      [*self._mlp_layers_size, num_tapes * cell_size], name='value'
    )(output)
    action = hk.Linear(num_tapes * _NUM_ACTIONS, name='action')(output)
    tape_BxNxMxC = update_tape(
      tape_BxNxMxC,
      jax.nn.softmax(action.reshape(batch_size, num_tapes, _NUM_ACTIONS)),
      value.reshape(batch_size, num_tapes, cell_size),
      jump_B,
    )
    return output, (tape_BxNxMxC, jump_B, core_state)

  def initial_state(self, batch_size, input_length):
    """Returns blank tapes and the inner core's initial state.

    Args:
      batch_size: B.
      input_length: What a jump jumps by, integers [B] or []: the number of
        input symbols, without padding, computation and empty tokens.
    """
    tapes = jnp.zeros((batch_size, *self._shape))
    jump_B = jnp.broadcast_to(jnp.asarray(input_length), (batch_size,))
    return tapes, jump_B, self._core.initial_state(batch_size)


def update_tape(tape_BxNxMxC, action_BxNx5, value_BxNxC, jump_B) -> jax.Array:
  """Returns the mixture of the tapes after each of the moves.

  First the value replaces the cell at the head, cell 0. Then the tape rolls
  under the head: by 0 (stay), -1 (left), +1 (right), -jump or +jump cells;
  after a roll by -1 the head is at what was cell 1.

  Args:
    tape_BxNxMxC: The tapes.
    action_BxNx5: Weights of stay, left, right, jump left, jump right.
    value_BxNxC: What is written.
    jump_B: Cells that a jump goes; integers.
  """
  written = jnp.concatenate(
    [value_BxNxC[:, :, None], tape_BxNxMxC[:, :, 1:]], axis=2
  )

  def jumped(cells_B):
    return jax.vmap(lambda tape, cells: jnp.roll(tape, cells, axis=1))(
      written, cells_B
    )

  moved = [
    written,
    jnp.roll(written, -1, axis=2),
    jnp.roll(written, 1, axis=2),
    jumped(-jump_B),
    jumped(jump_B),
  ]
  weights = jnp.moveaxis(action_BxNx5, -1, 0)[..., None, None]
  return sum(w * tape for w, tape in zip(weights, moved, strict=True))
