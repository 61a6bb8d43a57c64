"""Language models from the command line: train, evaluate, sample."""

from collections.abc import Sequence
import dataclasses
import math
import os
import shlex
from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp

from experiments.engine import (
  checkpoints,
  devices,
  estimates,
  files,
  locks,
  loop,
  metrics,
  optimization,
  parameters,
  progress,
  stopping,
)
from experiments.engine import workdir as workdir_lib
from experiments.language import config as config_lib
from experiments.language import evaluation, report, sharding, training
from experiments.text import loading, tokenizers
from regulargpt_jax import sampling

# Of a sample.
_MAX_TOKENS = 2**20


def load_text(experiment: config_lib.LanguageExperiment) -> loading.Text:
  """Returns the text in an experiment's `data_dir`.

  Raises:
    ValueError: If its tokenizer is not the experiment's.
    OSError: If there is no prepared text.
  """
  if not experiment.data_dir:
    raise ValueError(
      'Give --data_dir, a folder that python -m launch.prepare_text filled.'
    )
  return loading.load(experiment.data_dir, experiment.tokenizer)


def on_text(
  experiment: config_lib.LanguageExperiment, text: loading.Text
) -> config_lib.LanguageExperiment:
  """Returns an experiment that knows its text."""
  names = ('tokenizer', *config_lib.FOUND_IN_TEXT)
  return dataclasses.replace(
    experiment, **{name: text.metadata[name] for name in names}
  )


def trainable(
  experiment: config_lib.LanguageExperiment, text: loading.Text
) -> config_lib.LanguageExperiment:
  """Returns an experiment that knows its text, and can be trained on it.

  Raises:
    ValueError: If that is impossible.
  """
  num_tokens = len(text.streams['train'])
  if num_tokens <= experiment.sequence_length:
    raise ValueError(
      f'A string of sequence_length {experiment.sequence_length} and its last'
      f' target need more than the {num_tokens} tokens of the train split.'
    )
  experiment = on_text(experiment, text)
  model = config_lib.make_model(experiment)
  if experiment.max_extra_levels:
    trained = model.config.min_levels + experiment.max_extra_levels
    if model.config.max_levels < trained:
      raise ValueError(
        f'With max_extra_levels {experiment.max_extra_levels} training runs up'
        f' to {trained} levels, more than max_levels'
        f' ({experiment.max_levels}).'
      )
  training.check_fits(experiment, training.make_mesh(experiment))
  return experiment


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
    loop.DivergedError: If the loss is not finite.
    stopping.RunInterruptedError: If a signal came; all is saved.
    OSError: If a file cannot be read or written, or another process is using
      the folder.
  """
  parameters.check_bounds('time_budget_s', time_budget_s, 0)
  text = devices.on_all(lambda: load_text(experiment))
  experiment = devices.on_all(lambda: trainable(experiment, text))
  devices.check_alike(repr((experiment, files.absolute(workdir))))
  with (
    locks.locked(workdir),
    workdir_lib.claimed(experiment, workdir),
  ):
    try:
      training.train(experiment, workdir, text, time_budget_s)
    except stopping.OutOfTimeError as error:
      progress.say(str(error))


def train_and_report(
  experiment: config_lib.LanguageExperiment,
  workdir: str,
  time_budget_s: float = math.inf,
) -> None:
  """Does what `train` does, then prints the validation losses.

  Args:
    experiment: See `train`.
    workdir: See `train`.
    time_budget_s: See `train`.

  Raises:
    As `train`.
  """
  train(experiment, workdir, time_budget_s)

  def write():
    title = config_lib.title(experiment)
    print(report.training_table(metrics.read(workdir), title))
    length = experiment.sequence_length
    print(
      'its perplexity against length: python -m'
      f' {experiment.evaluated_by} --workdir={shlex.quote(workdir)}'
      f' --lengths={length},{4 * length},{16 * length}'
    )

  devices.from_main(write)


@dataclasses.dataclass(frozen=True)
class Trained:
  """A trained language model.

  Attributes:
    model: The model.
    params: Its parameters, on all devices.
    step: Steps trained.
  """

  model: nn.Module
  params: dict
  step: int


def text_of(experiment: config_lib.LanguageExperiment) -> loading.Text:
  """Returns the text that a model was trained on.

  Raises:
    ValueError: If there is another in its place.
    OSError: If there is none.
  """
  text = load_text(experiment)
  if on_text(experiment, text) != experiment:
    raise ValueError(
      f'{experiment.data_dir} holds another text than that of the training;'
      ' only launch.evaluate_lm, given --data_dir, reads it all the same.'
    )
  return text


def load_experiment(workdir: str) -> config_lib.LanguageExperiment:
  """Returns what a folder's language model was trained on, and how.

  Raises:
    ValueError: If the folder holds no language model.
  """
  return workdir_lib.load(workdir, config_lib.LanguageExperiment).experiment


def load(workdir: str, experiment: config_lib.LanguageExperiment) -> Trained:
  """Returns a folder's language model from its newest checkpoint.

  Args:
    workdir: The folder.
    experiment: What `load_experiment` returns.

  Raises:
    OSError: If it has no good checkpoint.
  """
  like = training.state_shapes(experiment, sharding.make_mesh()).params
  step, params = checkpoints.load(workdir, like, experiment.training_steps)
  return Trained(config_lib.make_model(experiment), params, step)


def evaluate(
  workdir: str,
  lengths: Sequence[int] = config_lib.LENGTHS,
  num_sequences: int = config_lib.NUM_SEQUENCES,
  batch_tokens: int = config_lib.BATCH_TOKENS,
  data_dir: str = '',
  output_dir: str = '',
  max_levels: int | None = None,
) -> dict:
  """Measures and reports perplexity against length on the test split.

  Args:
    workdir: Of `train`.
    lengths: Tokens of context.
    num_sequences: How many last tokens to predict at each.
    batch_tokens: Tokens that the model reads at once.
    data_dir: A text with the same tokenizer, if not that of the training.
    output_dir: Where to write; by default the workdir.
    max_levels: In place of the experiment's.

  Returns:
    What was written as JSON.

  Raises:
    ValueError: If the folder holds no language model, the text is not the one
      that it was trained on, a number is impossible, or the output_dir holds
      what would be lost.
    OSError: If there is no checkpoint or no text.
  """
  told = (workdir, lengths, num_sequences, batch_tokens, data_dir, output_dir)
  devices.check_alike(repr((*told, max_levels)))
  folder = output_dir or workdir

  def check():  # What is impossible fails now, or never.
    evaluation.check_numbers(lengths, num_sequences, batch_tokens)
    experiment, is_own = load_experiment(workdir), True
    if max_levels not in (None, experiment.max_levels):
      config_lib.check_fields(experiment.architecture, ['max_levels'])
      experiment = dataclasses.replace(experiment, max_levels=max_levels)
      config_lib.make_model(experiment)
      is_own = False
    if data_dir:
      elsewhere = dataclasses.replace(experiment, data_dir=data_dir)
      text = load_text(elsewhere)
      evaluated = on_text(elsewhere, text)
      # A copy of the text has the same fingerprint.
      is_own = is_own and evaluated == elsewhere
    else:
      text = text_of(experiment)
      evaluated = experiment
    workdir_lib.check_output(folder, workdir, is_own)
    _check_kept(folder, lengths)
    evaluation.check(text.streams['test'], lengths, num_sequences, batch_tokens)
    if devices.is_main():
      files.make_folder(folder)
    return experiment, evaluated, text

  experiment, evaluated, text = devices.on_all(check)
  trained = load(workdir, experiment)
  losses = evaluation.last_token_losses(
    trained.model,
    trained.params,
    text.streams['test'],
    sorted(lengths),
    num_sequences,
    batch_tokens,
  )
  perplexities = {n: evaluation.perplexity(x) for n, x in losses.items()}
  differences = evaluation.differences(losses)
  title = config_lib.title(experiment)
  results = report.contents(
    experiment,
    evaluated,
    perplexities,
    differences,
    num_sequences,
    trained.step,
    optimization.num_parameters(trained.params),
  )

  def write():
    print(report.table(perplexities, differences, title))
    report.save(results, perplexities, differences, title, folder)
    print(f'plot: {os.path.join(folder, report.NAME)}.png')

  devices.from_main(write)
  return results


def _check_kept(folder: str, lengths: Sequence[int]) -> None:
  """Refuses to replace perplexities at lengths that are not measured again."""
  path = os.path.join(folder, f'{report.NAME}.json')
  if not files.exists(path):
    return
  lost = sorted(report.load_json(path)['perplexity'].keys() - {*lengths})
  if lost:
    raise ValueError(
      f'{folder} holds perplexities at lengths {", ".join(map(str, lost))} too,'
      ' which would be lost: measure them again, or give another --output_dir.'
    )


def diverged(
  experiment: config_lib.LanguageExperiment, error: loop.DivergedError
) -> dict[str, Any]:
  """Returns what `evaluate` would, of a training that had to be given up.

  Args:
    experiment: What was trained.
    error: What the training raised.
  """
  return report.contents(
    experiment,
    experiment,
    {},
    {},
    0,
    int(devices.fetch(error.state.diverged_at)),
    optimization.num_parameters(error.state.params),
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
    ValueError: If the folder holds no language model, the prompt is not UTF-8,
      or a number is impossible.
    OSError: If there is no checkpoint, or no vocabulary.
  """
  try:
    prompt.encode()
  except UnicodeEncodeError:  # Python keeps bytes of a shell as surrogates.
    raise ValueError(f'--prompt must be UTF-8, not {prompt!r}.') from None
  parameters.check_bounds('num_tokens', num_tokens, 1, _MAX_TOKENS)
  parameters.check_bounds('seed', seed, 0, 2**32 - 1)
  experiment = load_experiment(workdir)
  trained = load(workdir, experiment)
  tokenizer = tokenizers.make_tokenizer(experiment.tokenizer, vocabulary_dir)
  tokens = tokenizer.encode(prompt).tolist()
  prompt_1xT = jnp.array([[tokenizer.end_of_text, *tokens]])
  max_length = prompt_1xT.size + num_tokens
  estimates.check(
    f'The keys and values of {max_length:,} tokens',
    estimates.of_arrays(
      jax.eval_shape(
        lambda: trained.model.apply(
          trained.params, prompt_1xT, max_length, method='prefill'
        )
      )
    ),
    'num_tokens or prompt',
  )
  drawn = sampling.sample(
    trained.model,
    trained.params,
    prompt_1xT,
    num_tokens,
    jax.random.key(seed),
    temperature,
    top_k,
  )
  return tokenizer.decode([*tokens, *jax.device_get(drawn)[0].tolist()])
