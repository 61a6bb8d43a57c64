"""Attention that fetches the maps to compose, by its position bias alone.

The residual-free stream has slots of S entries: slot 0 the product so far, slot
1 the map as the level found it. Each head copies one slot from one position of
its window: queries and keys are 0, so that r alone decides.
"""

import numpy as np

from regulargpt_jax.construction import schedule

# exp of it is 0 in float32: softmax gives weights of exactly 0 and 1.
_NEVER = -1e4


def num_heads(chunk_size: int) -> int:
  """Returns H: two to fetch the maps, and one to keep the level's own map.

  The latter only if a later sublayer still wants it, where C is not a power
  of 2.
  """
  return 2 if all(step.doubles for step in schedule.steps(chunk_size)) else 3


def _reads(step: schedule.Step, heads: int) -> list[tuple[int, int]]:
  """Returns the slot and the distance that each head reads."""
  # As the lemma wants them: what comes first in the string is first.
  earlier = (0 if step.doubles else 1, step.distance)
  return [earlier, (0, 0), (1, 0)][:heads]


def position_bias(step: schedule.Step, chunk_size: int) -> np.ndarray:
  """Returns r of a sublayer, [H, C]: 0 where the head looks."""
  reads = _reads(step, num_heads(chunk_size))
  bias_HxC = np.full((len(reads), chunk_size), _NEVER)
  for head, (_, distance) in enumerate(reads):
    bias_HxC[head, distance] = 0.0
  return bias_HxC


def value_kernel(
  step: schedule.Step, chunk_size: int, map_size: int
) -> np.ndarray:
  """Returns the value projection, [D, D] with D = H S: slots to heads."""
  reads = _reads(step, num_heads(chunk_size))
  slot_to_head = np.zeros((len(reads), len(reads)))
  for head, (slot, _) in enumerate(reads):
    slot_to_head[slot, head] = 1.0
  return np.kron(slot_to_head, np.eye(map_size))
