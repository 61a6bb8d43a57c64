"""The state of a training, and how a gradient changes it."""

from collections.abc import Callable

import chex
import flax
import jax
import jax.numpy as jnp
import optax

from experiments.engine import experiment as experiment_lib

MAX_GRAD_NORM = 1.0


@flax.struct.dataclass
class State:
  """Everything that the rest of training depends on.

  Where R runs train as one, what is said to be [R] has a leading axis of runs;
  else it is a scalar. A subclass adds sums of what else is logged, whose names
  end in `_sum`.

  Attributes:
    step: Steps done, which is also the position in the data; int32 [].
    params: Parameters, [R, ...].
    optimizer: Of Adam, the clipping and the weight decay, [R, ...].
    num_summed: Steps since the last logging point; int32 [].
    loss_sum: Of those steps, [R].
    diverged_at: The step whose loss or gradient was not finite, since which
      nothing has changed any more; -1 before that. int32 [R].
  """

  step: jax.Array
  params: chex.ArrayTree
  optimizer: optax.OptState
  num_summed: jax.Array
  loss_sum: jax.Array
  diverged_at: jax.Array


def make_schedule(
  experiment: experiment_lib.BaseExperiment,
) -> Callable[[jax.Array], jax.Array]:
  """Returns the factor of the learning rate at a step, in [0, 1]."""
  after = experiment.training_steps - experiment.warmup_steps
  schedule = {
    'constant': optax.constant_schedule(1.0),
    'cosine': optax.cosine_decay_schedule(1.0, max(after, 1)),
  }[experiment.schedule]
  if not experiment.warmup_steps:
    return schedule
  warmup = optax.linear_schedule(0.0, 1.0, experiment.warmup_steps)
  return optax.join_schedules([warmup, schedule], [experiment.warmup_steps])


def updated(
  state: State,
  optimizer: optax.GradientTransformation,
  rate: jax.Array,
  step: jax.Array,
  loss: jax.Array,
  grads: chex.ArrayTree,
) -> State:
  """Returns the state of one run after a gradient, its steps not counted.

  A run whose loss or gradient is not finite is frozen.

  Args:
    state: Before, without the axis of runs.
    optimizer: All but the learning rate.
    rate: The learning rate.
    step: Number of the step.
    loss: Of the step; it is added to the sum.
    grads: Of the parameters.
  """
  updates, new_optimizer = optimizer.update(
    grads, state.optimizer, state.params
  )
  new_params = jax.tree.map(
    lambda p, u: (p - rate * u).astype(p.dtype), state.params, updates
  )
  # Clipping makes an update finite if the gradient is.
  is_finite = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(grads))
  has_diverged = state.diverged_at >= 0

  def kept(new, old):
    goes_on = is_finite & ~has_diverged
    return jax.tree.map(lambda n, o: jnp.where(goes_on, n, o), new, old)

  return state.replace(
    params=kept(new_params, state.params),
    optimizer=kept(new_optimizer, state.optimizer),
    loss_sum=state.loss_sum + loss,
    diverged_at=jnp.where(is_finite | has_diverged, state.diverged_at, step),
  )


def counted(state: State) -> State:
  """Returns a state one step further."""
  return state.replace(step=state.step + 1, num_summed=state.num_summed + 1)


def sums(state: State) -> dict[str, jax.Array]:
  """Returns a state's sums since the last logging point, by their names."""
  return {
    name.removesuffix('_sum'): value
    for name, value in vars(state).items()
    if name.endswith('_sum')
  }


def without_sums(state: State) -> State:
  """Returns a state that starts anew to sum."""
  zeros = {f'{k}_sum': jnp.zeros_like(v) for k, v in sums(state).items()}
  return state.replace(num_summed=jnp.zeros_like(state.num_summed), **zeros)


def num_parameters(params: chex.ArrayTree) -> int:
  """Returns how many parameters a model has."""
  return sum(x.size for x in jax.tree.leaves(params))
