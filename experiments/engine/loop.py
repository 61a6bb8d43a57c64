"""The training loop: the device steps and counts; the host waits and writes.

It knows no task and no model: what steps, and on what, is handed to it.
"""

from collections.abc import Callable, Iterator
import contextlib
import math
import time
from typing import Any

import chex
import jax
import numpy as np
import tqdm

from experiments.engine import checkpoints as checkpoints_lib
from experiments.engine import clock, devices, optimization, progress, stopping
from experiments.engine import experiment as experiment_lib
from experiments.engine import metrics as metrics_lib

# Seconds between two updates of the progress bar, each of which waits for the
# device.
_BAR_INTERVAL_S = 1.0
# Steps that take longer than so many seconds are waited for one by one.
_SLOW_STEP_S = 0.1

State = optimization.State
# The step, and what it steps on: (state, what the stream yields) -> state.
Work = tuple[Callable[[State, Any], State], Iterator[Any]]


class DivergedError(Exception):
  """The loss or the gradient of every run was not finite."""

  def __init__(self, state: State):
    self.state = state
    step = devices.fetch(state.diverged_at).max() + 1
    super().__init__(
      f'The loss or its gradient is not finite at step {step}. What was saved'
      ' before is kept; try a lower --learning_rate in another --workdir.'
    )


def train(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  state: State,
  begin: Callable[[State, int], Work],
  *,
  validate: Callable[[chex.ArrayTree], float] | None = None,
  validate_every: int = 0,
  time_budget_s: float = math.inf,
  what: str = 'Train',
  describe_rate: Callable[[float, int], list[str]] = lambda rate, step: [],
) -> State:
  """Trains, going on from the newest good checkpoint.

  Args:
    experiment: Says how many steps there are, and when to log and to save.
    workdir: A folder that `workdir.claim` accepted.
    state: That before the first step.
    begin: Called with the state and the steps done, if any are left; returns
      the step, which may reuse its state's memory, and the stream of the steps
      still to do.
    validate: From parameters to a loss that is logged too.
    validate_every: Steps between two of those; 0 for one at the end.
    time_budget_s: Seconds, after `begin`, after which to save and stop.
    what: Stands before the progress bar.
    describe_rate: From steps per second and the steps done to what the bar says
      of them.

  Returns:
    The state after the last step.

  Raises:
    DivergedError: If every run diverged.
    stopping.StoppedError: If SIGTERM or SIGINT came, or the time was over; the
      state is saved then.
    OSError: If a file cannot be written, or no checkpoint can be read.
  """
  num_steps = experiment.training_steps
  with contextlib.ExitStack() as stack:
    checkpoints = checkpoints_lib.Checkpoints(workdir)
    stack.callback(checkpoints.close)
    first_step, state = checkpoints.resume(state, num_steps)
    if first_step >= num_steps:
      return state
    metrics = metrics_lib.Metrics(workdir, first_step)
    stack.callback(metrics.close)
    step, stream = begin(state, first_step)
    if hasattr(stream, 'close'):
      stack.callback(stream.close)
    forget_sums = jax.jit(
      optimization.without_sums,
      donate_argnums=0,
      out_shardings=jax.tree.map(lambda x: x.sharding, state),
    )
    bar = _Bar(
      stack.enter_context(progress.bar(num_steps, first_step, what, 'step')),
      describe_rate,
    )
    received = stack.enter_context(stopping.caught_signals())
    stop_at = time.monotonic() + time_budget_s
    reason_to_stop = stopping.ReasonToStop(received, stop_at, first_step)
    stack.enter_context(clock.running(workdir))
    pace = _Pace()
    for done in range(first_step + 1, num_steps + 1):
      item = next(stream)
      pace.start()
      state = step(state, item)
      pace.wait(state.step)
      is_last = done == num_steps
      stop = reason_to_stop(done)
      if stop:
        progress.say(f'Told to stop: saving step {done}, then exiting.')
      if _is_due(done, experiment.log_every) or is_last:
        _raise_if_diverged(state)
        bar.show(_log(metrics, state, done))
        state = forget_sums(state)
      if validate and (_is_due(done, validate_every) or is_last):
        _raise_if_diverged(state)
        loss = validate(state.params)
        metrics.write(done, 0, validation_loss=loss)
        metrics.flush()
        bar.show({'validation': f'{loss:.4f}'})
      if stop or is_last or _is_due(done, experiment.checkpoint_every):
        _raise_if_diverged(state)
        metrics.flush(at_once=True)  # What goes on from here has its past.
        checkpoints.save(done, state)
      stopping.raise_if_stopped(stop, done)
      bar.update(done, state, is_last)
    # The state is saved; what comes next need not be done now.
    if stop := devices.largest(received[0] if received else 0):
      raise stopping.RunInterruptedError(stop, num_steps)
  return state


def _is_due(step: int, every: int) -> bool:
  """Whether a step is one of every so many; never, if that is 0."""
  return every > 0 and step % every == 0


def _log(metrics: metrics_lib.Metrics, state: State, step: int) -> dict:
  """Writes the means since the last logging point, and returns them as text."""
  num_summed, sums, diverged_at = devices.fetch(
    (state.num_summed, optimization.sums(state), state.diverged_at)
  )
  goes_on_R = np.atleast_1d(diverged_at) < 0
  means = {k: np.atleast_1d(v) / num_summed for k, v in sums.items()}
  for run in np.flatnonzero(goes_on_R).tolist():
    metrics.write(step, run, **{k: float(v[run]) for k, v in means.items()})
  metrics.flush()
  texts = {k: f'{v[goes_on_R].mean():.4f}' for k, v in means.items()}
  if not goes_on_R.all():
    texts['diverged'] = str((~goes_on_R).sum())
  return texts


def _raise_if_diverged(state: State) -> None:
  """Ends training if every run has diverged."""
  if (devices.fetch(state.diverged_at) >= 0).all():
    raise DivergedError(state)


class _Pace:
  """Waits for every step while steps are slow.

  JAX would hand the device some thirty steps ahead: minutes in which nothing is
  shown and no signal heeded, where a step takes seconds.
  """

  def __init__(self):
    self._is_slow = True

  def start(self) -> None:
    """Is called before a step."""
    self._started = time.perf_counter()

  def wait(self, output: jax.Array) -> None:
    """Is called after the step, with something of what it returned."""
    if self._is_slow:
      output.block_until_ready()
      self._is_slow = time.perf_counter() - self._started > _SLOW_STEP_S


class _Bar:
  """A progress bar with what was logged last and how fast it goes."""

  def __init__(
    self,
    bar: tqdm.tqdm,
    describe_rate: Callable[[float, int], list[str]],
  ):
    self._bar = bar
    self._describe_rate = describe_rate
    self._texts: dict[str, str] = {}
    self._is_changed = False
    self._updated = time.perf_counter()

  def show(self, texts: dict[str, str]) -> None:
    """Shows new texts, from the next update on."""
    self._texts |= texts
    self._is_changed = True

  def update(self, step: int, state: State, is_last: bool) -> None:
    """Shows that a step is done, if it is time to; waits for it then."""
    now = time.perf_counter()
    if not (
      self._is_changed or is_last or now - self._updated > _BAR_INTERVAL_S
    ):
      return
    state.step.block_until_ready()
    parts = [f'{name} {text}' for name, text in self._texts.items()]
    if rate := self._bar.format_dict['rate']:
      parts += self._describe_rate(rate, step)
    self._bar.set_postfix_str(', '.join(parts), refresh=False)
    self._bar.update(step - self._bar.n)
    self._is_changed = False
    self._updated = time.perf_counter()
