"""RegularGPT behind the interface of every architecture."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from experiments.engine import parameters
from experiments.formal import config as config_lib
from experiments.formal import models, reading
from regulargpt_jax import config as regular_gpt_config
from regulargpt_jax import (
  contraction,
  haiku_model,
  joint_gradients,
  node_loss,
)
from regulargpt_jax import model as regular_gpt_model
from tasks import task as task_lib
from tasks.regular import regular_task

# Entries of the chunks from which range evaluation may compute a table that
# its calls share, by backend: 256 MB and 4 GB in float32.
_MAX_CHUNKS_SIZE = {'cpu': 2**26, 'other': 2**30}
# Each node tells where the automaton goes from each of them.
_MAX_NODE_STATES = 64
# Of the steps, in so many do penalties grow to their weights.
_GROWING = 0.3


def make_regular_gpt(
  experiment: config_lib.Experiment, task: task_lib.GeneralizationTask
) -> models.Model:
  """Returns RegularGPT.

  Where the input alone is read, one answer is read off its last position, by
  `reduce`, and answers in place off all of them, by `scan`. Otherwise the input
  is followed by empty tokens, one an output, or by answers.

  Raises:
    ValueError: If a hyperparameter is out of range.
  """
  models.check_params(
    experiment, parameters.kinds(regular_gpt_config.RegularGPTConfig)
  )
  hyperparameters = {
    'chunk_size': experiment.chunk_size,
    'thickness': experiment.thickness,
    'embedding_dim': experiment.embedding_dim,
    'num_heads': experiment.num_heads,
    'dropout_rate': experiment.dropout_rate,
    'dtype': jnp.dtype(experiment.precision),
    'tie_embedding': False,  # Classes are not symbols.
    **experiment.architecture_params,
  }
  if experiment.node_weight:
    hyperparameters['node_outputs'] = (
      len(_transitions(experiment, task, 'node_weight')) ** 2
    )
  # Also checks the values, before anything is traced.
  config = regular_gpt_config.make_config(
    experiment.preset,
    vocab_size=task.input_size,
    output_size=task.output_size,
    **hyperparameters,
  )
  reads_input_alone = reading.reads_input_alone(experiment, task)
  is_simple = reads_input_alone and config.thickness == 1
  for name in ('contraction_weight', 'spread_weight'):
    if getattr(experiment, name) and not is_simple:
      raise ValueError(
        f'{name} is for models of thickness 1 and tasks with a single output,'
        ' without computation tokens or autoregression.'
      )
  if reads_input_alone:
    return _of_the_last(config, experiment, task)
  if reading.reads_in_place(experiment, task):
    return _in_place(config, experiment)
  core = haiku_model.make_regular_gpt(
    task.output_size,
    return_all_outputs=True,
    preset=experiment.preset,
    max_extra_levels=experiment.max_extra_levels,
    **hyperparameters,
  )
  model = models.haiku_model(experiment, task, core, core, config.embedding_dim)
  return dataclasses.replace(model, bucket_base=config.chunk_size)


def _init(module: regular_gpt_model.RegularGPT):
  """Returns the `init` of a `Model`."""
  return lambda rng: module.init(rng, jnp.zeros((1, 1), jnp.int32))


def _in_place(
  config: regular_gpt_config.RegularGPTConfig,
  experiment: config_lib.Experiment,
) -> models.Model:
  """Returns a model whose answers are where the symbols are."""
  module = regular_gpt_model.RegularGPT(config)

  def apply(params, tokens, target, rng=None, extra_levels=0, **unused):
    del target, unused
    logits_BxWxV = module.apply(
      params,
      tokens,
      path='scan',
      extra_levels=extra_levels,
      max_extra_levels=experiment.max_extra_levels,
      rngs=None if rng is None else {'dropout': rng},
    )
    return jnp.where((tokens >= 0)[..., None], logits_BxWxV, 0)

  return models.Model(
    _init(module),
    apply,
    width=config.embedding_dim,
    bucket_base=config.chunk_size,
    sub_batch_size=models.TEST_SUB_BATCH_SIZE,
    config=config,
  )


def _of_the_last(
  config: regular_gpt_config.RegularGPTConfig,
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
) -> models.Model:
  """Returns a model of one answer, at the last symbol."""
  module = regular_gpt_model.RegularGPT(config)

  def call(params, arrays, rng, extra_levels, **static):
    if rng is not None:
      arrays['rngs'] = {'dropout': rng}
    static['max_extra_levels'] = experiment.max_extra_levels
    where = static if isinstance(extra_levels, int) else arrays
    where['extra_levels'] = extra_levels
    return joint_gradients.apply(module, params, arrays, **static)

  def apply(
    params, tokens, target, rng=None, extra_levels=0, shared=None, **options
  ):
    del target  # And whether this is a test.
    arrays = {'tokens_BxT': tokens, 'tables': shared}
    min_length = options.get('min_length', 1)
    return call(params, arrays, rng, extra_levels, min_length=min_length)

  def with_nodes(params, tokens, target, rng, extra_levels, min_length):
    del target
    logits, node_logits, num_levels = call(
      params,
      {'tokens_BxT': tokens},
      rng,
      extra_levels,
      min_length=min_length,
      method='nodes',
    )
    transitions = _transitions(experiment, task, 'node_weight')
    return logits, node_loss.loss(
      node_logits, num_levels, tokens, transitions, config.chunk_size
    )

  penalties = [(experiment.contraction_weight, None)]
  if experiment.spread_weight:
    transitions = _transitions(experiment, task, 'spread_weight')
    penalties.append((experiment.spread_weight, transitions))

  def penalty(params, rng, step):
    # Both from the first step leave some models with outputs that are alike.
    grown = 1.0
    if experiment.spread_weight:
      grown = jnp.minimum(step / (_GROWING * experiment.training_steps), 1.0)
    return grown * sum(
      weight
      * contraction.penalty(
        module, params, jax.random.fold_in(rng, number), transitions
      )
      for number, (weight, transitions) in enumerate(penalties, 1)
      if weight
    )

  def share(params, num_symbols, num_runs):
    row_size = num_runs * config.chunk_size * config.embedding_dim
    on_cpu = jax.default_backend() == 'cpu'
    max_rows = _MAX_CHUNKS_SIZE['cpu' if on_cpu else 'other'] // row_size
    return module.apply(
      params, num_symbols, max_rows=max_rows, method=module.tabulate
    )

  return models.Model(
    _init(module),
    apply,
    share=share,
    width=config.embedding_dim,
    bucket_base=config.chunk_size,
    config=config,
    penalty=penalty if any(weight for weight, _ in penalties) else None,
    with_nodes=with_nodes if experiment.node_weight else None,
  )


def _transitions(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  option: str,
) -> np.ndarray:
  """Returns those of the task's automaton, [states, symbols], for an option.

  Raises:
    ValueError: If it has none, or too many states to read off a node, or if
      the model is not the tree of the input alone.
  """
  is_regular = isinstance(task, regular_task.RegularTask)
  if not (is_regular and reading.reads_input_alone(experiment, task)):
    raise ValueError(
      f'{option} is for tasks of an automaton with a single answer, without'
      ' computation tokens or autoregression.'
    )
  transitions = task.machine.transitions
  if len(transitions) > _MAX_NODE_STATES:
    raise ValueError(
      f'{option} is for automata of up to {_MAX_NODE_STATES} states, this'
      f' one has {len(transitions)}.'
    )
  return transitions
