"""All models of a preset, as measured so far, beside the paper."""

import dataclasses
import os
import textwrap
from typing import Any

import numpy as np

from experiments.engine import experiment as experiment_lib
from experiments.engine import files, tables
from experiments.language import config as config_lib
from experiments.language import evaluation, paper, presets, report

NAME = 'report'
_MISSING = 'missing'
_DIVERGED = 'diverged'
_SOME_DIVERGED = '†'

# Of a preset's models, by seed: what `report.load_json` returns.
Results = dict[str, dict[int, dict[str, Any]]]


def differences(
  results: dict[str, Any],
  wanted: config_lib.LanguageExperiment,
  where: str = 'here',
) -> list[str]:
  """Returns the fields that a result has otherwise than is wanted, as text.

  Args:
    results: What was measured.
    wanted: What should have been.
    where: Where that stands, for the texts.
  """
  found = experiment_lib.of_fields(
    config_lib.LanguageExperiment, results['experiment']
  )
  differing = experiment_lib.differences(found, wanted, where)
  # Of no text yet: that of the result, whichever it is.
  for name in ('tokenizer', *config_lib.FOUND_IN_TEXT):
    if not getattr(wanted, name):
      differing.pop(name, None)
  return list(differing.values())


def path_of(folder: str, model: str, seed: int) -> str:
  """Returns where a model's result lies in a preset's folder."""
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
    for file in files.below(os.path.join(folder, model)):
      if not (file.startswith('seed_') and file.endswith('.json')):
        continue
      path = os.path.join(folder, model, file)
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
      if path != path_of(folder, model, seed):
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


def write(name: str, folder: str) -> None:
  """Prints a preset's table and writes it beside the results.

  Args:
    name: Of the preset.
    folder: Of its results; `report.md`, `.csv` and `.png` are written there, if
      it has any.

  Raises:
    ValueError: If a result is damaged.
  """
  results = load(name, folder)
  if not any(results.values()):
    print(f'{folder} holds no results of {name} yet.')
    return
  curves = {model: _mean(by_seed) for model, by_seed in results.items()}
  text = _table(name, results, curves) + '\n\n' + _notes(name, results) + '\n'
  print(text, end='')
  path = os.path.join(folder, NAME)
  files.write_atomically(path + '.md', text)
  files.write_atomically(path + '.csv', _csv(name, results, curves))
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
  return _mean_of(by_seed, 'perplexity', evaluation.Perplexity)


def _differences(name: str, by_seed) -> dict[int, evaluation.Difference]:
  """Returns the means over seeds, as `_mean`, where all have differences.

  They are from the preset's shortest length.
  """
  shortest = min(presets.PRESETS[name].lengths)
  if any(min(r['perplexity']) != shortest for r in _good(by_seed)):
    return {}
  return _mean_of(by_seed, 'difference', evaluation.Difference)


def _mean_of(by_seed, key, kind):
  curves = [results[key] for results in _good(by_seed)]
  return {
    length: kind(
      *np.mean([dataclasses.astuple(c[length]) for c in curves], 0).tolist()
    )
    for length in (curves[0] if curves else ())
    if all(length in curve for curve in curves)
  }


def _table(name, results, curves) -> str:
  preset = presets.PRESETS[name]

  def cell(model, curve, length):
    if not curve:
      return _DIVERGED if results[model] else _MISSING
    value = curve[length]
    text = f'{value.perplexity:,.2f} ± {value.standard_error:,.2f}'
    if len(_good(results[model])) < len(results[model]):
      text += f' {_SOME_DIVERGED}'
    return text

  rows = []
  for model, curve in curves.items():
    rows.append([model, *(cell(model, curve, n) for n in preset.lengths)])
    if differences := _differences(name, results[model]):
      texts = (
        report.percent(differences[n]) if n in differences else ''
        for n in preset.lengths
      )
      rows.append(['- difference', *texts])
    if name == 'table3':
      published = (paper.TABLE_3[model, n] for n in preset.lengths)
      rows.append(['- paper', *(f'{value:,.2f}' for value in published)])
  return tables.markdown(['model', *(f'{n:,}' for n in preset.lengths)], rows)


def _notes(name: str, results: Results) -> str:
  """Returns what there is to know about the table's numbers."""
  preset = presets.PRESETS[name]
  lines = [
    'Perplexity of the last token by length,'
    f' {preset.num_sequences:,} sequences of the test split, mean over seeds'
    ' ± standard error of the choice of sequences,'
    ' which end in the same tokens for all seeds, models and lengths:'
    ' differences are surer than that.'
  ]
  if any(_differences(name, by_seed) for by_seed in results.values()):
    lines[0] += (
      ' Difference: by how much the perplexity is higher than after'
      f' {min(preset.lengths):,} tokens of context, over the same tokens, ±'
      ' standard error of that.'
    )
  if name == 'table3':
    lines[0] += ' Paper: Chi et al. (2023), on OpenWebText2.'
  if any(len(_good(by_seed)) < len(by_seed) for by_seed in results.values()):
    lines[0] += f' {_SOME_DIVERGED} Without the seeds that diverged.'
  for model, by_seed in results.items():
    if by_seed:
      lines.append(f'- {model}: {_provenance(preset, model, by_seed)}')
  return '\n'.join(
    textwrap.fill(line, tables.WIDTH, subsequent_indent='  ' * (line[0] == '-'))
    for line in lines
  )


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
    for text in differences(
      results, presets.experiment(preset, model, seed), 'preset'
    )
  }
  if differing:
    parts.append(f'not as the preset says: {", ".join(sorted(differing))}')
  return ', '.join(parts)


def _listed(seeds) -> str:
  return ', '.join(map(str, sorted(seeds)))


def _csv(name: str, results: Results, curves) -> str:
  rows = [
    (
      'model',
      'length',
      'seeds',
      'perplexity',
      'standard_error',
      'least_of_seeds',
      'greatest_of_seeds',
      *report.DIFFERENCE,
    )
  ]
  for model, curve in curves.items():
    differences = _differences(name, results[model])
    for length, value in curve.items():
      by_seed = [
        r['perplexity'][length].perplexity for r in _good(results[model])
      ]
      rows.append(
        (
          model,
          length,
          len(by_seed),
          value.perplexity,
          value.standard_error,
          min(by_seed),
          max(by_seed),
          *report.columns(differences.get(length)),
        )
      )
  return tables.comma_separated(rows)
