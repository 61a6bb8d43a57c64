"""What a person watching sees: lines and bars, on standard error."""

from collections.abc import Iterator
import contextlib
import sys
import time
import weakref

import tqdm

from experiments.engine import devices

# Those that are shown.
_bars: 'weakref.WeakSet[tqdm.tqdm]' = weakref.WeakSet()


def say(message: str) -> None:
  """Prints a line without breaking a progress bar."""
  if devices.is_main():
    tqdm.tqdm.write(message, file=sys.stderr)


@contextlib.contextmanager
def timed(doing: str) -> Iterator[None]:
  """Says what is being done, and then how long it took.

  No bar counts that time in its rate.
  """
  say(f'{doing} ...')
  before = [(x, x.start_t, x.last_print_t) for x in _bars if not x.disable]
  start = time.perf_counter()
  yield
  passed = time.perf_counter() - start
  for shown, started, printed in before:  # Inner blocks' time is in it.
    shown.start_t = started + passed
    shown.last_print_t = printed + passed
  say(f'{doing}: {passed:.1f} s')


class _Lines:
  """A file in which every state of a bar is a line of its own."""

  def write(self, text: str) -> None:
    """Writes what there is to read of a bar's repainting."""
    text = text.strip('\r\n ')
    if text:
      sys.stderr.write(text + '\n')

  def flush(self) -> None:
    """Flushes."""
    sys.stderr.flush()


def bar(total: int, initial: int, what: str, unit: str) -> tqdm.tqdm:
  """Returns a progress bar with its rate and the time left.

  A terminal gets a bar that moves; a log file, a line now and then; of nothing
  to do neither gets any.
  """
  is_terminal = sys.stderr.isatty()
  if not is_terminal:
    tqdm.tqdm.monitor_interval = 0  # It would print every line twice.
  shown = tqdm.tqdm(
    total=total,
    initial=initial,
    desc=what,
    unit=unit,
    file=sys.stderr if is_terminal else _Lines(),
    disable=not (total and devices.is_main()),
    dynamic_ncols=is_terminal,
    mininterval=0.5 if is_terminal else 15.0,
    # By itself it would wait for as many more as came in that time before.
    miniters=1,
    smoothing=0.1,
  )
  _bars.add(shown)
  return shown
