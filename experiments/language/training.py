"""The training loop of the language models.

As `experiments.formal.training`, for one model that may be large: the mesh is
another, and the data come from files.
"""

from collections.abc import Callable
import contextlib
import functools
import math
import time
from typing import Any

import chex
from flax import linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import optax

from experiments.engine import checkpoints as checkpoints_lib
from experiments.engine import clock, devices, progress
from experiments.engine import metrics as metrics_lib
from experiments.formal import builders, training
from experiments.language import config as config_lib
from experiments.language import sharding
from experiments.text import loading

# Of Adam. The paper names no others; nanoGPT, which it used, has these.
_B1, _B2 = 0.9, 0.95
# Names of the parameters that weight decay shrinks.
_DECAYED = ('kernel', 'embedding')
# Seed of the choice of what to validate on, the same for all runs.
_VALIDATION_SEED = 0


@flax.struct.dataclass
class State:
  """Everything that the rest of training depends on.

  Attributes:
    step: Steps done, which is also the position in the data; int32 [].
    params: Parameters.
    optimizer: Of Adam, the clipping and the weight decay.
    num_summed: Steps since the last logging point; int32 [].
    loss_sum: Of those steps; [].
    diverged_at: The step whose loss or gradient was not finite, since which
      nothing has changed any more; -1 before that. int32 [].
  """

  step: jax.Array
  params: chex.ArrayTree
  optimizer: optax.OptState
  num_summed: jax.Array
  loss_sum: jax.Array
  diverged_at: jax.Array


def _optimizer(
  experiment: config_lib.LanguageExperiment,
) -> optax.GradientTransformation:
  """AdamW behind clipping; the learning rate is applied by the step."""
  return optax.chain(
    optax.clip_by_global_norm(training.MAX_GRAD_NORM),
    optax.scale_by_adam(_B1, _B2),
    # As in nanoGPT: biases, norms and what positions add do not decay.
    optax.add_decayed_weights(
      experiment.weight_decay,
      mask=lambda params: jax.tree_util.tree_map_with_path(
        lambda path, x: path[-1].key in _DECAYED, params
      ),
    ),
  )


def _init(experiment: config_lib.LanguageExperiment, seed: jax.Array) -> State:
  model = config_lib.make_model(experiment)
  params = model.init(jax.random.key(seed), jnp.zeros((1, 1), jnp.int32))
  return State(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer=_optimizer(experiment).init(params),
    num_summed=jnp.zeros((), jnp.int32),
    loss_sum=jnp.zeros(()),
    diverged_at=jnp.full((), -1, jnp.int32),
  )


def state_shapes(
  experiment: config_lib.LanguageExperiment, mesh: jax.sharding.Mesh
) -> State:
  """Returns what a state's arrays are like, and where they lie."""
  shapes = jax.eval_shape(
    functools.partial(_init, experiment), jax.ShapeDtypeStruct((), jnp.uint32)
  )
  return devices.with_shardings(shapes, sharding.of_state(mesh, shapes))


def init_state(
  experiment: config_lib.LanguageExperiment, mesh: jax.sharding.Mesh
) -> State:
  """Returns the state before the first step."""
  init = jax.jit(
    functools.partial(_init, experiment),
    out_shardings=sharding.of_state(mesh, state_shapes(experiment, mesh)),
  )
  return init(jnp.uint32(experiment.model_init_seed))


def num_parameters(params: chex.ArrayTree) -> int:
  """Returns how many parameters a model has."""
  return sum(x.size for x in jax.tree.leaves(params))


def _summed_loss(model: nn.Module, params: Any, tokens_BxS: jax.Array):
  """Returns the sum of the cross-entropies, nats, of all targets."""
  targets_BxT = tokens_BxS[:, 1:]
  losses_BxT = model.apply(
    # What stands after the end of the text, no target sees.
    params,
    jnp.maximum(tokens_BxS[:, :-1], 0),
    targets_BxT,
    method='losses',
  )
  return losses_BxT.sum(where=targets_BxT >= 0)


def _num_targets(tokens_BxS: jax.Array):
  """Returns how many tokens are to be predicted; -1 is none."""
  return (tokens_BxS[:, 1:] >= 0).sum()


def train_step(
  experiment: config_lib.LanguageExperiment,
  mesh: jax.sharding.Mesh,
  state: State,
  tokens_BxS: jax.Array,
) -> State:
  """Returns the state after a step.

  Args:
    experiment: What is trained.
    mesh: On which.
    state: Before.
    tokens_BxS: Strings of T + 1 = S tokens, -1 after the end of the text; B, in
      `accumulation_steps` parts.
  """
  model = config_lib.make_model(experiment)
  num_parts = experiment.accumulation_steps
  num_targets = _num_targets(tokens_BxS)
  # The parts take turns, so that every device has the same share of each.
  tokens_BxPxS = tokens_BxS.reshape(-1, num_parts, tokens_BxS.shape[-1])

  def add_part(sums, i):
    tokens = jax.lax.with_sharding_constraint(
      jax.lax.dynamic_index_in_dim(tokens_BxPxS, i, 1, keepdims=False),
      sharding.of_batch(mesh),
    )
    found = jax.value_and_grad(
      lambda p: _summed_loss(model, p, tokens) / num_targets
    )(state.params)
    return jax.tree.map(jnp.add, sums, found), None

  zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, state.params))
  (loss, grads), _ = jax.lax.scan(add_part, zeros, jnp.arange(num_parts))
  updates, optimizer = _optimizer(experiment).update(
    grads, state.optimizer, state.params
  )
  schedule = builders.make_schedule(experiment)
  rate = experiment.learning_rate * schedule(state.step)
  params = jax.tree.map(lambda p, u: p - rate * u, state.params, updates)
  is_finite = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(grads))
  goes_on = is_finite & (state.diverged_at < 0)

  def kept(new, old):
    return jax.tree.map(lambda n, o: jnp.where(goes_on, n, o), new, old)

  return State(
    step=state.step + 1,
    params=kept(params, state.params),
    optimizer=kept(optimizer, state.optimizer),
    num_summed=state.num_summed + 1,
    loss_sum=state.loss_sum + loss,
    diverged_at=jnp.where(
      is_finite | (state.diverged_at >= 0), state.diverged_at, state.step
    ),
  )


def jitted_step(
  experiment: config_lib.LanguageExperiment,
  mesh: jax.sharding.Mesh,
  state: State,
) -> Callable[[State, jax.Array], State]:
  """Returns `train_step` as it is run: a state like this one, in place."""
  step = functools.partial(train_step, experiment, mesh)
  return _in_place(step, mesh, state)


def _in_place(function, mesh, state):
  return jax.jit(
    function, donate_argnums=0, out_shardings=sharding.of_state(mesh, state)
  )


def train(
  experiment: config_lib.LanguageExperiment,
  workdir: str,
  text: loading.Text,
  time_budget_s: float = math.inf,
) -> State:
  """Trains, going on from the newest good checkpoint.

  Args:
    experiment: What to train, as `run.on_text` returns it.
    workdir: A folder that `experiments.formal.config.claim_workdir` accepted.
    text: What to train on.
    time_budget_s: Seconds of training after which to save and stop.

  Returns:
    The state after the last step.

  Raises:
    ValueError: If the batch cannot be divided among the devices.
    training.DivergedError: If the loss is not finite.
    training.StoppedError: If SIGTERM or SIGINT came, or the time was over; the
      state is saved then.
    OSError: If a file cannot be read or written.
  """
  mesh = make_mesh(experiment)
  state = init_state(experiment, mesh)
  batches = _batches(experiment, text.streams['train'], experiment.seed)
  step_fn = jitted_step(experiment, mesh, state)
  forget_sums = _in_place(_without_sums, mesh, state)
  validate = _make_validation(experiment, mesh, text)
  with contextlib.ExitStack() as stack:
    checkpoints = checkpoints_lib.Checkpoints(workdir)
    stack.callback(checkpoints.close)
    first_step, state = checkpoints.resume(state, experiment.training_steps)
    if first_step >= experiment.training_steps:
      return state
    metrics = metrics_lib.Metrics(workdir, first_step)
    stack.callback(metrics.close)
    stream = loading.prefetched(batches, first_step)
    millions = num_parameters(state.params) / 1e6
    with progress.timed(f'Compiling a step of {millions:.1f} M parameters'):
      tokens = sharding.put_batch(mesh, batches[first_step])
      step_fn = step_fn.lower(state, tokens).compile()
    bar = _Bar(experiment, first_step)
    stack.callback(bar.close)
    received = stack.enter_context(training.caught_signals())
    reason_to_stop = training.ReasonToStop(
      received, time.monotonic() + time_budget_s, first_step
    )
    bar_updated = time.perf_counter()
    pace = training.Pace()
    stack.enter_context(clock.running(workdir))
    for done in range(first_step + 1, experiment.training_steps + 1):
      tokens = sharding.put_batch(mesh, next(stream))
      pace.start()
      state = step_fn(state, tokens)
      pace.wait(state.step)
      is_last = done == experiment.training_steps
      stop = reason_to_stop(done)
      if stop:
        progress.say(f'Told to stop: saving step {done}, then exiting.')
      if training.is_due(done, experiment.log_every) or is_last:
        training.raise_if_diverged(state)
        loss_sum, num_summed = devices.fetch((state.loss_sum, state.num_summed))
        loss = float(loss_sum / num_summed)
        metrics.write(done, 0, loss=loss)
        metrics.flush()
        bar.update(done, loss=loss)
        state = forget_sums(state)
      if training.is_due(done, experiment.validate_every) or is_last:
        training.raise_if_diverged(state)
        loss = validate(state.params)
        metrics.write(done, 0, validation_loss=loss)
        metrics.flush()
        bar.update(done, validation=loss)
      if stop or is_last or training.is_due(done, experiment.checkpoint_every):
        training.raise_if_diverged(state)
        checkpoints.save(done, state)
      training.raise_if_stopped(stop, done)
      if time.perf_counter() - bar_updated > training.BAR_INTERVAL_S:
        state.step.block_until_ready()
        bar.update(done)
        bar_updated = time.perf_counter()
    # The state is saved; what comes next need not be done now.
    if stop := devices.largest(received[0] if received else 0):
      raise training.RunInterruptedError(stop, experiment.training_steps)
  return state


def _without_sums(state: State) -> State:
  """Starts anew to sum the loss."""
  return state.replace(
    num_summed=jnp.zeros_like(state.num_summed),
    loss_sum=jnp.zeros_like(state.loss_sum),
  )


def make_mesh(
  experiment: config_lib.LanguageExperiment,
) -> jax.sharding.Mesh:
  """Returns the mesh on which an experiment trains.

  Raises:
    ValueError: If the batch cannot be divided among the devices.
  """
  mesh = sharding.make_mesh(experiment.fsdp)
  part = experiment.batch_size // experiment.accumulation_steps
  if part % mesh.size:
    raise ValueError(
      f'batch_size / accumulation_steps, {part}, must be a multiple of the'
      f' number of devices, {mesh.size}.'
    )
  return mesh


def _batches(experiment, stream: loading.Stream, seed: int):
  """Returns this process's part of every batch."""
  return loading.training_batches(
    stream,
    experiment.sequence_length,
    experiment.batch_size,
    seed,
    jax.process_index(),
    jax.process_count(),
  )


def _make_validation(experiment, mesh, text: loading.Text):
  """Returns a function from parameters to the validation loss."""
  model = config_lib.make_model(experiment)
  batches = _batches(experiment, text.streams['validation'], _VALIDATION_SEED)
  num_parts = experiment.accumulation_steps
  # No window twice, if there are enough for one batch.
  num_windows = loading.num_windows(
    text.streams['validation'], experiment.sequence_length
  )
  num_batches = min(
    experiment.validation_batches,
    max(num_windows // experiment.batch_size, 1),
  )

  @jax.jit
  def loss_fn(params, tokens_BxS):
    tokens_PxBxS = tokens_BxS.reshape(-1, num_parts, tokens_BxS.shape[-1])
    parts = jnp.moveaxis(tokens_PxBxS, 1, 0)
    losses = jax.lax.map(lambda x: _summed_loss(model, params, x), parts)
    return losses.sum(), _num_targets(tokens_BxS)

  def validate(params) -> float:
    sums = [
      devices.fetch(loss_fn(params, sharding.put_batch(mesh, batches[i])))
      for i in range(num_batches)
    ]
    losses, numbers = zip(*sums, strict=True)
    return math.fsum(losses) / int(sum(numbers))

  return validate


class _Bar:
  """A progress bar that shows the losses and tokens per second."""

  def __init__(
    self, experiment: config_lib.LanguageExperiment, first_step: int
  ):
    self._bar = progress.bar(
      experiment.training_steps, first_step, 'Train', 'step'
    )
    self._tokens = experiment.batch_size * experiment.sequence_length
    self._losses: dict[str, float] = {}
    self.close = self._bar.close

  def update(self, step: int, **losses: float) -> None:
    """Shows that a step is done, and new losses."""
    self._losses |= losses
    parts = [f'{name} {loss:.4f}' for name, loss in self._losses.items()]
    rate = self._bar.format_dict['rate']
    if rate:
      parts.append(f'{rate * self._tokens:,.0f} tokens/s')
    self._bar.set_postfix_str(', '.join(parts), refresh=False)
    self._bar.update(step - self._bar.n)
