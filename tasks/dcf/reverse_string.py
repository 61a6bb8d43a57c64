"""Reverse String."""

from tasks import rearrangement


class ReverseString(rearrangement.Rearrangement):
  """What is a binary string read backwards?

  Examples:
    011010 -> 010110
    110 -> 011
  """

  def source(self, place, length):
    """See base class."""
    return length - 1 - place
