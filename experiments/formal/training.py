"""The training loop: the device samples, steps and counts; the host waits.

State has a leading axis of runs, R, and every step maps over it, so that many
runs that differ in seed or learning rate train as one. A run's numbers come
from its own seed and the step alone.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import functools
import math
import signal
import time
from typing import Any

import chex
import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tqdm

from experiments.engine import checkpoints as checkpoints_lib
from experiments.engine import devices, programs, progress
from experiments.engine import metrics as metrics_lib
from experiments.formal import buckets, builders, data, models
from experiments.formal import config as config_lib
from tasks import task as task_lib

MAX_GRAD_NORM = 1.0
# Seconds between two updates of the progress bar, each of which waits for the
# device.
BAR_INTERVAL_S = 1.0
# Steps that take longer than so many seconds are waited for one by one.
_SLOW_STEP_S = 0.1
# Seconds between two times that processes ask each other whether to stop.
_AGREEMENT_INTERVAL_S = 1.0
# A reason to stop besides the numbers of signals.
_TIME_IS_OVER = 1000


class DivergedError(Exception):
  """The loss or the gradient of every run was not finite."""

  def __init__(self, state: 'State'):
    self.state = state
    step = devices.fetch(state.diverged_at).max() + 1
    super().__init__(
      f'The loss or its gradient is not finite at step {step}. What was saved'
      ' before is kept; try a lower --learning_rate in another --workdir.'
    )


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


@flax.struct.dataclass
class Runs:
  """What tells runs apart; every leaf is [R]."""

  seed: jax.Array
  model_init_seed: jax.Array
  learning_rate: jax.Array


@flax.struct.dataclass
class State:
  """Everything that the rest of training depends on.

  Attributes:
    step: Steps done, which is also the position in the data; int32 [].
    params: Parameters, [R, ...].
    optimizer: Of Adam and the clipping, [R, ...].
    num_summed: Steps since the last logging point; int32 [].
    loss_sum: Of those steps, [R].
    accuracy_sum: Likewise.
    diverged_at: The step whose loss or gradient was not finite, since which
      nothing has changed any more; -1 before that. int32 [R].
  """

  step: jax.Array
  params: chex.ArrayTree
  optimizer: optax.OptState
  num_summed: jax.Array
  loss_sum: jax.Array
  accuracy_sum: jax.Array
  diverged_at: jax.Array


def make_runs(runs: Sequence[config_lib.Run]) -> Runs:
  """Returns runs as arrays."""
  rates, seeds, init_seeds = zip(*runs, strict=True)
  return Runs(
    seed=np.array(seeds, np.uint32),
    model_init_seed=np.array(init_seeds, np.uint32),
    learning_rate=np.array(rates, np.float32),
  )


def _optimizer() -> optax.GradientTransformation:
  """Adam behind clipping; the learning rate is applied by the step."""
  return optax.chain(
    optax.clip_by_global_norm(MAX_GRAD_NORM), optax.scale_by_adam()
  )


def _state_shardings(mesh: jax.sharding.Mesh) -> State:
  """Returns where each part of the state lies."""
  everywhere = devices.sharding(mesh)
  by_run = devices.sharding(mesh, 'run')
  return State(everywhere, by_run, by_run, everywhere, by_run, by_run, by_run)


def _init(model: models.Model, seeds_R: jax.Array) -> State:
  def init_run(seed):
    params = model.init(jax.random.key(seed))
    return params, _optimizer().init(params)

  params, optimizer = jax.vmap(init_run)(seeds_R)
  zeros_R = jnp.zeros(seeds_R.shape)
  return State(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer=optimizer,
    num_summed=jnp.zeros((), jnp.int32),
    loss_sum=zeros_R,
    accuracy_sum=jnp.zeros_like(zeros_R),
    diverged_at=jnp.full(zeros_R.shape, -1, jnp.int32),
  )


def init_state(
  experiment: config_lib.Experiment,
  model: models.Model,
  runs: Sequence[config_lib.Run] | None = None,
) -> State:
  """Returns the state before the first step.

  Args:
    experiment: What is trained.
    model: Its model.
    runs: The R runs; by default the one that the experiment is.
  """
  runs = make_runs(runs or config_lib.runs_of(experiment))
  mesh = devices.make_mesh(len(runs.seed), experiment.batch_size)
  init = jax.jit(
    functools.partial(_init, model), out_shardings=_state_shardings(mesh)
  )
  return init(runs.model_init_seed)


def state_shapes(
  experiment: config_lib.Experiment, model: models.Model, num_runs: int
) -> State:
  """Returns what a state's arrays are like, and where they lie."""
  seeds_R = jax.ShapeDtypeStruct((num_runs,), jnp.uint32)
  mesh = devices.make_mesh(num_runs, experiment.batch_size)
  shapes = jax.eval_shape(functools.partial(_init, model), seeds_R)
  return devices.with_shardings(shapes, _state_shardings(mesh))


def loss_and_accuracy(
  task: task_lib.GeneralizationTask, logits: jax.Array, target: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Returns the mean cross-entropy, in nats, and the accuracy of a batch."""
  present = data.present(target)
  losses = task.pointwise_loss_fn(logits, target) * present[..., None]
  num_right, num_counted = count_right(task, logits, target)
  # A batch may have nothing to answer: then both are 0.
  loss = jnp.sum(losses) / jnp.maximum(jnp.sum(present), 1)
  return loss, num_right / jnp.maximum(num_counted, 1)


def count_right(
  task: task_lib.GeneralizationTask, logits: jax.Array, target: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Returns how many output symbols are right, and of how many that count."""
  mask = task.accuracy_mask(target) * data.present(target)
  return jnp.sum(mask * task.accuracy_fn(logits, target)), jnp.sum(mask)


def make_step(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  source: data.Source,
  model: models.Model,
  mesh: jax.sharding.Mesh,
  width: int,
  min_length: int = 1,
) -> Callable[[State, Runs, Any], State]:
  """Returns the step of a bucket: (state, runs, host data) -> state.

  Args:
    experiment: What to train.
    task: Its task.
    source: Of its batches.
    model: Its model.
    mesh: Of `devices.make_mesh`.
    width: What strings are padded to.
    min_length: No string of the bucket is shorter.
  """
  optimizer = _optimizer()
  schedule = builders.make_schedule(experiment)

  def loss_fn(params, rng, host_data):
    sample_rng, depth_rng, dropout_rng = jax.random.split(rng, 3)
    tokens, target = devices.divided(
      mesh, source.batch(sample_rng, host_data, width)
    )
    extra_levels = 0
    if experiment.max_extra_levels:
      extra_levels = jax.random.randint(
        depth_rng, (), 0, experiment.max_extra_levels + 1
      )
    logits = model.apply(
      params,
      tokens,
      target,
      dropout_rng,
      extra_levels,
      min_length=min_length,
    )
    return loss_and_accuracy(task, logits, target)

  def step_run(state: State, run: Runs, step, host_data) -> State:
    rng = jax.random.fold_in(jax.random.key(run.seed), step)
    (loss, accuracy), grads = jax.value_and_grad(loss_fn, has_aux=True)(
      state.params, rng, host_data
    )
    updates, new_optimizer = optimizer.update(grads, state.optimizer)
    rate = run.learning_rate * schedule(step)
    new_params = jax.tree.map(lambda p, u: p - rate * u, state.params, updates)
    # Clipping makes an update finite if the gradient is.
    is_finite = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(grads))
    goes_on = is_finite & (state.diverged_at < 0)

    def kept(new, old):
      return jax.tree.map(lambda n, o: jnp.where(goes_on, n, o), new, old)

    return state.replace(
      params=kept(new_params, state.params),
      optimizer=kept(new_optimizer, state.optimizer),
      loss_sum=state.loss_sum + loss,
      accuracy_sum=state.accuracy_sum + accuracy,
      diverged_at=jnp.where(
        is_finite | (state.diverged_at >= 0), state.diverged_at, step
      ),
    )

  def train_step(state: State, runs: Runs, host_data: Any) -> State:
    axes = State(None, 0, 0, None, 0, 0, 0)
    new = jax.vmap(
      step_run,
      in_axes=(axes, 0, None, source.run_axis),
      out_axes=axes,
      spmd_axis_name='run',
    )(state, runs, state.step, host_data)
    return new.replace(step=state.step + 1, num_summed=state.num_summed + 1)

  return train_step


def _lengths(
  experiment: config_lib.Experiment, first_step: int
) -> Iterator[tuple[int, int]]:
  """Yields the number and the string length of each step still to do."""
  curriculum = builders.make_curriculum(experiment)
  for step in range(first_step, experiment.training_steps):
    yield step, curriculum.sample_sequence_length(step)


def train(
  experiment: config_lib.Experiment,
  workdir: str,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  runs: Sequence[config_lib.Run] | None = None,
  stop_at: float = math.inf,
  what: str = 'Train',
  steps_after: int = 0,
) -> State:
  """Trains, going on from the newest good checkpoint.

  Args:
    experiment: What to train.
    workdir: A folder that `config.claim_workdir` accepted.
    task: The experiment's task.
    model: The experiment's model.
    runs: The R runs; by default the one that the experiment is.
    stop_at: Value of `time.monotonic()` at which to save and stop.
    what: Stands before the progress bar.
    steps_after: Steps that others will do afterwards, for the time left.

  Returns:
    The state after the last step.

  Raises:
    DivergedError: If every run diverged.
    StoppedError: If SIGTERM or SIGINT came, or the time was over; the state is
      saved then.
    OSError: If a checkpoint cannot be written or none can be read.
  """
  widths = builders.bucket_widths(
    experiment, task, model, experiment.sequence_length
  )
  source = data.make_source(task, experiment.batch_size, widths)
  state = init_state(experiment, model, runs)
  runs = make_runs(runs or config_lib.runs_of(experiment))
  mesh = devices.make_mesh(len(runs.seed), experiment.batch_size)
  runs_R = devices.put(mesh, runs)
  steps = programs.Programs(
    'the training',
    lambda width: make_step(
      experiment,
      task,
      source,
      model,
      mesh,
      width,
      buckets.shortest_in(width, widths),
    ),
    donate_argnums=0,
    out_shardings=_state_shardings(mesh),
  )
  forget_sums = jax.jit(
    _without_sums, donate_argnums=0, out_shardings=_state_shardings(mesh)
  )
  with contextlib.ExitStack() as stack:
    checkpoints = checkpoints_lib.Checkpoints(workdir)
    stack.callback(checkpoints.close)
    first_step, state = checkpoints.resume(state, experiment.training_steps)
    if first_step >= experiment.training_steps:
      return state
    metrics = metrics_lib.Metrics(workdir, first_step)
    stack.callback(metrics.close)
    bar = _Bar(
      stack.enter_context(
        progress.bar(experiment.training_steps, first_step, what, 'step')
      ),
      len(runs.seed),
      steps_after,
    )
    received = stack.enter_context(caught_signals())
    reason_to_stop = ReasonToStop(received, stop_at, first_step)
    bar_updated = time.perf_counter()
    num_compiled = 0
    pace = Pace()
    stream = source.stream(runs.seed.tolist(), _lengths(experiment, first_step))
    stack.callback(stream.close)
    for step, (width, host_data) in enumerate(stream, first_step):
      if step == first_step and source.run_axis is None:
        # What the host samples has another shape in each bucket.
        others = _widths_drawn(experiment, task, widths) - {width}
        steps.prepare([width, *sorted(others)], state, runs_R, host_data)
      pace.start()
      state = steps(width, state, runs_R, host_data)
      pace.wait(state.step)
      if steps.num_compiled > num_compiled:
        num_compiled = steps.num_compiled
        bar.unpause()  # Compiling says nothing about the time left.
      done = step + 1
      is_last = done == experiment.training_steps
      stop = reason_to_stop(done)
      if stop:
        progress.say(f'Told to stop: saving step {done}, then exiting.')
      if is_due(done, experiment.log_every) or is_last:
        _log(metrics, bar, state, done)
        state = forget_sums(state)
      if stop or is_last or is_due(done, experiment.checkpoint_every):
        raise_if_diverged(state)
        checkpoints.save(done, state)
      raise_if_stopped(stop, done)
      if is_last or time.perf_counter() - bar_updated > BAR_INTERVAL_S:
        state.step.block_until_ready()
        bar.update(done)
        bar_updated = time.perf_counter()
    # The state is saved; what comes next need not be done now.
    if stop := devices.largest(received[0] if received else 0):
      raise RunInterruptedError(stop, experiment.training_steps)
  return state


def _widths_drawn(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  widths: Sequence[int],
) -> set[int]:
  """Returns the widths of the buckets into which lengths can fall."""
  curriculum = builders.make_curriculum(experiment)
  shortest, longest = curriculum.bounds(experiment.training_steps)
  return {
    buckets.bucket_of(data.input_length(task, length), widths)
    for length in range(shortest, longest + 1)
  }


def is_due(step: int, every: int) -> bool:
  """Whether a step is one of every so many; never, if that is 0."""
  return every > 0 and step % every == 0


class ReasonToStop:
  """The number of a signal, `_TIME_IS_OVER`, or 0 for none, at each step.

  All processes get the same: one of them may have been told, others not. They
  ask each other about once a second, after a number of steps that they also
  agree on.
  """

  def __init__(self, received: list[int], stop_at: float, step: int):
    self._received = received
    self._stop_at = stop_at
    self._asked_at = step, time.monotonic()
    self._ask_at = step + 1

  def __call__(self, step: int) -> int:
    """Returns the reason after a step."""
    now = time.monotonic()
    reason = self._received[0] if self._received else 0
    if not reason and now > self._stop_at:
      reason = _TIME_IS_OVER
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


class Pace:
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


def raise_if_stopped(reason: int, step: int) -> None:
  """Ends training at a saved step if there is a reason to."""
  if reason == _TIME_IS_OVER:
    raise OutOfTimeError(step)
  if reason:
    raise RunInterruptedError(reason, step)


class _Bar:
  """A progress bar of the steps of some runs."""

  def __init__(self, bar: tqdm.tqdm, num_runs: int, steps_after: int):
    self._bar = bar
    self._num_runs = num_runs
    self._steps_after = steps_after
    self._text = ''

  def unpause(self) -> None:
    """Leaves the time since the last update out of the rate."""
    self._bar.unpause()

  def update(self, step: int, text: str | None = None) -> None:
    """Shows that a step is done, and a new text."""
    self._text = self._text if text is None else text
    parts = [self._text] if self._text else []
    rate = self._bar.format_dict['rate']
    if rate and self._num_runs > 1:
      parts.append(f'{rate * self._num_runs:.0f} run-steps/s')
    if rate and self._steps_after:
      left = (self._bar.total - step + self._steps_after) / rate
      parts.append(f'all cells {self._bar.format_interval(left)} left')
    self._bar.set_postfix_str(', '.join(parts), refresh=False)
    self._bar.update(step - self._bar.n)


def _without_sums(state: State) -> State:
  """Starts anew to sum the loss and the accuracy."""
  return state.replace(
    num_summed=jnp.zeros_like(state.num_summed),
    loss_sum=jnp.zeros_like(state.loss_sum),
    accuracy_sum=jnp.zeros_like(state.accuracy_sum),
  )


def _log(metrics, bar: _Bar, state: State, step: int) -> None:
  """Writes and shows the means since the last logging point."""
  raise_if_diverged(state)
  num_summed, loss_R, accuracy_R, diverged_at_R = devices.fetch(
    (state.num_summed, state.loss_sum, state.accuracy_sum, state.diverged_at)
  )
  loss_R, accuracy_R = loss_R / num_summed, accuracy_R / num_summed
  goes_on_R = diverged_at_R < 0
  for run in np.flatnonzero(goes_on_R).tolist():
    metrics.write(
      step, run, loss=float(loss_R[run]), accuracy=float(accuracy_R[run])
    )
  metrics.flush()
  text = (
    f'loss {loss_R[goes_on_R].mean():.4f},'
    f' accuracy {accuracy_R[goes_on_R].mean():.3f}'
  )
  if not goes_on_R.all():
    text += f', {(~goes_on_R).sum()} diverged'
  bar.update(step, text)


def raise_if_diverged(state: State) -> None:
  """Ends training if every run has diverged."""
  if (devices.fetch(state.diverged_at) >= 0).all():
    raise DivergedError(state)


@contextlib.contextmanager
def caught_signals():
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
