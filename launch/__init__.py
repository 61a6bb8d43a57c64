"""The commands. While one imports what it needs, a signal ends it in a line."""

import os
import signal
import sys


def _end(number, frame):
  """Ends the process at once: it has done nothing yet."""
  del frame
  os.write(2, b'Interrupted.\n')
  os._exit(128 + number)


# Python calls itself so while it looks for the module that -m names. Whoever
# imports this package otherwise has signals of their own; `flag_lib.run` gives
# back the usual ones.
if sys.argv[0] == '-m':
  for _number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(_number) != signal.SIG_IGN:
      signal.signal(_number, _end)
