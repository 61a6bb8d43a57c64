"""What an analysis looks at: a trained model, its task, and strings of it."""

from collections.abc import Iterator, Sequence
import dataclasses
import json
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from experiments.engine import estimates
from experiments.engine import workdir as workdir_lib
from experiments.formal import builders, data, models, run
from experiments.formal import config as config_lib
from regulargpt_jax import config as regular_gpt_config
from regulargpt_jax.construction import minimization
from tasks import task as task_lib
from tasks.regular import prefixes, regular_task


class Subject(NamedTuple):
  """A trained RegularGPT that gives one answer to a string.

  Of one that was trained on all prefixes it is the answer to the whole.

  Attributes:
    experiment: What it was trained for.
    task: Its task, of whole strings.
    config: Of the model, to compute in float32 whatever it was trained in.
    params: Its parameters, {'params': ...}, of the first run.
    symbols: The input symbols as people write them.
    machine: The smallest Moore machine that solves the task, with the task's
      own numbers of states if that is its own; None if none is known. Of more
      states, a model that is right need not tell all apart.
    name: Of the task, for titles.
  """

  experiment: config_lib.Experiment
  task: task_lib.GeneralizationTask
  config: regular_gpt_config.RegularGPTConfig
  params: chex.ArrayTree
  symbols: list[str]
  machine: regular_task.MooreMachine | None
  name: str


def load(
  workdir: str, held: workdir_lib.Held, task_module: str = ''
) -> Subject:
  """Reads the newest checkpoint of a workdir.

  Args:
    workdir: The folder.
    held: What it holds.
    task_module: See `run.load_experiment`.

  Raises:
    ValueError: As `run.load`, or if it holds another kind of model.
    OSError: If it has no good checkpoint.
  """
  experiment = held.experiment
  if experiment.architecture != 'regular_gpt' or experiment.model_module:
    raise ValueError(
      f'{workdir} holds a model {config_lib.model_title(experiment)};'
      ' this needs regular_gpt.'
    )
  run.check_module('task', experiment, workdir, task_module)
  task, model = builders.make_task_and_model(experiment)
  is_single = data.is_single_output(prefixes.whole(task))
  if model.config is None or not is_single:
    raise ValueError(
      f'The model in {workdir} gives more than one answer, or reads more than'
      ' its input; this needs a task with a single output (of a string or of'
      ' each prefix), without computation tokens or autoregression.'
    )
  params = run.load_params(workdir, held, model)
  return make(experiment, task, model, params)


def make(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  params: chex.ArrayTree,
) -> Subject:
  """Returns the subject that a trained model is.

  Args:
    experiment: What it was trained for.
    task: Its task.
    model: A RegularGPT that reads the string and nothing else.
    params: Its parameters, [R, ...], of which the first run's count.

  Raises:
    ValueError: If it reads the end of a long string only.
  """
  if model.config.max_levels < regular_gpt_config.MAX_LEVELS:
    raise ValueError(
      f'A model of max_levels {model.config.max_levels} reads the end of a long'
      ' string only; this needs one that reads it all.'
    )
  task = prefixes.whole(task)
  machine = None
  if isinstance(task, regular_task.RegularTask):
    machine = task.machine
    smallest = regular_task.make_machine(*minimization.minimal(*machine))
    if len(smallest.outputs) < len(machine.outputs):
      machine = smallest
  return Subject(
    experiment,
    task,
    # Parameters are float32 always, and not every CPU computes in bfloat16.
    dataclasses.replace(model.config, dtype=jnp.float32),
    jax.tree.map(lambda x: x[0], params),
    data.symbols(task),
    machine,
    config_lib.task_title(dataclasses.replace(experiment, answers='last')),
  )


def check_fits(subject: Subject, num_strings: int, longest: int) -> None:
  """Checks that strings, and what the model makes of them, can fit.

  Args:
    subject: The model.
    num_strings: How many.
    longest: Symbols of the longest.

  Raises:
    ValueError: If not even what is needed at least fits.
  """
  num_nodes = -(-longest // subject.config.chunk_size)
  string_bytes = longest + num_nodes * subject.config.embedding_dim
  estimates.check(
    f'The outputs of {num_strings:,} strings of up to {longest:,} symbols',
    num_strings * string_bytes * estimates.FLOAT_BYTES,
    'num_strings or length',
    room=estimates.host_memory(),
  )


def sample(
  subject: Subject, num_strings: int, lengths: Sequence[int]
) -> Iterator[np.ndarray]:
  """Yields strings of the task for each length, as `data.samples`, [B, T]."""
  for tokens, _ in data.samples(
    subject.task, num_strings, lengths, subject.experiment.seed
  ):
    yield tokens


def left_out(subject: Subject, symbols_U: np.ndarray) -> list[str]:
  """Returns the symbols that are not among tokens, as people write them."""
  return [s for v, s in enumerate(subject.symbols) if v not in symbols_U]


def parse(subject: Subject, string: str) -> np.ndarray:
  """Returns the tokens of a string as people write it, [T].

  Symbols of more than one character are separated by spaces; spaces between
  others, where none is a symbol, mean nothing.

  Raises:
    ValueError: If a symbol is unknown, or some symbol cannot be written so.
  """
  if data.separator(subject.symbols):
    for symbol in subject.symbols:
      if symbol.split() != [symbol]:
        raise ValueError(
          f'Strings with the symbol {symbol!r} cannot be written: spaces'
          ' separate the symbols of this alphabet.'
        )
    symbols = string.split()
  else:
    symbols = string if ' ' in subject.symbols else string.replace(' ', '')
  for position, symbol in enumerate(symbols):
    if symbol not in subject.symbols:
      raise ValueError(
        f'Symbol {symbol!r} at position {position} of the string is not one of'
        f' {" ".join(subject.symbols)}.'
      )
  return np.array([subject.symbols.index(s) for s in symbols], np.int32)


def written(subject: Subject, tokens_T: Sequence[int]) -> str:
  """Returns a string of tokens as people write it, which `parse` reads.

  Where `parse` cannot, it is a JSON list of symbols.
  """
  symbols = [subject.symbols[token] for token in tokens_T]
  separator = data.separator(subject.symbols)
  has_spaces = any(symbol.split() != [symbol] for symbol in subject.symbols)
  if separator and has_spaces:
    return json.dumps(symbols, ensure_ascii=False)
  return separator.join(symbols)
