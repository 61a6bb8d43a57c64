"""Sizes of models: what they may be."""

# Beyond it shapes would not be counted in 32 bits.
MAX_SIZE = 2**24
# More would compile for hours.
MAX_LAYERS = 256


def check(
  name: str, value: float, minimum: float = 1, maximum: float = MAX_SIZE
) -> None:
  """Checks that a size is from a minimum to a maximum, both included.

  Raises:
    ValueError: If it is not.
  """
  if not value >= minimum:
    raise ValueError(f'{name} must be at least {minimum}, got {value}.')
  if not value <= maximum:
    raise ValueError(f'{name} must be at most {maximum:,}, got {value}.')
