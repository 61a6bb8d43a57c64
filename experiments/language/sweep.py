"""All models of a preset, one after another: train, evaluate, report."""

from collections.abc import Sequence
import functools
import math
import os
from typing import Any

from experiments.engine import (
  clock,
  devices,
  files,
  locks,
  loop,
  options,
  parameters,
  progress,
  selection,
)
from experiments.engine import results as results_lib
from experiments.engine import workdir as workdir_lib
from experiments.language import config as config_lib
from experiments.language import evaluation, presets, report, run, sweep_report


def sweep(
  name: str,
  workdir: str | None = None,
  results_dir: str | None = None,
  models: Sequence[str] | None = None,
  seeds: Sequence[int] | None = None,
  training_time_s: float = math.inf,
  batch_tokens: int = config_lib.BATCH_TOKENS,
  report_only: bool = False,
  **overrides: Any,
) -> None:
  """Trains and evaluates what has no result yet, then reports.

  Run again, it goes on where it stopped.

  Args:
    name: Of the preset.
    workdir: Folder for what is in progress, made if it does not exist; by
      default `runs/` and the preset's name.
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
  selection.check_lists(models=models, seeds=seeds)
  models = list(selection.chosen('model', models, preset.models))
  parameters.check_bounds('training_time_s', training_time_s, 0)
  workdir, results_dir = selection.folders(name, workdir, results_dir)
  folder = os.path.join(results_dir, name)
  told = (
    *(name, workdir, folder, models, seeds, training_time_s, report_only),
    batch_tokens,
  )
  devices.check_alike(repr((told, overrides)))
  overrides = options.given(overrides)
  wanted = [
    (seed, model)
    for seed in seeds or preset.seeds
    for model in models
    if not report_only
  ]
  experiments = devices.on_all(
    lambda: _measurable(preset, wanted, batch_tokens, overrides)
  )
  devices.from_main(lambda: _check_folder(name, folder, experiments))
  waiting = [
    (seed, model, experiment)
    for (seed, model), experiment in zip(wanted, experiments, strict=True)
    if not _has_result(sweep_report.path_of(folder, model, seed), experiment)
  ]
  for seed, model, experiment in waiting:
    progress.say(f'{model}, seed {seed}:')
    run_dir = os.path.join(workdir, model, f'seed_{seed}')
    # To the second, the same on all processes.
    trained_s = devices.from_main(functools.partial(_whole_seconds, run_dir))
    try:
      # Interrupted in its evaluation, a model is not trained any longer.
      if trained_s < training_time_s or not trained_s:
        run.train(experiment, run_dir, training_time_s - trained_s)
      else:
        with locks.locked(run_dir):
          workdir_lib.claim(experiment, run_dir)
      results = run.evaluate(
        run_dir, preset.lengths, preset.num_sequences, batch_tokens
      )
    except loop.DivergedError as error:
      progress.say(str(error))
      results = run.diverged(experiment, error)
    path = sweep_report.path_of(folder, model, seed)
    devices.from_main(functools.partial(results_lib.save_json, path, results))
  devices.from_main(functools.partial(sweep_report.write, name, folder))


def _whole_seconds(folder: str) -> int:
  """Returns the seconds that training took so far; 0 if there was none."""
  return math.ceil(clock.seconds(folder))


def _measurable(
  preset: presets.Preset,
  wanted: Sequence[tuple[int, str]],
  batch_tokens: int,
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
  evaluation.check(
    text.streams['test'],
    preset.lengths,
    preset.num_sequences,
    batch_tokens,
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
  for by_seed in sweep_report.load(name, folder).values():
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
  return results_lib.is_measured(
    path,
    lambda: sweep_report.differences(report.load_json(path), experiment),
  )
