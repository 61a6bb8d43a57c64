"""All models of a preset: train, evaluate, and report beside the paper."""

from collections.abc import Sequence
import csv
import dataclasses
import functools
import glob
import io
import math
import os
from typing import Any

import numpy as np

from experiments.engine import clock, devices, files, loop, progress
from experiments.engine import workdir as workdir_lib
from experiments.language import config as config_lib
from experiments.language import evaluation, presets, report, run
from experiments.sweeps import paper
from experiments.sweeps import results as results_lib
from experiments.text import loading

NAME = 'report'
_MISSING = 'missing'
_DIVERGED = 'diverged'
_SOME_DIVERGED = '†'

# Of a preset's models, by seed: what `report.load_json` returns.
Results = dict[str, dict[int, dict[str, Any]]]


def sweep(
  name: str,
  workdir: str,
  results_dir: str = '',
  models: Sequence[str] = (),
  seeds: Sequence[int] = (),
  training_time_s: float = math.inf,
  batch_tokens: int = config_lib.BATCH_TOKENS,
  report_only: bool = False,
  **overrides: Any,
) -> None:
  """Trains and evaluates what has no result yet, then reports.

  Run again, it goes on where it stopped.

  Args:
    name: Of the preset.
    workdir: Folder for what is in progress, made if it does not exist.
    results_dir: Folder for the results; by default `results` in the workdir.
    models: Only these of the preset.
    seeds: In place of the preset's.
    training_time_s: Seconds of training a model, after which it is evaluated
      as it is.
    batch_tokens: Of the evaluation, see `evaluation.last_token_losses`.
    report_only: Whether to measure nothing.
    **overrides: Fields of all experiments, in place of the preset's, where not
      None.

  Raises:
    ValueError: If a model is unknown, an experiment impossible, or a result of
      another one.
    stopping.RunInterruptedError: If a signal came; all is saved.
    OSError: If a file cannot be read or written.
  """
  preset = presets.PRESETS[name]
  unknown = [model for model in models if model not in preset.models]
  if unknown:
    raise ValueError(
      f'{name} has no model {unknown[0]!r}; it has {", ".join(preset.models)}.'
    )
  clock.check_limit('training_time_s', training_time_s)
  folder = os.path.join(
    results_dir or os.path.join(workdir, results_lib.FOLDER), name
  )
  told = (name, workdir, folder, models, seeds, training_time_s, report_only)
  devices.check_alike(repr((told, overrides)))
  overrides = {k: v for k, v in overrides.items() if v is not None}
  wanted = [
    (seed, model)
    for seed in seeds or preset.seeds
    for model in models or preset.models
    if not report_only
  ]
  experiments = devices.on_all(lambda: _measurable(preset, wanted, overrides))
  devices.from_main(lambda: _check_folder(name, folder, experiments))
  waiting = [
    (seed, model, experiment)
    for (seed, model), experiment in zip(wanted, experiments, strict=True)
    if not devices.from_main(
      functools.partial(_has_result, _path(folder, model, seed), experiment)
    )
  ]
  for seed, model, experiment in waiting:
    progress.say(f'{model}, seed {seed}:')
    run_dir = os.path.join(workdir, model, f'seed_{seed}')
    trained_s = clock.seconds(run_dir)
    try:
      # Interrupted in its evaluation, a model is not trained any longer.
      if trained_s < training_time_s or not trained_s:
        run.train(experiment, run_dir, training_time_s - trained_s)
      else:
        with files.locked(run_dir):
          workdir_lib.claim(experiment, run_dir)
      results = run.evaluate(
        run_dir, preset.lengths, preset.num_sequences, batch_tokens
      )
    except loop.DivergedError as error:
      progress.say(str(error))
      results = run.diverged(run_dir, error)
    path = _path(folder, model, seed)
    devices.from_main(functools.partial(report.save_json, results, path))
  devices.from_main(functools.partial(write_report, name, folder))


def _measurable(
  preset: presets.Preset,
  wanted: Sequence[tuple[int, str]],
  overrides: dict[str, Any],
) -> list[config_lib.LanguageExperiment]:
  """Returns the experiments of seeds and models, which know their text.

  Raises:
    ValueError: If one is impossible to train, or then to evaluate.
    OSError: If there is no prepared text.
  """
  experiments = [
    presets.experiment(preset, model, seed, **overrides)
    for seed, model in wanted
  ]
  if not experiments:
    return []
  text = run.load_text(experiments[0])
  loading.check_long_enough(
    text.streams['test'], max(preset.lengths), preset.num_sequences
  )
  return [run.trainable(experiment, text) for experiment in experiments]


def _check_folder(
  name: str,
  folder: str,
  experiments: Sequence[config_lib.LanguageExperiment],
) -> None:
  """Checks that results of some experiments can join those of a folder.

  Raises:
    ValueError: If one there is damaged, or of another text.
    OSError: If the folder cannot be made.
  """
  if not experiments:
    return
  files.make_folder(folder)
  for by_seed in load(name, folder).values():
    for results in by_seed.values():
      trained_on = results['experiment']['fingerprint']
      if trained_on != experiments[0].fingerprint:
        raise ValueError(
          f'{folder} holds models that were trained on another text. Choose'
          ' another folder for the results.'
        )


def _has_result(path: str, experiment: config_lib.LanguageExperiment) -> bool:
  """Whether an experiment is measured.

  Raises:
    ValueError: If what is measured is another one.
  """
  if not os.path.exists(path):
    return False
  differing = _differences(report.load_json(path), experiment)
  if differing:
    raise ValueError(
      f'{path} is of another experiment: {", ".join(differing)}. Choose another'
      ' folder for the results.'
    )
  return True


def _differences(
  results: dict[str, Any], wanted: config_lib.LanguageExperiment
) -> list[str]:
  """Returns the fields that a result has otherwise, as `batch_size=16`."""
  found = config_lib.LanguageExperiment(**results['experiment'])
  # Of no text yet: that of the result, whichever it is.
  free = {
    name
    for name in ('tokenizer', *config_lib.FOUND_IN_TEXT)
    if not getattr(wanted, name)
  }
  return [
    field.metadata.get('if_other')
    or f'{field.name}={getattr(found, field.name)!r}'
    for field in dataclasses.fields(found)
    if not field.metadata.get('may_change')
    and field.name not in free
    and getattr(found, field.name) != getattr(wanted, field.name)
  ]


def _path(folder: str, model: str, seed: int | str) -> str:
  return os.path.join(folder, model, f'seed_{seed}.json')


def load(name: str, folder: str) -> Results:
  """Returns the results of a preset's models that a folder holds, by seed.

  Raises:
    ValueError: If a file is damaged, or lacks a length of the preset.
  """
  preset = presets.PRESETS[name]
  found: Results = {}
  for model in preset.models:
    found[model] = {}
    for path in sorted(glob.glob(_path(glob.escape(folder), model, '*'))):
      results = report.load_json(path)
      is_as_said = (
        results['perplexity'].keys() >= set(preset.lengths)
        and results['num_sequences'] == preset.num_sequences
      )
      if not (results['diverged'] or is_as_said):
        raise ValueError(
          f'{path} has not the lengths, or the number of sequences, of {name}.'
        )
      trained_on = results['experiment']['fingerprint']
      if results['evaluated_on']['fingerprint'] != trained_on:
        raise ValueError(f'{path} was tested on another text.')
      seed = results['experiment']['seed']
      if path != _path(folder, model, seed):
        raise ValueError(f'{path} is of seed {seed}; it is in the wrong place.')
      found[model][seed] = results
  texts = {
    results['experiment']['fingerprint']
    for by_seed in found.values()
    for results in by_seed.values()
  }
  if len(texts) > 1:
    raise ValueError(f'{folder} holds models that were trained on other texts.')
  return found


def write_report(name: str, folder: str) -> None:
  """Prints a preset's table and writes it beside the results.

  Args:
    name: Of the preset.
    folder: Of its results; `report.md`, `.csv` and `.png` are written there, if
      it has any.

  Raises:
    ValueError: If a result is damaged.
  """
  results = load(name, folder)
  curves = {model: _mean(by_seed) for model, by_seed in results.items()}
  text = _table(name, results, curves) + '\n\n' + _notes(name, results) + '\n'
  print(text, end='')
  if not any(results.values()):
    print(f'{folder} holds no results of {name} yet.')
    return
  path = os.path.join(folder, NAME)
  files.write_atomically(path + '.md', text)
  files.write_atomically(path + '.csv', _csv(results, curves))
  trained = presets.experiment(
    presets.PRESETS[name], next(iter(results)), 0
  ).sequence_length
  picture = report.picture({k: v for k, v in curves.items() if v}, trained)
  files.write_atomically(path + '.png', picture)
  print(f'plot: {path}.png')


def _good(by_seed: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
  """Returns the results of the seeds that did not diverge."""
  return [results for results in by_seed.values() if not results['diverged']]


def _mean(
  by_seed: dict[int, dict[str, Any]],
) -> dict[int, evaluation.Perplexity]:
  """Returns the mean over seeds of what was measured, by length.

  The standard errors are averaged too: all seeds are tested on the same
  strings, so more seeds do not make them smaller.
  """
  curves = [results['perplexity'] for results in _good(by_seed)]
  return {
    length: evaluation.Perplexity(
      *np.mean([dataclasses.astuple(c[length]) for c in curves], 0).tolist()
    )
    for length in (curves[0] if curves else ())
    if all(length in curve for curve in curves)
  }


def _table(name, results, curves) -> str:
  preset = presets.PRESETS[name]
  lines = [
    '| length | ' + ' | '.join(curves) + ' |',
    '|---' * (len(curves) + 1) + '|',
  ]
  for length in preset.lengths:
    row = [f'{length:,}']
    for model, curve in curves.items():
      cell = _DIVERGED if results[model] else _MISSING
      if curve:
        value = curve[length]
        cell = f'{value.perplexity:,.2f} ± {value.standard_error:,.2f}'
        if len(_good(results[model])) < len(results[model]):
          cell += f' {_SOME_DIVERGED}'
      if name == 'table3':
        cell += f' ({paper.TABLE_3[model, length]:,.2f})'
      row.append(cell)
    lines.append('| ' + ' | '.join(row) + ' |')
  return '\n'.join(lines)


def _notes(name: str, results: Results) -> str:
  """Returns what there is to know about the table's numbers."""
  preset = presets.PRESETS[name]
  lines = [
    f'Perplexity of the last token, {preset.num_sequences:,} sequences of the'
    ' test split, mean over seeds ± standard error of the choice of sequences,'
    ' which end in the same tokens for all seeds, models and lengths:'
    ' differences are surer than that.'
  ]
  if name == 'table3':
    lines[0] += ' In parentheses: Chi et al. (2023), on OpenWebText2.'
  if any(len(_good(by_seed)) < len(by_seed) for by_seed in results.values()):
    lines[0] += f' {_SOME_DIVERGED} Without the seeds that diverged.'
  for model, by_seed in results.items():
    if by_seed:
      lines.append(f'- {model}: {_provenance(preset, model, by_seed)}')
  return '\n'.join(lines)


def _provenance(preset, model: str, by_seed) -> str:
  """Returns how a model was measured, and what is not as in the preset."""
  first, *_ = by_seed.values()
  wanted = presets.experiment(preset, model, 0)
  steps = {results['step'] for results in _good(by_seed)}
  parts = [
    f'{first["num_parameters"] / 1e6:.2f} M parameters',
    f'of seeds {_listed(by_seed)} (the preset has {_listed(preset.seeds)})',
    *(
      f'seed {seed} diverged at step {r["step"]:,}'
      for seed, r in by_seed.items()
      if r['diverged']
    ),
  ]
  if steps:
    parts.append(
      ' and '.join(f'{step:,}' for step in sorted(steps))
      + f' of {wanted.training_steps:,} steps'
    )
  parts.append(f'{first["experiment"]["tokenizer"]} tokens')
  cards = {results['environment']['device'] for results in by_seed.values()}
  parts.append(' and '.join(sorted(cards)))
  differing = {
    text
    for seed, results in by_seed.items()
    for text in _differences(results, presets.experiment(preset, model, seed))
  }
  if differing:
    parts.append(f'not as the preset says: {", ".join(sorted(differing))}')
  return ', '.join(parts)


def _listed(seeds) -> str:
  return ', '.join(map(str, sorted(seeds)))


def _csv(results: Results, curves) -> str:
  text = io.StringIO()
  writer = csv.writer(text, lineterminator='\n')
  writer.writerow(
    [
      'model',
      'length',
      'seeds',
      'perplexity',
      'standard_error',
      'least_of_seeds',
      'greatest_of_seeds',
    ]
  )
  for model, curve in curves.items():
    for length, value in curve.items():
      by_seed = [
        r['perplexity'][length].perplexity for r in _good(results[model])
      ]
      writer.writerow(
        [
          model,
          length,
          len(by_seed),
          value.perplexity,
          value.standard_error,
          min(by_seed),
          max(by_seed),
        ]
      )
  return text.getvalue()
