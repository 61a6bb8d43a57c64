"""Memory that XLA gives back on a CPU stays with the process."""

import ctypes

# Parameters of mallopt and their values (mallopt(3)): one heap, in which all
# threads' arrays of up to 2 GiB are, and which never shrinks.
_OPTIONS = {
  -8: 1,  # M_ARENA_MAX
  -3: 2**31 - 1,  # M_MMAP_THRESHOLD
  -1: -1,  # M_TRIM_THRESHOLD
}


def keep_freed() -> bool:
  """Has memory that was freed used again; returns whether the C library does.

  XLA allocates a program's arrays at each call. glibc takes large ones from the
  system and gives them back, so that every step waits for fresh, zeroed pages:
  up to a third of its time, see docs/performance.md. To be called before there
  are other threads. Elsewhere than with glibc nothing is changed.
  """
  mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)
  return mallopt is not None and all(
    mallopt(parameter, value) for parameter, value in _OPTIONS.items()
  )
