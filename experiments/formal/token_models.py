"""Models that read tokens: Flax modules, Linen or NNX, and Haiku functions.

The interface of a user's own model, and of every further architecture. It is

  a Linen module with the fields `input_size` and `output_size`,
  an NNX module, `__init__(self, input_size, output_size, *, rngs)`, or
  a Haiku function, `f(tokens, input_size, output_size)`,

with any further arguments, which are its `architecture_params`. The module's
`__call__`, or the function, takes tokens, int [B, W], of any W: right-aligned,
0 to input_size - 1, -1 where there is no symbol. It returns logits of all
positions, [B, W, output_size], or, for tasks with one answer, of the last, [B,
output_size]. These depend on the symbols alone, and not on W. A model with an
argument `last_only: bool` is told by it whether only the last are asked for.

At test there is no random number: `has_rng('dropout')` is false in Linen,
`deterministic` is set in NNX, `hk.maybe_next_rng_key()` is None in Haiku.

Letters: B batch, W width.
"""

from collections.abc import Callable, Mapping
import contextlib
import functools
import inspect
from typing import Any, NamedTuple

import chex
from flax import linen as nn
from flax import nnx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from experiments.engine import parameters
from experiments.formal import blame, data, models, reading
from experiments.formal import config as config_lib
from regulargpt_jax import recurrent
from regulargpt_jax.baselines import strings
from tasks import task as task_lib

KINDS = (
  'a Flax module (Linen or NNX) or a Haiku function of tokens, whose arguments'
  ' are among others input_size and output_size'
)
_SIZES = ('input_size', 'output_size')
_LAST_ONLY = 'last_only'
# What is given to a module or a function by others than users.
_NOT_PARAMS = (*_SIZES, 'self', 'tokens', 'rngs', 'parent', 'name')
# Options of other architectures, beside their sizes.
_NOT_OPTIONS = ('dropout_rate', *models.OF_REGULAR_GPT)


class Core(NamedTuple):
  """A model of tokens, whatever it is written in.

  Attributes:
    init: `init(rng, tokens) -> params`.
    apply: `apply(params, tokens, rng) -> logits`; `rng` is None at test.
  """

  init: Callable[[chex.PRNGKey, jax.Array], chex.ArrayTree]
  apply: Callable[..., jax.Array]


def is_builder(value: Any) -> bool:
  """Whether something is a model as this module's docstring describes it."""
  if inspect.isfunction(value):
    needed = {'tokens', *_SIZES}
  elif inspect.isclass(value) and issubclass(value, (nn.Module, nnx.Module)):
    needed = set(_SIZES)
  else:
    return False
  return needed <= _arguments(value).keys()


def _arguments(builder: Callable[..., Any]) -> dict[str, Any]:
  """Returns the annotations of a model's arguments, by name."""
  # The class of NNX modules has a signature of its own, of anything.
  is_nnx = inspect.isclass(builder) and issubclass(builder, nnx.Module)
  return parameters.kinds(builder.__init__ if is_nnx else builder)


def make(
  builder: Callable[..., Any],
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
) -> models.Model:
  """Returns a model of tokens as a `Model`.

  A task with one answer is read off the input's last position, one with answers
  in place off all of them. For others the input is followed by empty tokens,
  one an output, and each answer is read where its token is; an autoregressive
  model reads the answers before it there.
  These tokens, and computation tokens, count in the `input_size` that it gets.

  Args:
    builder: Of which `is_builder` is true.
    experiment: With `architecture_params`, its further arguments.
    task: What it is for.

  Raises:
    ValueError: If an argument is unknown or of another type, or an option is
      not for it.
    blame.UserCodeError: If it cannot be made.
  """
  name = builder.__name__
  models.check_defaults(experiment, _NOT_OPTIONS, models.why_not_for(name))
  params = experiment.architecture_params
  kinds = _arguments(builder)
  is_told = kinds.get(_LAST_ONLY) is bool
  if is_told and _LAST_ONLY in params:
    raise ValueError(
      f'architecture_params: {_LAST_ONLY} follows from the flag --task.'
    )
  known = kinds.keys() - {*_NOT_PARAMS, *([_LAST_ONLY] if is_told else [])}
  parameters.check_names('architecture_params', params, name, known)
  parameters.check('architecture_params', params, kinds)
  reads_input_alone = reading.reads_input_alone(experiment, task)
  input_size = reading.num_kinds(experiment, task)
  params = {**params, 'input_size': input_size, 'output_size': task.output_size}
  if is_told:
    params[_LAST_ONLY] = data.is_single_output(task)
  # Of ours the words alone are enough.
  is_ours = builder in recurrent.MODELS.values()
  called = f'{name}({", ".join(f"{k}={v}" for k, v in params.items())})'
  with contextlib.nullcontext() if is_ours else blame.blamed(called):
    core = _make_core(builder, params)

  def init(rng):
    return core.init(rng, jnp.zeros((1, 1), jnp.int32))

  def apply(
    params, tokens, target, rng=None, extra_levels=0, is_test=False, **unused
  ):
    del extra_levels, unused

    def run(tokens):
      return _logits(name, core, task, params, tokens, rng)

    if reads_input_alone:
      logits = run(tokens)
      return logits if logits.ndim == 2 else logits[:, -1]

    def f(x, y):
      return reading.with_tokens(_of_one_hot(run), experiment, task)(
        x, y, is_test
      )

    x = jax.nn.one_hot(tokens, task.input_size)
    # For its loop over answers, which is Haiku's.
    return hk.transform(f).apply({}, None, x, target)

  return models.Model(
    init,
    apply,
    width=_size(builder, params, 'width') or task.output_size,
    heads=(
      _size(builder, params, 'num_heads')
      if builder is recurrent.MODELS['looped_transformer']
      else 0
    ),
    sub_batch_size=models.TEST_SUB_BATCH_SIZE,
  )


def _size(
  builder: Callable[..., Any], params: Mapping[str, Any], name: str
) -> int:
  """Returns what a model's argument is, 0 where it has no such number."""
  size = params.get(name, getattr(builder, name, 0))
  return size if isinstance(size, int) else 0


def _of_one_hot(
  run: Callable[[jax.Array], jax.Array],
) -> Callable[..., jax.Array]:
  """Returns a model of tokens as one of one-hot strings, as baselines are."""

  def of_one_hot(x_BxWxV, input_length=None):
    del input_length
    return run(
      jnp.where(strings.is_symbol(x_BxWxV), jnp.argmax(x_BxWxV, axis=-1), -1)
    )

  return of_one_hot


def _logits(name, core, task, params, tokens_BxW, rng) -> jax.Array:
  """Returns a core's logits, of all positions or of the last.

  Raises:
    blame.UserCodeError: If they have another shape or are no floats.
  """
  batch_size, width = tokens_BxW.shape
  shapes = [(batch_size, width, task.output_size)]
  if data.is_single_output(task):
    shapes.append((batch_size, task.output_size))
  with blame.blamed(f'{name}, tokens of shape {tokens_BxW.shape}'):
    logits = core.apply(params, tokens_BxW, rng)
    is_array = isinstance(logits, jax.Array | np.ndarray)
    if not (
      is_array
      and logits.shape in shapes
      and jnp.issubdtype(logits.dtype, jnp.floating)
    ):
      found = type(logits).__name__
      if is_array:
        found = f'{logits.dtype} of shape {logits.shape}'
      raise ValueError(
        f'its logits must be floats of shape {" or ".join(map(str, shapes))},'
        f' got {found}.'
      )
  return logits.astype(jnp.float32)


def _make_core(builder: Callable[..., Any], params: Mapping[str, Any]) -> Core:
  if not inspect.isclass(builder):
    return _haiku(lambda tokens: builder(tokens=tokens, **params))
  if issubclass(builder, nnx.Module):
    return _nnx(functools.partial(builder, **params))
  return _linen(builder(**params))


def _haiku(f: Callable[[jax.Array], jax.Array]) -> Core:
  transformed = hk.transform(f)
  return Core(
    transformed.init,
    lambda params, tokens, rng: transformed.apply(params, rng, tokens),
  )


def _linen(module: nn.Module) -> Core:
  def init(rng, tokens):
    variables = module.init(rng, tokens)
    _check_collections(variables.keys() - {'params'})
    return variables

  def apply(params, tokens, rng):
    rngs = None if rng is None else {'dropout': rng}
    return module.apply(params, tokens, rngs=rngs)

  return Core(init, apply)


def _nnx(build: Callable[..., nnx.Module]) -> Core:
  def init(rng, tokens):
    del tokens
    module = build(rngs=nnx.Rngs(rng))
    rest = nnx.state(module, nnx.Not(nnx.Any(nnx.Param, nnx.RngState)))
    is_variable = lambda x: isinstance(x, nnx.Variable)  # noqa: E731
    leaves = jax.tree.leaves(rest, is_leaf=is_variable)
    _check_collections({type(leaf).__name__ for leaf in leaves})
    return nnx.to_pure_dict(nnx.state(module, nnx.Param))

  def apply(params, tokens, rng):
    # Its parameters are not computed: nothing depends on them.
    module = build(rngs=nnx.Rngs(0 if rng is None else rng))
    nnx.update(module, params)
    if rng is None:
      module.eval()
    else:
      module.train()
    logits = module(tokens)
    made = nnx.to_pure_dict(nnx.state(module, nnx.Param))
    if jax.tree.structure(made) != jax.tree.structure(params):
      raise ValueError(
        'it makes parameters when it is called, which cannot be trained; make'
        ' all of them in __init__.'
      )
    return logits

  return Core(init, apply)


def _check_collections(others: set[str]) -> None:
  """Refuses what is neither a parameter nor a random number."""
  if others:
    raise ValueError(
      f'it keeps {", ".join(sorted(others))}; a model may have parameters only.'
    )
