"""The small interface behind which every architecture stands."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import json
from typing import Any

import chex
import haiku as hk
import jax
import jax.numpy as jnp

from experiments.engine import parameters
from experiments.formal import config as config_lib
from experiments.formal import data, reading
from regulargpt_jax import baselines, recurrent
from regulargpt_jax import config as regular_gpt_config
from regulargpt_jax.baselines import transformer
from tasks import task as task_lib

# Symbols of the string on which parameters are initialized.
_INIT_LENGTH = 10
# Strings that a baseline is tested on at a time: most look at all positions.
TEST_SUB_BATCH_SIZE = 64
# Weights of attention that a CPU's caches hold.
_CACHED_WEIGHTS = 2**21


def _share_nothing(params, num_symbols, num_runs):
  """See `Model.share`."""
  del params, num_symbols, num_runs


@dataclasses.dataclass(frozen=True)
class Model:
  """An architecture for a task.

  Attributes:
    init: `init(rng) -> params`.
    apply: `apply(params, tokens, target, rng=None, extra_levels=0, shared=None,
      is_test=False, min_length=1) -> logits` for right-aligned tokens [B, W]
      and targets as `data.Source.batch` gives them. Logits are float32 and of
      the targets' shape. They do not depend on W, nor on the targets, but that
      an autoregressive model reads those before the one it predicts; with
      `is_test` (static), it reads its own predictions. `rng` is for dropout,
      None at test; `extra_levels` may be traced; no string has fewer symbols
      than `min_length` (static).
    width: Numbers of a vector that it makes at each place.
    heads: Of attention from each place to all, whose weights are an array.
    share: `share(params, num_symbols, num_runs) -> shared`: what calls with the
      same parameters can share when they read that many symbols in all, a tree
      of arrays, or None; so many runs do it side by side on a device.
    bucket_base: Widths of buckets are powers of it.
    sub_batch_size: Strings to test on at a time, at most; None for any number.
    config: Of a `RegularGPT` that reads the string and nothing else and answers
      at its last symbol or at each; its parameters are those of `init`. None
      for any other model.
    penalty: `penalty(params, rng, step)`, to be added to the loss: see
      `regulargpt_jax.contraction`; None if the model has none, or no weight.
    with_nodes: `with_nodes(params, tokens, target, rng, extra_levels,
      min_length) -> logits, loss`: those of `apply`, and what
      `regulargpt_jax.node_loss` gives; None if that has no weight.
  """

  init: Callable[[chex.PRNGKey], chex.ArrayTree]
  apply: Callable[..., jax.Array]
  width: int
  heads: int = 0
  share: Callable[[chex.ArrayTree, int, int], Any] = _share_nothing
  bucket_base: int = 2
  sub_batch_size: int | None = None
  config: regular_gpt_config.RegularGPTConfig | None = None
  penalty: Callable[..., jax.Array] | None = None
  with_nodes: Callable[..., tuple[jax.Array, jax.Array]] | None = None

  def tested_at_once(self, batch_size: int, width: int) -> int:
    """Returns how many strings of a width to test on at a time.

    A CPU's caches should hold the weights of their attention, which it takes
    two to four times as long to read from memory.
    """
    at_once = min(batch_size, self.sub_batch_size or batch_size)
    if not self.heads or jax.default_backend() != 'cpu':
      return at_once
    cached = _CACHED_WEIGHTS // (self.heads * width**2)
    return min(at_once, max(jax.device_count(), cached))


# What the benchmark's example runs with; `architecture_params` replaces it.
_BASELINE_PARAMS: Mapping[str, Mapping[str, Any]] = {
  'rnn': {'hidden_size': 256},
  'lstm': {'hidden_size': 256},
  'stack_rnn': {'hidden_size': 256, 'stack_cell_size': 8},
  'stack_lstm': {'hidden_size': 256, 'stack_cell_size': 8},
  'ndstack_rnn': {'hidden_size': 256, 'stack_symbols': 2, 'stack_states': 2},
  'tape_rnn': {'hidden_size': 256, 'memory_cell_size': 8},
}
# Options that no other architecture reads.
OF_REGULAR_GPT = (
  'precision',
  'max_extra_levels',
  'contraction_weight',
  'spread_weight',
  'node_weight',
)
_SIZES_OF_REGULAR_GPT = ('chunk_size', 'thickness', 'preset')
_WHY_NOT = 'is an option of regular_gpt only.'
# Which the transformers read too.
_SHARED_SIZES = ('embedding_dim', 'num_heads')
_STACKS = ('stack_rnn', 'stack_lstm', 'ndstack_rnn')


def make_baseline(
  name: str,
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
) -> Model:
  """Returns a baseline of the benchmark.

  A stack has as many cells as the model reads tokens, the most that it can
  use, unless `architecture_params` gives its `stack_size`. A tape is circular:
  its `memory_size` is given, or as many cells as the model reads tokens of the
  longest training string; at test, of the longest test string, if that is more.

  Args:
    name: A key of `baselines.BUILDERS`.
    experiment: With `architecture_params`, the builder's arguments.
    task: What it is for.

  Raises:
    ValueError: If a hyperparameter is impossible.
  """
  check_defaults(experiment, OF_REGULAR_GPT, _WHY_NOT)
  params = dict(_BASELINE_PARAMS.get(name, {}))
  if name.startswith('transformer'):
    params |= {
      'embedding_dim': experiment.embedding_dim,
      'num_heads': experiment.num_heads,
      'dropout_prob': experiment.dropout_rate,
    }
    if name == 'transformer_encoder':
      params['causal_masking'] = (
        experiment.is_autoregressive or reading.reads_in_place(experiment, task)
      )
  elif experiment.dropout_rate:
    raise ValueError(f'{name} has no dropout.')
  if name == 'transformer' and experiment.computation_steps_mult:
    raise ValueError('transformer reads no computation tokens.')
  check_params(experiment, _baseline_kinds(name))
  params |= experiment.architecture_params
  trained, tested = (
    num_read(experiment, task, length)
    for length in (experiment.sequence_length, experiment.longest_tested)
  )
  num_positions = params.get('randomized_positions')
  if num_positions is not None and num_positions < max(trained, tested):
    raise ValueError(
      f'randomized_positions ({num_positions:,}) must be at least what is read'
      f' of the longest string ({max(trained, tested):,}).'
    )
  reads_targets = name == 'transformer'
  build = functools.partial(
    baselines.BUILDERS[name],
    task.output_size,
    return_all_outputs=reads_targets or not data.is_single_output(task),
  )

  def build_with_room(x, input_length=None):
    """A stack that cannot overflow: the same at any padding."""
    core = build(**params, stack_size=x.shape[1])
    return core(x, input_length=input_length)

  if name in _STACKS and 'stack_size' not in params:
    core = test_core = build_with_room
  elif name == 'tape_rnn':
    size = params.setdefault('memory_size', trained)
    core = build(**params)
    test_core = build(**{**params, 'memory_size': max(size, tested)})
  else:
    core = test_core = build(**params)
  return haiku_model(
    experiment,
    task,
    core,
    test_core,
    width=params.get('hidden_size', experiment.embedding_dim),
    heads=_heads(name, params, data.is_single_output(task)),
    reads_targets=reads_targets,
  )


def _heads(name: str, params: Mapping[str, Any], has_one_answer: bool) -> int:
  """Returns how many heads have weights of all places."""
  if not name.startswith('transformer'):
    return 0
  default = transformer.TransformerConfig
  has_one_layer = params.get('num_layers', default.num_layers) == 1
  # An encoder's last layer then has those of the last place alone.
  if name == 'transformer_encoder' and has_one_answer and has_one_layer:
    return 0
  return params.get('num_heads', default.num_heads)


def _baseline_kinds(name: str) -> dict[str, Any]:
  """Returns the annotations of a baseline's arguments, by name."""
  builder = baselines.BUILDERS[name]
  if name.startswith('transformer'):
    return parameters.kinds(transformer.TransformerConfig)
  return {
    argument: kind
    for part in (builder, *builder.keywords.values())  # The cores.
    for argument, kind in parameters.kinds(part).items()
  }


# Arguments that users have no say in.
_NOT_PARAMS = (
  'output_size',
  'vocab_size',
  'rnn_core',
  'inner_core',
  'name',
)


def check_params(
  experiment: config_lib.Experiment, kinds: Mapping[str, Any]
) -> None:
  """Checks the names and types of a model's `architecture_params`.

  Raises:
    ValueError: If one is unknown, of another type, or follows from a flag.
  """
  flags = {
    'chunk_size': 'chunk_size',
    'thickness': 'thickness',
    'embedding_dim': 'embedding_dim',
    'num_heads': 'num_heads',
    'dropout_rate': 'dropout_rate',
    'dropout_prob': 'dropout_rate',
    'dtype': 'precision',
    'preset': 'preset',
    'max_extra_levels': 'max_extra_levels',
    'node_outputs': 'node_weight',
    'causal_masking': 'is_autoregressive',
    'return_all_outputs': 'task',
  }
  for name in experiment.architecture_params:
    if name in flags:
      raise ValueError(
        f'architecture_params: {name} follows from the flag --{flags[name]}.'
      )
  parameters.check_names(
    'architecture_params',
    experiment.architecture_params,
    experiment.architecture,
    kinds.keys() - flags.keys() - set(_NOT_PARAMS),
  )
  parameters.check('architecture_params', experiment.architecture_params, kinds)


def unread_sizes(experiment: config_lib.Experiment) -> dict[str, str]:
  """Returns the sizes that a model does not read, each with why.

  The cells of a sweep may share them, where other models read them.
  """
  name = config_lib.model_title(experiment)
  if experiment.model_module or name in recurrent.MODELS:
    why = why_not_for(name)
    return dict.fromkeys((*_SIZES_OF_REGULAR_GPT, *_SHARED_SIZES), why)
  if name not in baselines.BUILDERS:
    return {}
  unread = dict.fromkeys(_SIZES_OF_REGULAR_GPT, _WHY_NOT)
  if name in _BASELINE_PARAMS:
    params = json.dumps(dict(_BASELINE_PARAMS[name]))
    unread |= dict.fromkeys(
      _SHARED_SIZES,
      f'is not for {name}; its sizes are architecture_params, by default'
      f' {params}.',
    )
  return unread


def why_not_for(name: str) -> str:
  """Returns what follows an option that a model of tokens does not read."""
  return (
    f'is not for {name}, whose sizes are --architecture_params (a wrong name'
    ' there lists them).'
  )


def check_sizes(experiment: config_lib.Experiment) -> None:
  """Refuses sizes that a model does not read.

  Raises:
    ValueError: If one is given.
  """
  for name, why in unread_sizes(experiment).items():
    check_defaults(experiment, [name], why)


def check_defaults(
  experiment: config_lib.Experiment, names: Sequence[str], why: str
) -> None:
  """Refuses options that a model does not read, but at their defaults.

  Args:
    experiment: Whose options.
    names: Of these options.
    why: Follows the name of the one that is refused.

  Raises:
    ValueError: If one is given.
  """
  for name in names:
    if getattr(experiment, name) != getattr(config_lib.Experiment, name):
      raise ValueError(f'--{name} {why}')


def num_read(experiment, task, length: int) -> int:
  """Returns how many tokens a model reads of a string of a length."""
  width = data.input_length(task, length)
  if reading.reads_in_place(experiment, task):
    return width
  computation = experiment.computation_steps_mult * width
  return width + computation + task.output_length(width)


def haiku_model(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  core: Callable[..., jax.Array],
  test_core: Callable[..., jax.Array],
  width: int,
  heads: int = 0,
  reads_targets: bool = False,
) -> Model:
  """Returns a model that reads one-hot inputs and some tokens after them.

  Args:
    experiment: Says what it reads after them.
    task: What it is for.
    core: f(x, input_length, ...), returns all outputs, or the last one alone
      for a task with one answer.
    test_core: The same at test.
    width: Of its vectors.
    heads: As of `Model`.
    reads_targets: Whether it is f(inputs, targets), an encoder-decoder.
  """

  def transform(core):
    def f(x, y, sample, **options):
      model = functools.partial(core, **options)
      return reading.with_tokens(model, experiment, task, reads_targets)(
        x, y, sample
      )

    return hk.transform(f)

  train_model, test_model = transform(core), transform(test_core)

  def init(rng):
    x = jax.nn.one_hot(jnp.zeros((1, _INIT_LENGTH), jnp.int32), task.input_size)
    target = jnp.ones(data.target_shape(task, 1, _INIT_LENGTH))
    return train_model.init(rng, x, target, False)

  def apply(
    params, tokens, target, rng=None, extra_levels=0, is_test=False, **unused
  ):
    del unused
    x = jax.nn.one_hot(tokens, task.input_size)
    options = {}
    if experiment.max_extra_levels:
      options['extra_levels'] = extra_levels
    model = test_model if is_test else train_model
    return model.apply(params, rng, x, target, is_test, **options)

  return Model(
    init,
    apply,
    width=width,
    heads=heads,
    sub_batch_size=TEST_SUB_BATCH_SIZE,
  )
