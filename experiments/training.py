"""The training loop: the device samples, steps and counts; the host waits.

State has a leading axis of runs, R, and every step maps over it, so that many
runs that differ in seed or learning rate train as one. A run's numbers come
from its own seed and the step alone.
"""

from collections.abc import Callable, Iterator
import contextlib
import signal
import time
from typing import Any

import chex
import flax
import jax
import jax.numpy as jnp
import optax

from experiments import buckets, builders, data, models, programs, progress
from experiments import checkpoints as checkpoints_lib
from experiments import config as config_lib
from experiments import metrics as metrics_lib
from tasks import task as task_lib

_MAX_GRAD_NORM = 1.0
# Seconds between two updates of the progress bar, each of which waits for the
# device.
_BAR_INTERVAL_S = 1.0


class DivergedError(Exception):
  """The loss or the parameters were not finite."""


class RunInterruptedError(Exception):
  """SIGTERM or SIGINT came, and the state is saved."""

  def __init__(self, signal_number: int, step: int):
    self.signal_number = signal_number
    name = signal.Signals(signal_number).name
    super().__init__(
      f'{name}: saved step {step}. Run the same command again to go on.'
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


def make_runs(experiment: config_lib.Experiment) -> Runs:
  """Returns the one run that an experiment is."""
  return Runs(
    seed=jnp.array([experiment.seed], jnp.uint32),
    model_init_seed=jnp.array([experiment.model_init_seed], jnp.uint32),
    learning_rate=jnp.array([experiment.learning_rate], jnp.float32),
  )


def _optimizer() -> optax.GradientTransformation:
  """Adam behind clipping; the learning rate is applied by the step."""
  return optax.chain(
    optax.clip_by_global_norm(_MAX_GRAD_NORM), optax.scale_by_adam()
  )


def init_state(model: models.Model, runs: Runs) -> State:
  """Returns the state before the first step."""

  def init_run(seed):
    params = model.init(jax.random.key(seed))
    return params, _optimizer().init(params)

  params, optimizer = jax.jit(jax.vmap(init_run))(runs.model_init_seed)
  zeros_R = jnp.zeros(runs.seed.shape)
  return State(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer=optimizer,
    num_summed=jnp.zeros((), jnp.int32),
    loss_sum=zeros_R,
    accuracy_sum=jnp.zeros_like(zeros_R),
    diverged_at=jnp.full(zeros_R.shape, -1, jnp.int32),
  )


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
  width: int,
  min_length: int = 1,
) -> Callable[[State, Runs, Any], State]:
  """Returns the step of a bucket: (state, runs, host data) -> state.

  Args:
    experiment: What to train.
    task: Its task.
    source: Of its batches.
    model: Its model.
    width: What strings are padded to.
    min_length: No string of the bucket is shorter.
  """
  optimizer = _optimizer()
  schedule = builders.make_schedule(experiment)

  def loss_fn(params, rng, host_data):
    sample_rng, depth_rng, dropout_rng = jax.random.split(rng, 3)
    tokens, target = source.batch(sample_rng, host_data, width)
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
      step_run, in_axes=(axes, 0, None, source.run_axis), out_axes=axes
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
) -> chex.ArrayTree:
  """Trains, going on from the newest good checkpoint.

  Args:
    experiment: What to train.
    workdir: A folder that `config.claim_workdir` accepted.
    task: The experiment's task.
    model: The experiment's model.

  Returns:
    The parameters, [R, ...].

  Raises:
    DivergedError: If the loss is not finite.
    RunInterruptedError: If SIGTERM or SIGINT came; the state is saved then.
    OSError: If a checkpoint cannot be written or none can be read.
  """
  widths = builders.bucket_widths(
    experiment, task, model, experiment.sequence_length
  )
  source = data.make_source(task, experiment.batch_size, widths)
  runs = make_runs(experiment)
  state = init_state(model, runs)
  steps = programs.Programs(
    'the training',
    lambda width: make_step(
      experiment,
      task,
      source,
      model,
      width,
      buckets.shortest_in(width, widths),
    ),
    donate_argnums=0,
  )
  with contextlib.ExitStack() as stack:
    checkpoints = checkpoints_lib.Checkpoints(workdir)
    stack.callback(checkpoints.close)
    restored = checkpoints.restore(state)
    first_step = 0
    if restored is not None:
      first_step, state = restored
      if first_step >= experiment.training_steps:
        progress.say(f'Already trained to step {first_step}.')
        return state.params
      progress.say(f'Resuming from step {first_step}.')
    metrics = metrics_lib.Metrics(workdir, first_step)
    stack.callback(metrics.close)
    bar = stack.enter_context(
      progress.bar(experiment.training_steps, first_step, 'Train', 'step')
    )
    received = stack.enter_context(_caught_signals())
    bar_updated = time.perf_counter()
    num_compiled = 0
    stream = source.stream(runs.seed.tolist(), _lengths(experiment, first_step))
    stack.callback(stream.close)
    for step, (width, host_data) in enumerate(stream, first_step):
      state = steps(width, state, runs, host_data)
      if steps.num_compiled > num_compiled:
        num_compiled = steps.num_compiled
        bar.unpause()  # Compiling says nothing about the time left.
      done = step + 1
      is_last = done == experiment.training_steps
      if received:
        name = signal.Signals(received[0]).name
        progress.say(f'{name}: saving step {done}, then exiting.')
      if _is_due(done, experiment.log_every) or is_last:
        state = _log(metrics, bar, state, done)
      if received or is_last or _is_due(done, experiment.checkpoint_every):
        _check_finite(state)
        metrics.flush()
        checkpoints.save(done, state)
      if received:
        raise RunInterruptedError(received[0], done)
      if is_last or time.perf_counter() - bar_updated > _BAR_INTERVAL_S:
        state.step.block_until_ready()
        bar.update(done - bar.n)
        bar_updated = time.perf_counter()
  return state.params


def _is_due(step: int, every: int) -> bool:
  return every > 0 and step % every == 0


def _log(metrics, bar, state: State, step: int) -> State:
  """Writes the means since the last logging point, and starts anew."""
  _check_finite(state)
  num_summed = int(state.num_summed)
  sums = jax.device_get((state.loss_sum, state.accuracy_sum))
  for run, (loss_sum, accuracy_sum) in enumerate(zip(*sums, strict=True)):
    loss = float(loss_sum) / num_summed
    accuracy = float(accuracy_sum) / num_summed
    metrics.write(step, run, loss=loss, accuracy=accuracy)
    bar.set_postfix_str(
      f'loss {loss:.4f}, accuracy {accuracy:.3f}', refresh=False
    )
  bar.update(step - bar.n)
  return state.replace(
    num_summed=jnp.zeros_like(state.num_summed),
    loss_sum=jnp.zeros_like(state.loss_sum),
    accuracy_sum=jnp.zeros_like(state.accuracy_sum),
  )


def _check_finite(state: State) -> None:
  """Raises DivergedError if every run has diverged."""
  diverged_at = jax.device_get(state.diverged_at)
  if (diverged_at >= 0).all():
    raise DivergedError(
      'The loss or its gradient is not finite at step'
      f' {diverged_at.max() + 1}.'
      ' The last good checkpoint is kept; try a lower --learning_rate in'
      ' another --workdir.'
    )


@contextlib.contextmanager
def _caught_signals():
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
