"""Lengths that share one compiled program.

Strings are right-aligned in the smallest of a few static widths that holds
them. The widths are powers of the chunk size, so that within a bucket all
strings have nearly the depth of the longest.
"""

from collections.abc import Iterable


def bucket_widths(longest: int, base: int, smallest: int) -> tuple[int, ...]:
  """Returns the widths in use, ascending.

  Args:
    longest: The longest string, which is also the last width.
    base: Widths are powers of it; the chunk size, where there is one.
    smallest: No width is below it: short strings are cheap to pad, and each
      width costs a compilation. With 1, exactly the lengths of one depth share
      a program.
  """
  widths = []
  width = base
  while width < longest:
    if width >= smallest:
      widths.append(width)
    width *= base
  return (*widths, longest)


def bucket_of(length: int, widths: Iterable[int]) -> int:
  """Returns the smallest of the ascending widths that holds the length.

  Raises:
    ValueError: If none does.
  """
  for width in widths:
    if width >= length:
      return width
  raise ValueError(
    f'A string of {length} symbols is longer than the longest in use, {width}.'
  )


def shortest_in(width: int, widths: Iterable[int]) -> int:
  """Returns the shortest length in the bucket of a width."""
  return max((w for w in widths if w < width), default=0) + 1
