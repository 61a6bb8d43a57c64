"""Figure 5: how far back the answer looks, by cumulative gradients."""

import dataclasses

import jax
from matplotlib import figure as figure_lib
import numpy as np

from experiments.analysis import outputs
from experiments.analysis import subject as subject_lib
from experiments.engine import estimates, pictures, progress, tables
from experiments.language import config as language_config
from regulargpt_jax import model
from regulargpt_jax.analysis import receptive_field

# The band around the mean: between these percentiles of the strings.
_BAND = (10, 90)


def analyze(
  subject: subject_lib.Subject, workdir: str, num_strings: int, length: int
) -> None:
  """Writes `receptive_field.json`, `.npz` and `.png`, prints the numbers.

  What is differentiated is the log-odds of the answer that the model gives.

  Args:
    subject: What to look at.
    workdir: Where to write.
    num_strings: How many strings of the task to run.
    length: Of the strings.

  Raises:
    ValueError: If there are too few strings, or they are too short, or no
      answer depends on any symbol.
  """
  _check(length)
  subject_lib.check_fits(subject, num_strings, length)
  tokens = next(subject_lib.sample(subject, num_strings, [length]))
  module = model.RegularGPT(subject.config)
  answer_B = jax.jit(module.apply)(subject.params, tokens).argmax(-1)
  _analyze(
    module,
    subject.params,
    tokens,
    answer_B,
    subject.experiment,
    f'the answer on {subject.name}',
    workdir,
  )


def analyze_language_model(
  experiment: language_config.LanguageExperiment,
  workdir: str,
  num_strings: int,
  length: int,
) -> None:
  """As `analyze`, for what a language model predicts in its test split.

  What is differentiated is the log-odds of the token that does come next.

  Args:
    experiment: What was trained.
    workdir: Its folder.
    num_strings: How many sequences of the test split to read.
    length: Of the sequences.

  Raises:
    ValueError: As `analyze`, and if the text is too short, or the strings would
      not fit.
    OSError: If there is no good checkpoint, or no text.
  """
  # These need the extra `text`, and nothing else here does.
  from experiments.language import run
  from experiments.text import loading

  _check(length)
  text = run.text_of(experiment)
  estimates.check(
    f'The embeddings of {num_strings:,} strings of {length:,} tokens',
    num_strings * length * experiment.embedding_dim * estimates.FLOAT_BYTES,
    'num_strings or length',
    room=estimates.host_memory(),
  )
  (tokens,) = loading.evaluation_batches(
    text.streams['test'], length, length, num_strings, num_strings
  )
  trained = run.load(workdir, experiment)
  in_float32 = dataclasses.replace(experiment, precision='float32')
  _analyze(
    language_config.make_model(in_float32),
    trained.params,
    tokens[:, :-1],
    tokens[:, -1],
    experiment,
    f'the next token, {language_config.title(experiment)}',
    workdir,
  )


def _check(length: int) -> None:
  if length < 2:
    raise ValueError(f'Strings must have at least 2 symbols, got {length}.')


def _analyze(
  module, params, tokens_BxT, target_B, experiment, name, workdir
) -> None:
  """Writes and prints, for the last output's score of a symbol."""
  apply = receptive_field.of_embeddings(module, params)

  def score(x_TxD, target):
    return receptive_field.log_odds(apply(x_TxD), target)

  x_BxTxD = params['params']['embedding'][tokens_BxT]
  with progress.timed(f'Gradients of {len(tokens_BxT)} outputs'):
    share_BxT = np.asarray(
      receptive_field.cumulative_gradient(score, x_BxTxD, target_B)
    )
  has_gradient_B = np.isfinite(share_BxT).all(-1)
  if not has_gradient_B.any():
    raise ValueError('The gradient is 0: no answer depends on any symbol.')
  share_BxT = share_BxT[has_gradient_B]
  mean_T = share_BxT.mean(0)
  low_T, high_T = np.percentile(share_BxT, _BAND, axis=0)
  of_position = np.diff(share_BxT, prepend=0.0)
  num_symbols = len(mean_T)
  results = {
    'share_of_latest_half': float(mean_T[(num_symbols - 1) // 2]),
    'positions_for_half': int((mean_T < 0.5).sum()) + 1,
    'positions_for_nine_tenths': int((mean_T < 0.9).sum()) + 1,
    'share_of_positions_seen': float((of_position > 0).mean()),
    'num_strings': len(share_BxT),
    'num_strings_without_gradient': int((~has_gradient_B).sum()),
    'length': num_symbols,
    'mean': mean_T.tolist(),
  }
  rows = [
    (f'strings of length {num_symbols:,}', len(share_BxT)),
    ('positions with a gradient, share', results['share_of_positions_seen']),
    ('gradient on the most recent half', results['share_of_latest_half']),
    ('most recent positions with half', results['positions_for_half']),
    (
      'most recent positions with nine tenths',
      results['positions_for_nine_tenths'],
    ),
  ]
  print(tables.named_values(f'receptive field of {name}', rows))
  figure = _picture(name, mean_T, low_T, high_T)
  arrays = {'cumulative': share_BxT, 'tokens': tokens_BxT[has_gradient_B]}
  outputs.save(experiment, workdir, 'receptive_field', results, arrays, figure)


def _picture(name, mean_T, low_T, high_T) -> figure_lib.Figure:
  """Returns the curve as in Figure 5: from the right, the latest, upwards."""
  num_symbols = len(mean_T)
  position_T = np.arange(num_symbols, 0, -1)
  figure = figure_lib.Figure(figsize=(7, 3.8), layout='constrained')
  axes = figure.subplots()
  axes.fill_between(
    position_T,
    low_T,
    high_T,
    color=pictures.COLOURS['sky'],
    alpha=0.5,
    label=f'{_BAND[0]}th to {_BAND[1]}th percentile of strings',
  )
  axes.plot(position_T, mean_T, color=pictures.COLOURS['blue'], label='mean')
  axes.plot(
    [1, num_symbols],
    [1, 1 / num_symbols],
    color='0.3',
    linestyle=':',
    label='every position alike',
  )
  axes.set(
    title=f'Receptive field of {name}',
    xlabel='position in the string (the most recent on the right)',
    ylabel='cumulative gradient norm',
    xlim=(1, num_symbols),
    ylim=(0, 1.02),
  )
  axes.legend()
  return figure
