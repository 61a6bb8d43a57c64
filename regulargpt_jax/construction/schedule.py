"""In what order a level's sublayers compose the C maps of a window."""

from typing import NamedTuple


class Step(NamedTuple):
  """What a sublayer puts in front of the product that a position has.

  Attributes:
    doubles: Whether it is the product of an earlier position, or that
      position's map as the level found it.
    distance: How many positions back it stands, in units of the dilation.
  """

  doubles: bool
  distance: int


def steps(chunk_size: int) -> list[Step]:
  """Returns a level's sublayers: doubling, and adding one, as C's bits say.

  A product of a maps and the product of a maps before it make one of 2 a; one
  map more before that makes 2 a + 1. So floor(log2 C) sublayers do where C is
  a power of 2, and at most twice as many always. A single sublayer with a
  C-fold lemma would need n^(C+1) hidden units, where each of these needs n^3.

  Args:
    chunk_size: C >= 2.
  """
  covered, result = 1, []
  for bit in f'{chunk_size:b}'[1:]:
    result.append(Step(doubles=True, distance=covered))
    covered *= 2
    if bit == '1':
      result.append(Step(doubles=False, distance=covered))
      covered += 1
  return result
