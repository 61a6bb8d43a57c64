"""Training a language model: the step, and what the loop runs on.

One model that may be large, on a mesh of its own; the data come from files.
"""

from collections.abc import Callable
import functools
import math
from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp
import optax

from experiments.engine import (
  devices,
  estimates,
  loop,
  optimization,
  programs,
  progress,
)
from experiments.language import config as config_lib
from experiments.language import sharding
from experiments.text import loading

# Of Adam. The paper names no others; nanoGPT, which it used, has these.
_B1, _B2 = 0.9, 0.95
# Names of the parameters that weight decay shrinks.
_DECAYED = ('kernel', 'embedding')
# Share of the steps that go through extra levels: enough to learn them. More
# costs perplexity where there are none.
_EXTRA_SHARE = 0.25
# Seed of the choice of what to validate on, the same for all runs.
_VALIDATION_SEED = 0


def _optimizer(
  experiment: config_lib.LanguageExperiment,
) -> optax.GradientTransformation:
  """AdamW behind clipping; the learning rate is applied by the step."""
  return optax.chain(
    optax.clip_by_global_norm(optimization.MAX_GRAD_NORM),
    optax.scale_by_adam(_B1, _B2),
    # As in nanoGPT: biases, norms and what positions add do not decay.
    optax.add_decayed_weights(
      experiment.weight_decay,
      mask=lambda params: jax.tree_util.tree_map_with_path(
        lambda path, x: path[-1].key in _DECAYED, params
      ),
    ),
  )


def _init(
  experiment: config_lib.LanguageExperiment, seed: jax.Array
) -> optimization.State:
  model = config_lib.make_model(experiment)
  params = model.init(jax.random.key(seed), jnp.zeros((1, 1), jnp.int32))
  return optimization.State(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer=_optimizer(experiment).init(params),
    num_summed=jnp.zeros((), jnp.int32),
    loss_sum=jnp.zeros(()),
    diverged_at=jnp.full((), -1, jnp.int32),
  )


def state_shapes(
  experiment: config_lib.LanguageExperiment, mesh: jax.sharding.Mesh
) -> optimization.State:
  """Returns what a state's arrays are like, and where they lie."""
  shapes = jax.eval_shape(
    functools.partial(_init, experiment), jax.ShapeDtypeStruct((), jnp.uint32)
  )
  return devices.with_shardings(shapes, sharding.of_state(mesh, shapes))


def check_fits(
  experiment: config_lib.LanguageExperiment, mesh: jax.sharding.Mesh
) -> None:
  """Checks that training can fit.

  Raises:
    ValueError: If not even what is needed at least fits.
  """
  # The sum of the gradients, and those of a part.
  estimates.check_state(
    state_shapes(experiment, mesh), 2, 'model, or a larger fsdp'
  )
  part = experiment.batch_size // experiment.accumulation_steps
  num_tokens = part * experiment.sequence_length
  estimates.check(
    f'{num_tokens:,} tokens',
    num_tokens
    / mesh.size
    * experiment.embedding_dim
    * jnp.dtype(experiment.precision).itemsize,
    'batch_size, or more accumulation_steps',
  )


def init_state(
  experiment: config_lib.LanguageExperiment, mesh: jax.sharding.Mesh
) -> optimization.State:
  """Returns the state before the first step."""
  init = jax.jit(
    functools.partial(_init, experiment),
    out_shardings=sharding.of_state(mesh, state_shapes(experiment, mesh)),
  )
  return init(jnp.uint32(experiment.model_init_seed))


def _summed_loss(
  model: nn.Module, params: Any, tokens_BxS: jax.Array, **options
):
  """Returns the sum of the cross-entropies, nats, of all targets."""
  targets_BxT = tokens_BxS[:, 1:]
  losses_BxT = model.apply(
    # What stands after the end of the text, no target sees.
    params,
    jnp.maximum(tokens_BxS[:, :-1], 0),
    targets_BxT,
    method='losses',
    **options,
  )
  return losses_BxT.sum(where=targets_BxT >= 0)


def _num_targets(tokens_BxS: jax.Array):
  """Returns how many tokens are to be predicted; -1 is none."""
  return (tokens_BxS[:, 1:] >= 0).sum()


def extra_levels(
  experiment: config_lib.LanguageExperiment, step: jax.Array
) -> jax.Array:
  """Returns how often a step repeats the last level, of its number alone."""
  is_extra, number = jax.random.split(
    jax.random.fold_in(jax.random.key(experiment.seed), step)
  )
  return jnp.where(
    jax.random.bernoulli(is_extra, _EXTRA_SHARE),
    jax.random.randint(number, (), 1, experiment.max_extra_levels + 1),
    0,
  )


def train_step(
  experiment: config_lib.LanguageExperiment,
  mesh: jax.sharding.Mesh,
  state: optimization.State,
  tokens_BxS: jax.Array,
) -> optimization.State:
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

  def gradients_with(**options):
    return jax.value_and_grad(
      lambda p, tokens: _summed_loss(model, p, tokens, **options) / num_targets
    )

  gradients = gradients_with()
  if experiment.max_extra_levels:
    gradients = functools.partial(
      jax.lax.switch,
      extra_levels(experiment, state.step),
      [
        gradients_with(num_repeats=n)
        for n in range(experiment.max_extra_levels + 1)
      ],
    )

  def add_part(sums, i):
    tokens = jax.lax.with_sharding_constraint(
      jax.lax.dynamic_index_in_dim(tokens_BxPxS, i, 1, keepdims=False),
      sharding.of_batch(mesh),
    )
    found = gradients(state.params, tokens)
    return jax.tree.map(jnp.add, sums, found), None

  zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, state.params))
  (loss, grads), _ = jax.lax.scan(add_part, zeros, jnp.arange(num_parts))
  rate = experiment.learning_rate * optimization.make_schedule(experiment)(
    state.step
  )
  new = optimization.updated(
    state, _optimizer(experiment), rate, state.step, loss, grads
  )
  return optimization.counted(new)


def jitted_step(
  experiment: config_lib.LanguageExperiment,
  mesh: jax.sharding.Mesh,
  state: optimization.State,
) -> Callable[[optimization.State, jax.Array], optimization.State]:
  """Returns `train_step` as it is run: a state like this one, in place."""
  return jax.jit(
    functools.partial(train_step, experiment, mesh),
    donate_argnums=0,
    out_shardings=sharding.of_state(mesh, state),
  )


def train(
  experiment: config_lib.LanguageExperiment,
  workdir: str,
  text: loading.Text,
  time_budget_s: float = math.inf,
) -> optimization.State:
  """Trains, going on from the newest good checkpoint.

  Args:
    experiment: What to train, as `run.on_text` returns it.
    workdir: A folder that `workdir.claim` accepted.
    text: What to train on.
    time_budget_s: Seconds of training after which to save and stop.

  Returns:
    The state after the last step.

  Raises:
    ValueError: If the batch cannot be divided among the devices.
    loop.DivergedError: If the loss is not finite.
    stopping.StoppedError: If SIGTERM or SIGINT came, or the time was over; the
      state is saved then.
    OSError: If a file cannot be read or written.
  """
  mesh = make_mesh(experiment)
  batches = _batches(experiment, text.streams['train'], experiment.seed)

  def begin(state: optimization.State, first_step: int) -> loop.Work:
    stream = loading.prefetched(batches, first_step)
    millions = optimization.num_parameters(state.params) / 1e6
    with progress.timed(f'Compiling a step of {millions:.1f} M parameters'):
      tokens = sharding.put_batch(mesh, batches[first_step])
      step = programs.compiled(
        'a step',
        jitted_step(experiment, mesh, state).lower(state, tokens),
        'batch_size, or more accumulation_steps',
      )
    return step, (sharding.put_batch(mesh, part) for part in stream)

  num_tokens = experiment.batch_size * experiment.sequence_length
  return loop.train(
    experiment,
    workdir,
    init_state(experiment, mesh),
    begin,
    validate=_make_validation(experiment, mesh, text),
    validate_every=experiment.validate_every,
    time_budget_s=time_budget_s,
    describe_rate=lambda rate, step: [f'{rate * num_tokens:,.0f} tokens/s'],
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
