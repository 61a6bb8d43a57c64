"""What measured cells come to: the paper's Max and Avg, beside the paper's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses

import numpy as np

from experiments.engine import experiment as experiment_lib
from experiments.formal import config as config_lib
from experiments.formal import evaluation, models, range_evaluation
from experiments.sweeps import grid, paper, presets, protocols, results

# Fields that runs of one cell differ in, or on which no result depends.
_FREE_FIELDS = (*experiment_lib.RUN_FIELDS, 'smallest_bucket')


@dataclasses.dataclass(frozen=True)
class Numbers:
  """A cell's accuracy in one setting, in percent.

  Attributes:
    max: The best run's; None where the paper does not say.
    avg: The mean over the runs of the chosen learning rates.
    mean: The mean over all runs; None for the paper.
    learning_rates: The chosen ones; none for the paper.
  """

  max: float | None
  avg: float
  mean: float | None = None
  learning_rates: Sequence[float] = ()


@dataclasses.dataclass(frozen=True)
class Entry:
  """One number of a table, measured or not.

  Attributes:
    preset: The preset's name.
    cell: Its cell.
    test: The name of one of the cell's tests.
    setting: `paper.SAME_LENGTH` or `paper.EXTRAPOLATION`.
    ours: What was measured, or None.
    paper: What the paper reports, or None.
    result: What `ours` comes from, or None.
    about: What a report says of its preset.
    is_ours: Whether it stands beside those of another preset, which has them
      as the paper does.
  """

  preset: str
  cell: grid.Cell
  test: str
  setting: str
  ours: Numbers | None
  paper: Numbers | None
  result: results.Result | None
  about: str
  is_ours: bool


def tables(
  measured: Iterable[results.Result],
  own: Mapping[str, grid.Preset] | None = None,
) -> dict[str, list[Entry]]:
  """Returns the tables of which at least one cell is measured.

  Args:
    measured: Results of different cells.
    own: Sweeps that users defined, by name.

  Returns:
    By preset, an entry for each of its numbers, missing ones too, task by task.
    Those of a preset that stands beside another are in the other's.

  Raises:
    ValueError: If a result is not of a preset's cell.
  """
  by_cell = {(r.preset, r.task, r.model): r for r in measured}
  all_presets = {**(own or {}), **presets.PRESETS}
  # The paper's cells are shown, if missing, wherever ours are.
  found = {name for name, _, _ in by_cell}
  table_of = {n: preset.beside or n for n, preset in all_presets.items()}
  shown = found | {table_of.get(name, name) for name in found}
  known = {
    (name, cell.task, cell.model): cell
    for name, preset in all_presets.items()
    if name in shown
    for cell in grid.cells(preset)
  }
  for key, result in by_cell.items():
    if key not in known:
      raise results.of_no_preset(result)
    tests = _tests(known[key])
    for test in result.accuracy:
      if test not in tests:
        raise ValueError(f'The cell {"/".join(key)} has no test {test!r}.')
  by_table: dict[str, list[Entry]] = {}
  for name, preset in all_presets.items():
    if name not in shown:
      continue
    entries = by_table.setdefault(table_of[name], [])
    for key, cell in known.items():
      if key[0] == name:
        entries.extend(_entries(name, preset, cell, by_cell.get(key)))
  return by_table


def _tests(cell: grid.Cell) -> list[str]:
  """Returns the names of a cell's tests, of further kinds of strings too."""
  return [
    evaluation.named(test, kind)
    for test in cell.tests
    for kind in evaluation.names(cell.experiment)
  ]


def _entries(
  name: str,
  preset: grid.Preset,
  cell: grid.Cell,
  result: results.Result | None,
) -> list[Entry]:
  entries = []
  for test in _tests(cell):
    # Only the table of named tests asks for the training length.
    settings = (paper.SAME_LENGTH,) if test and test in cell.tests else ()
    for setting in (*settings, paper.EXTRAPOLATION):
      is_measured = result is not None and _is_tested(result, test)
      entries.append(
        Entry(
          name,
          cell,
          test,
          setting,
          measure(result, test, setting) if is_measured else None,
          _published(preset.paper, cell, test, setting),
          result if is_measured else None,
          about=preset.about,
          is_ours=bool(preset.beside),
        )
      )
  return entries


def _is_tested(result: results.Result, test: str) -> bool:
  """Returns whether a result has a test, and any length of it."""
  has_test = test in result.accuracy
  return has_test and not np.isnan(results.accuracies(result, test)).all()


def _published(
  table: int, cell: grid.Cell, test: str, setting: str
) -> Numbers | None:
  if table == 1:
    return Numbers(*paper.TABLE_1[cell.task, cell.model])
  if table == 2:
    return Numbers(None, paper.TABLE_2[cell.model, setting, test])
  return None


def measure(result: results.Result, test: str, setting: str) -> Numbers:
  """Returns Max and Avg as Chi et al. (2023) define them, and the overall mean.

  A run's score is its mean accuracy on lengths training_length + 1 .. longest,
  both included, or its accuracy at training_length (captions of tables 1, 2).
  Max is over all runs, Avg over the seeds of the chosen learning rate (section
  5.1), of all where several are equally good. Diverged runs count, with the
  parameters they were frozen with.
  """
  scores = scores_of_runs(result, test, setting)
  rates, runs = chosen(result, test, setting)
  return Numbers(
    max=float(scores.max()),
    avg=float(scores[runs].mean()),
    mean=float(scores.mean()),
    learning_rates=rates,
  )


def scores_of_runs(
  result: results.Result, test: str, setting: str
) -> np.ndarray:
  """Returns each run's score in percent, [R]."""
  accuracy_RxT = results.accuracies(result, test)
  if setting == paper.SAME_LENGTH:
    return 100 * accuracy_RxT[:, result.training_length - 1]
  scores = []
  for accuracy_T in accuracy_RxT:
    score = range_evaluation.score(accuracy_T, result.training_length)
    # Some files of strings have no longer ones.
    scores.append(range_evaluation.mean(accuracy_T) if score is None else score)
  # NaN where nothing is tested: not all languages have pairs of some lengths.
  return 100 * np.array(scores, float)


def chosen(
  result: results.Result, test: str, setting: str = paper.EXTRAPOLATION
) -> tuple[list[float], list[int]]:
  """Returns the learning rates of the highest mean, ascending, and their runs.

  The mean is of accuracy on training lengths; in the paper's tables of what is
  shown. It is often the same at several rates, between which nothing that may
  be seen chooses. Equal is what differs by rounding alone.
  """
  if is_chosen_on_test(result.preset):
    score_R = scores_of_runs(result, test, setting)
  else:
    score_R = on_training_lengths(result)
  by_rate = means_by_rate(result, np.nan_to_num(score_R))
  best = round(max(by_rate.values()), 9)
  rates = [rate for rate, mean in by_rate.items() if round(mean, 9) == best]
  return rates, runs_at(result, rates)


def is_chosen_on_test(preset: str) -> bool:
  """Whether learning rates are chosen by what is shown, as in the paper."""
  return preset in presets.PRESETS and bool(presets.PRESETS[preset].paper)


def on_training_lengths(result: results.Result) -> np.ndarray:
  """Returns each run's accuracy on fresh strings, in percent, [R].

  They are the task's own, or those of all named tests, but no further kinds;
  of training lengths, in protocols below those that are scored. NaN where none
  is tested.
  """
  own = {test.partition(', ')[0] for test in result.accuracy}
  if '' in result.accuracy:
    own = {''}
  last = min(result.training_length, longest_unscored(result))
  accuracy_RxN = np.concatenate(
    [results.accuracies(result, test)[:, :last] for test in sorted(own)], axis=1
  )
  return 100 * means(accuracy_RxN)


def longest_unscored(result: results.Result) -> int:
  """Returns the length before the first that is scored."""
  if result.preset not in protocols.PROTOCOLS:
    return result.training_length
  usual = protocols.PRESETS[result.preset].base['sequence_length']
  longer = max(0, result.training_length - usual)
  return protocols.PROTOCOLS[result.preset].first - 1 + longer


def means(accuracy_RxT: np.ndarray) -> np.ndarray:
  """Returns each run's mean over what is tested, [R]; NaN where nothing is."""
  return np.array(list(map(range_evaluation.mean, accuracy_RxT)), float)


def learning_rates(result: results.Result) -> list[float]:
  """Returns a result's learning rates, ascending."""
  return sorted({run['learning_rate'] for run in result.runs})


def means_by_rate(
  result: results.Result, score_R: np.ndarray
) -> dict[float, float]:
  """Returns the mean of a number of each run at each rate, ascending."""
  return {
    rate: float(score_R[runs_at(result, [rate])].mean())
    for rate in learning_rates(result)
  }


def runs_at(result: results.Result, rates: Collection[float]) -> list[int]:
  """Returns which runs have one of some learning rates."""
  return [
    i for i, run in enumerate(result.runs) if run['learning_rate'] in rates
  ]


def spelled(rates: Iterable[float]) -> str:
  """Returns learning rates as a report has them."""
  return ', '.join(f'{rate:g}' for rate in rates)


def is_perfect(accuracy_RxT: np.ndarray, training_length: int) -> np.ndarray:
  """Returns which runs are right on all that is tested beyond training, [R].

  Args:
    accuracy_RxT: At lengths 1, 2, ...; NaN where it is not tested.
    training_length: The longest training string. Where nothing beyond it is
      tested, no run is perfect.
  """
  beyond = accuracy_RxT[:, training_length:]
  is_tested = ~np.isnan(beyond)
  return ((beyond == 1) | ~is_tested).all(axis=1) & is_tested.any(axis=1)


def has_longer(result: results.Result, test: str) -> bool:
  """Returns whether any length of a test is beyond training."""
  beyond = results.accuracies(result, test)[:, result.training_length :]
  return bool((~np.isnan(beyond)).any())


def num_perfect(result: results.Result, test: str | None = None) -> int:
  """Returns how many runs are right on all strings beyond training.

  Args:
    result: What was measured.
    test: On the strings of this one alone.
  """
  tests = result.accuracy if test is None else [test]
  accuracies = [results.accuracies(result, test) for test in tests]
  # A file of test strings may have no longer ones, which then says nothing.
  accuracy_RxT = np.concatenate(
    [accuracy[:, result.training_length :] for accuracy in accuracies], axis=1
  )
  return int(is_perfect(accuracy_RxT, 0).sum())


def diverged(result: results.Result) -> list[dict]:
  """Returns the runs that diverged."""
  return [run for run in result.runs if run['diverged_at'] is not None]


def differences(
  result: results.Result, cell: grid.Cell, where: str = 'preset'
) -> list[str]:
  """Returns how a result was made otherwise than a cell says.

  Args:
    result: What was measured.
    cell: The cell.
    where: Where the cell stands, for the texts.

  Returns:
    One text for each difference, as of `experiment.differences`.
  """
  wanted = results.stored(cell.experiment)
  differing = experiment_lib.differences(
    results.experiment_of(result),
    config_lib.Experiment(**wanted),
    where,
  )
  free = {*_FREE_FIELDS, *models.unread_sizes(cell.experiment)}
  texts = [text for k, text in differing.items() if k not in free]
  runs = [(run['learning_rate'], run['seed']) for run in result.runs]
  if sorted(runs) != sorted(cell.runs):
    texts.append(f'{_spelled(runs)} ({where}: {_spelled(cell.runs)})')
  return texts


def _spelled(runs: Sequence[tuple[float, int]]) -> str:
  rates, seeds = (sorted(set(values)) for values in zip(*runs, strict=True))
  return (
    f'{len(runs)} run{"s" * (len(runs) > 1)} of learning'
    f' rate{"s" * (len(rates) > 1)} {spelled(rates)}'
    f' and seed{"s" * (len(seeds) > 1)} {", ".join(map(str, seeds))}'
  )
