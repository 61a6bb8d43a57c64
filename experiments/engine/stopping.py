"""Why training stops before its end, told to all processes alike."""

from collections.abc import Iterator
import contextlib
import signal
import time
from typing import Any

import jax

from experiments.engine import devices

# Seconds between two times that processes ask each other whether to stop.
_AGREEMENT_INTERVAL_S = 1.0
# A reason to stop besides the numbers of signals.
TIME_IS_OVER = 1000


class StoppedError(Exception):
  """Training was told to stop before its end, and the state is saved."""


class RunInterruptedError(StoppedError):
  """SIGTERM or SIGINT came."""

  def __init__(self, signal_number: int, step: int):
    self.signal_number = signal_number
    name = signal.Signals(signal_number).name
    super().__init__(
      f'{name}: saved step {step}. Run the same command again to go on.'
    )


class OutOfTimeError(StoppedError):
  """The time that was given is over."""

  def __init__(self, step: int):
    super().__init__(
      f'The time is over: saved step {step}. Run the same command again to go'
      ' on.'
    )


@contextlib.contextmanager
def caught_signals() -> Iterator[list[int]]:
  """Collects SIGTERM and SIGINT in place of dying of them."""
  received: list[int] = []

  def catch(signal_number: int, frame: Any) -> None:
    del frame
    received.append(signal_number)
    signal.signal(signal_number, signal.SIG_DFL)  # The next one is obeyed.

  try:
    old = {s: signal.signal(s, catch) for s in (signal.SIGTERM, signal.SIGINT)}
  except ValueError:  # Not in the main thread: leave signals alone.
    old = {}
  try:
    yield received
  finally:
    for signal_number, handler in old.items():
      signal.signal(signal_number, handler)


class ReasonToStop:
  """The number of a signal, `TIME_IS_OVER`, or 0 for none, at each step.

  All processes get the same: one of them may have been told, others not. They
  ask each other about once a second, after a number of steps that they also
  agree on.
  """

  def __init__(self, received: list[int], stop_at: float, step: int):
    """Initializes.

    Args:
      received: Numbers of signals, of `caught_signals`.
      stop_at: Value of `time.monotonic()` at which the time is over.
      step: Steps done.
    """
    self._received = received
    self._stop_at = stop_at
    self._asked_at = step, time.monotonic()
    self._ask_at = step + 1

  def __call__(self, step: int) -> int:
    """Returns the reason after a step."""
    now = time.monotonic()
    reason = self._received[0] if self._received else 0
    if not reason and now > self._stop_at:
      reason = TIME_IS_OVER
    if jax.process_count() == 1:
      return reason
    if step < self._ask_at:
      return 0
    last_step, last_time = self._asked_at
    seconds_per_step = (now - last_time) / (step - last_step)
    num_steps = int(_AGREEMENT_INTERVAL_S / max(seconds_per_step, 1e-4))
    self._asked_at = step, now
    self._ask_at = step + max(1, -devices.largest(-num_steps))
    return devices.largest(reason)


def raise_if_stopped(reason: int, step: int) -> None:
  """Ends training at a saved step if there is a reason to."""
  if reason == TIME_IS_OVER:
    raise OutOfTimeError(step)
  if reason:
    raise RunInterruptedError(reason, step)
