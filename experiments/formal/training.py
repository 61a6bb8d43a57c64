"""Training on a formal language: the step, and what the loop runs on.

State has a leading axis of runs, R, and every step maps over it, so that many
runs that differ in seed or learning rate train as one. A run's numbers come
from its own seed and the step alone.
"""

from collections.abc import Callable, Sequence
import functools
import itertools
import math
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tqdm

from experiments.engine import devices, loop, optimization, programs
from experiments.engine import experiment as experiment_lib
from experiments.formal import (
  blame,
  buckets,
  builders,
  data,
  models,
  strings,
)
from experiments.formal import config as config_lib
from experiments.formal import curriculum as curriculum_lib
from tasks import task as task_lib

_CONSTANT = optax.constant_schedule(1.0)


@flax.struct.dataclass
class Runs:
  """What tells runs apart; every leaf is [R]."""

  seed: jax.Array
  model_init_seed: jax.Array
  learning_rate: jax.Array


@flax.struct.dataclass
class State(optimization.State):
  """Of R runs.

  Attributes:
    accuracy_sum: Of the steps since the last logging point, [R].
  """

  accuracy_sum: jax.Array


def make_runs(runs: Sequence[experiment_lib.Run]) -> Runs:
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
    optax.clip_by_global_norm(optimization.MAX_GRAD_NORM),
    optax.scale_by_adam(),
  )


def _by_part(shared: Any, by_run: Any) -> State:
  """Returns one thing for what all runs share, another for what each has."""
  return State(
    step=shared,
    params=by_run,
    optimizer=by_run,
    num_summed=shared,
    loss_sum=by_run,
    diverged_at=by_run,
    accuracy_sum=by_run,
  )


def _state_shardings(mesh: jax.sharding.Mesh) -> State:
  """Returns where each part of the state lies."""
  return _by_part(devices.sharding(mesh), devices.sharding(mesh, 'run'))


def _init(model: models.Model, seeds_R: jax.Array) -> State:
  def init_run(seed):
    params = model.init(jax.random.key(seed))
    return params, _optimizer().init(params)

  params, optimizer = jax.vmap(init_run)(seeds_R)
  return State(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer=optimizer,
    num_summed=jnp.zeros((), jnp.int32),
    loss_sum=jnp.zeros(seeds_R.shape),
    diverged_at=jnp.full(seeds_R.shape, -1, jnp.int32),
    accuracy_sum=jnp.zeros(seeds_R.shape),
  )


def init_state(
  experiment: config_lib.Experiment,
  model: models.Model,
  runs: Sequence[experiment_lib.Run] | None = None,
) -> State:
  """Returns the state before the first step.

  Args:
    experiment: What is trained.
    model: Its model.
    runs: The R runs; by default the one that the experiment is.
  """
  runs = make_runs(experiment.runs(runs))
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
  with blame.blamed(blame.method(task, 'pointwise_loss_fn')):
    losses = task.pointwise_loss_fn(logits, target) * present[..., None]
  num_right, num_counted = count_right(task, logits, target)
  # A batch may have nothing to answer: then both are 0.
  loss = jnp.sum(losses) / jnp.maximum(jnp.sum(present), 1)
  return loss, num_right / jnp.maximum(num_counted, 1)


def counted(task: task_lib.GeneralizationTask, target: jax.Array) -> jax.Array:
  """Returns 1.0 for each output symbol that counts, else 0.0."""
  with blame.blamed(blame.method(task, 'accuracy_mask')):
    return task.accuracy_mask(target) * data.present(target)


def count_right(
  task: task_lib.GeneralizationTask, logits: jax.Array, target: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Returns how many output symbols are right, and of how many that count."""
  mask = counted(task, target)
  return jnp.sum(mask * is_right(task, logits, target)), jnp.sum(mask)


def is_right(
  task: task_lib.GeneralizationTask, logits: jax.Array, target: jax.Array
) -> jax.Array:
  """Returns 1.0 for each output symbol that is right, else 0.0.

  What has a logit that is no number is wrong: NaN is the largest to `argmax`.
  """
  with blame.blamed(blame.method(task, 'accuracy_fn')):
    found = task.accuracy_fn(logits, target)
  return jnp.where(jnp.isnan(logits).any(-1), 0.0, found)


def make_step(
  task: task_lib.GeneralizationTask,
  source: data.Source,
  model: models.Model,
  mesh: jax.sharding.Mesh,
  width: int,
  schedule: Callable[[jax.Array], jax.Array] = _CONSTANT,
  max_extra_levels: int = 0,
  min_length: int = 1,
  node_weight: float = 0.0,
) -> Callable[[State, Runs, Any], State]:
  """Returns the step of a bucket: (state, runs, host data) -> state.

  Args:
    task: What to train on.
    source: Of its batches.
    model: What to train.
    mesh: Of `devices.make_mesh`.
    width: What strings are padded to.
    schedule: Factor of the learning rate at a step.
    max_extra_levels: Each step runs 0 to this many levels more.
    min_length: No string of the bucket is shorter.
    node_weight: Of the loss of the tree's nodes, which is in no number that is
      logged, as is no penalty of the model.
  """
  optimizer = _optimizer()

  def loss_fn(params, rng, step, host_data):
    sample_rng, depth_rng, dropout_rng = jax.random.split(rng, 3)
    tokens, target = devices.divided(
      mesh, source.batch(sample_rng, host_data, width)
    )
    extra_levels = 0
    if max_extra_levels:
      extra_levels = jax.random.randint(depth_rng, (), 0, max_extra_levels + 1)
    apply = model.with_nodes if node_weight else model.apply
    logits = apply(
      params,
      tokens,
      target,
      dropout_rng,
      extra_levels,
      min_length=min_length,
    )
    nodes = 0.0
    if node_weight:
      logits, nodes = logits
    loss, accuracy = loss_and_accuracy(task, logits, target)
    penalized = loss + node_weight * nodes
    if model.penalty is not None:
      penalized += model.penalty(params, depth_rng, step)
    return penalized, (loss, accuracy)

  def step_run(state: State, run: Runs, step, host_data) -> State:
    rng = jax.random.fold_in(jax.random.key(run.seed), step)
    (_, (loss, accuracy)), grads = jax.value_and_grad(loss_fn, has_aux=True)(
      state.params, rng, step, host_data
    )
    rate = run.learning_rate * schedule(step)
    new = optimization.updated(state, optimizer, rate, step, loss, grads)
    return new.replace(accuracy_sum=state.accuracy_sum + accuracy)

  def train_step(state: State, runs: Runs, host_data: Any) -> State:
    axes = _by_part(None, 0)
    step_runs = map_over_runs(
      step_run, (axes, 0, None, source.run_axis), axes, len(runs.seed)
    )
    return optimization.counted(step_runs(state, runs, state.step, host_data))

  return train_step


def map_over_runs(
  function: Callable[..., Any], in_axes: Any, out_axes: Any, num_runs: int
) -> Callable[..., Any]:
  """Returns a function of one run as one of all.

  Products that are batched over a single run are slower, and take longer to
  compile, than products.

  Args:
    function: Of one run.
    in_axes: As of `jax.vmap`: where arguments have the axis of runs, 0 or None.
    out_axes: Likewise of what it returns.
    num_runs: R.
  """
  if num_runs > 1:
    return jax.vmap(function, in_axes, out_axes, spmd_axis_name='run')

  def on_first(change, axes, tree):
    def of_branch(axis, branch):
      return branch if axis is None else jax.tree.map(change, branch)

    return jax.tree.map(of_branch, axes, tree, is_leaf=lambda x: x is None)

  def of_one_run(*args):
    args = on_first(lambda x: x[0], in_axes, args)
    return on_first(lambda x: x[None], out_axes, function(*args))

  return of_one_run


def train(
  experiment: config_lib.Experiment,
  workdir: str,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  runs: Sequence[experiment_lib.Run] | None = None,
  time_budget_s: float = math.inf,
  what: str = 'Train',
  steps_after: int = 0,
) -> State:
  """Trains, going on from the newest good checkpoint.

  Args:
    experiment: What to train.
    workdir: A folder that `workdir.claim` accepted.
    task: The experiment's task.
    model: The experiment's model.
    runs: The R runs; by default the one that the experiment is.
    time_budget_s: Seconds after which to save and stop.
    what: Stands before the progress bar.
    steps_after: Steps that others will do afterwards, for the time left.

  Returns:
    The state after the last step.

  Raises:
    loop.DivergedError: If every run diverged.
    stopping.StoppedError: If SIGTERM or SIGINT came, or the time was over; the
      state is saved then.
    OSError: If a checkpoint cannot be written or none can be read.
  """
  widths = builders.bucket_widths(
    experiment, task, model, experiment.sequence_length
  )
  source = data.make_source(
    strings.make_training_task(experiment, task),
    experiment.batch_size,
    widths,
  )
  state = init_state(experiment, model, runs)
  runs = make_runs(experiment.runs(runs))
  mesh = devices.make_mesh(len(runs.seed), experiment.batch_size)
  runs_R = devices.put(mesh, runs)
  curriculum = builders.make_curriculum(experiment)
  steps = programs.Programs(
    'the training of strings of up to {} symbols',
    lambda width: make_step(
      task,
      source,
      model,
      mesh,
      width,
      optimization.make_schedule(experiment),
      experiment.max_extra_levels,
      buckets.shortest_in(width, widths),
      experiment.node_weight,
    ),
    donate_argnums=0,
    out_shardings=_state_shardings(mesh),
  )

  def begin(state: State, first_step: int) -> loop.Work:
    left = range(first_step, experiment.training_steps)
    if source.run_axis is None:
      # What the host samples has another shape in each bucket.
      steps.prepare(
        _widths_drawn(curriculum, left, task, widths),
        state,
        runs_R,
        np.int32(0),
      )

    def step(state, item):
      width, host_data = item
      return steps(width, state, runs_R, host_data)

    lengths = ((i, curriculum.sample_sequence_length(i)) for i in left)
    return step, source.stream(runs.seed.tolist(), lengths)

  def describe_rate(rate: float, step: int) -> list[str]:
    parts = []
    if len(runs.seed) > 1:
      parts.append(f'{rate * len(runs.seed):.0f} run-steps/s')
    if steps_after:
      left = (experiment.training_steps - step + steps_after) / rate
      parts.append(f'all cells {tqdm.tqdm.format_interval(left)} left')
    return parts

  return loop.train(
    experiment,
    workdir,
    state,
    begin,
    time_budget_s=time_budget_s,
    what=what,
    describe_rate=describe_rate,
  )


def _widths_drawn(
  curriculum: curriculum_lib.Curriculum,
  steps: range,
  task: task_lib.GeneralizationTask,
  widths: Sequence[int],
) -> list[int]:
  """Returns the buckets into which lengths can fall, the first one's first."""
  lengths = sorted(curriculum.lengths(steps.stop))
  first = curriculum.sample_sequence_length(steps.start)
  found = [
    buckets.bucket_of(data.input_length(task, length), widths)
    for length in itertools.chain([first], lengths)
  ]
  return list(dict.fromkeys(found))
