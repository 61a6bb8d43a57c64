"""Language models from the command line: train, evaluate, sample."""

from collections.abc import Sequence
import dataclasses
import math
import os
from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp

from experiments import checkpoints, devices, files, progress
from experiments import config as base_config
from experiments import training as base_training
from experiments.language import config as config_lib
from experiments.language import evaluation, report, sharding, training
from experiments.text import loading, tokenizers
from regulargpt_jax import sampling


def with_text(
  experiment: config_lib.LanguageExperiment,
) -> tuple[config_lib.LanguageExperiment, loading.Text]:
  """Returns an experiment that knows its text, and the text.

  Raises:
    ValueError: If the text's tokenizer is not the experiment's.
    OSError: If there is no prepared text.
  """
  if not experiment.data_dir:
    raise ValueError(
      'Give --data_dir, a folder that python -m launch.prepare_text filled.'
    )
  text = loading.load(experiment.data_dir, experiment.tokenizer)
  names = ('tokenizer', *config_lib.FOUND_IN_TEXT)
  found = {name: text.metadata[name] for name in names}
  return dataclasses.replace(experiment, **found), text


def train(
  experiment: config_lib.LanguageExperiment,
  workdir: str,
  time_budget_s: float = math.inf,
) -> None:
  """Trains a language model in its folder.

  Run again, it goes on where it stopped.

  Args:
    experiment: What to train.
    workdir: The folder for all output; made if it does not exist.
    time_budget_s: Seconds of training, after loading and compiling, after
      which to save and stop.

  Raises:
    ValueError: If the experiment is impossible, or the folder holds another or
      one of another text.
    training.DivergedError: If the loss is not finite.
    training.RunInterruptedError: If a signal came; all is saved.
    OSError: If a file cannot be read or written, or another process is using
      the folder.
  """
  experiment, text = with_text(experiment)
  num_tokens = len(text.streams['train'])
  if num_tokens <= experiment.sequence_length:
    raise ValueError(
      f'A string of sequence_length {experiment.sequence_length} and its last'
      f' target need more than the {num_tokens} tokens of the train split.'
    )
  # What is impossible fails now, or never.
  config_lib.make_model(experiment)
  training.make_mesh(experiment)
  # The text's place may differ, and its fingerprint tells what it is.
  alike = dataclasses.replace(experiment, data_dir='')
  devices.check_alike(repr((alike, os.path.abspath(workdir))))
  with files.locked(workdir):
    base_config.claim_workdir(experiment, workdir)
    try:
      training.train(experiment, workdir, text, time_budget_s)
    except base_training.OutOfTimeError as error:
      progress.say(str(error))


@dataclasses.dataclass(frozen=True)
class Trained:
  """A trained language model.

  Attributes:
    experiment: What was trained.
    model: The model.
    params: Its parameters, on all devices.
    step: Steps trained.
  """

  experiment: config_lib.LanguageExperiment
  model: nn.Module
  params: dict
  step: int


def load(workdir: str) -> Trained:
  """Returns a folder's language model from its newest checkpoint.

  Raises:
    ValueError: If the folder holds no language model.
    OSError: If it has no good checkpoint.
  """
  experiment = base_config.load(workdir, config_lib.LanguageExperiment)
  like = training.state_shapes(experiment, sharding.make_mesh()).params
  step, params = checkpoints.load(workdir, like, experiment.training_steps)
  return Trained(experiment, config_lib.make_model(experiment), params, step)


def evaluate(
  workdir: str,
  lengths: Sequence[int] = config_lib.LENGTHS,
  num_sequences: int = config_lib.NUM_SEQUENCES,
  batch_tokens: int = config_lib.BATCH_TOKENS,
  data_dir: str = '',
  output_dir: str = '',
) -> dict:
  """Measures and reports perplexity against length on the test split.

  Args:
    workdir: Of `train`.
    lengths: Tokens of context.
    num_sequences: How many last tokens to predict at each.
    batch_tokens: Tokens that the model reads at once.
    data_dir: A text with the same tokenizer, if not that of the training.
    output_dir: Where to write; by default the workdir.

  Returns:
    What was written as JSON.

  Raises:
    ValueError: If the folder holds no language model, the text is not the one
      that it was trained on, or a number is impossible.
    OSError: If there is no checkpoint or no text.
  """
  told = (workdir, lengths, num_sequences, batch_tokens, data_dir, output_dir)
  devices.check_alike(repr(told))
  trained = load(workdir)
  experiment, text = with_text(
    base_config.replaced(trained.experiment, data_dir=data_dir or None)
  )
  if not data_dir and experiment != trained.experiment:
    raise ValueError(
      f'{experiment.data_dir} holds another text than that of the training;'
      ' give --data_dir to evaluate on it all the same.'
    )
  losses = evaluation.last_token_losses(
    trained.model,
    trained.params,
    text.streams['test'],
    sorted(lengths),
    num_sequences,
    batch_tokens,
  )
  perplexities = {n: evaluation.perplexity(x) for n, x in losses.items()}
  title = config_lib.title(experiment)
  results = report.contents(
    trained.experiment,
    experiment,
    perplexities,
    num_sequences,
    trained.step,
    sum(x.size for x in jax.tree.leaves(trained.params)),
  )
  folder = output_dir or workdir
  if devices.is_main():
    os.makedirs(folder, exist_ok=True)
    report.save(results, perplexities, title, folder)
    print(report.table(perplexities, title))
    print(f'plot: {os.path.join(folder, report.NAME)}.png')
  return results


def diverged(
  workdir: str, error: base_training.DivergedError
) -> dict[str, Any]:
  """Returns what `evaluate` would, of a training that had to be given up.

  Args:
    workdir: Of `train`.
    error: What it raised.
  """
  experiment = base_config.load(workdir, config_lib.LanguageExperiment)
  return report.contents(
    experiment,
    experiment,
    {},
    0,
    int(devices.fetch(error.state.diverged_at)),
    training.num_parameters(error.state),
    diverged=True,
  )


def sample(
  workdir: str,
  prompt: str,
  num_tokens: int,
  temperature: float = 1.0,
  top_k: int | None = None,
  seed: int = 0,
  vocabulary_dir: str = '',
) -> str:
  """Returns a prompt and how a language model goes on.

  Args:
    workdir: Of `train`.
    prompt: The beginning of a document; '' for the model to begin.
    num_tokens: How many to draw.
    temperature: See `sampling.sample`.
    top_k: Likewise.
    seed: Of the draw.
    vocabulary_dir: See `tokenizers.make_tokenizer`.

  Raises:
    ValueError: If the folder holds no language model, or a number is
      impossible.
    OSError: If there is no checkpoint, or no vocabulary.
  """
  trained = load(workdir)
  tokenizer = tokenizers.make_tokenizer(
    trained.experiment.tokenizer, vocabulary_dir
  )
  tokens = [tokenizer.end_of_text, *tokenizer.encode(prompt).tolist()]
  drawn = sampling.sample(
    trained.model,
    trained.params,
    jnp.array([tokens]),
    num_tokens,
    jax.random.key(seed),
    temperature,
    top_k,
  )
  return tokenizer.decode([*tokens[1:], *jax.device_get(drawn)[0].tolist()])
