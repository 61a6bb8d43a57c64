"""A worker that is there at once, in place of processes."""

from concurrent import futures
import contextlib

import pytest

from experiments.text import pieces


@contextlib.contextmanager
def in_thread():
  """Makes pieces in a thread of this process."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(pieces, '_workers', lambda _: futures.ThreadPoolExecutor(1))
    yield
