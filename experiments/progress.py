"""What a person watching sees: lines and bars, on standard error."""

from collections.abc import Iterator
import contextlib
import sys
import time

import tqdm


def say(message: str) -> None:
  """Prints a line without breaking a progress bar."""
  tqdm.tqdm.write(message, file=sys.stderr)


@contextlib.contextmanager
def timed(doing: str) -> Iterator[None]:
  """Says what is being done, and then how long it took."""
  say(f'{doing} ...')
  start = time.perf_counter()
  yield
  say(f'{doing}: {time.perf_counter() - start:.1f} s')


def bar(total: int, initial: int, what: str, unit: str) -> tqdm.tqdm:
  """Returns a progress bar with its rate and the time left."""
  # A log file gets a line now and then; a terminal, a bar that moves.
  interval = 0.5 if sys.stderr.isatty() else 15.0
  return tqdm.tqdm(
    total=total,
    initial=initial,
    desc=what,
    unit=unit,
    dynamic_ncols=True,
    mininterval=interval,
    smoothing=0.1,
  )
