"""Pictures of measured cells: accuracy against length, and training curves."""

from collections.abc import Mapping

from matplotlib import colormaps, ticker
from matplotlib import figure as figure_lib
import numpy as np

from experiments.engine import pictures
from experiments.formal import accuracy_curves
from experiments.sweeps import numbers, results

_COLOURS = pictures.COLOURS
# By model of `presets`; told apart without colour too.
STYLES = {
  'rnn': {'color': _COLOURS['vermilion'], 'linestyle': '-', 'marker': 's'},
  'transformer': {'color': _COLOURS['purple'], 'linestyle': ':', 'marker': '^'},
  'regular_gpt_c2': {
    'color': _COLOURS['blue'],
    'linestyle': '--',
    'marker': 'o',
  },
  'regular_gpt_c3': {
    'color': _COLOURS['green'],
    'linestyle': '-.',
    'marker': 'D',
  },
  'regular_gpt_c2_extra': {
    'color': _COLOURS['black'],
    'linestyle': (0, (1, 1)),
    'marker': 'v',
  },
  'regular_gpt_c3_extra': {
    'color': _COLOURS['orange'],
    'linestyle': (0, (5, 1)),
    'marker': 'P',
  },
  'recipe_c2': {
    'color': _COLOURS['sky'],
    'linestyle': (0, (3, 1, 1, 1)),
    'marker': 'X',
  },
  'recipe_c3': {
    'color': _COLOURS['grey'],
    'linestyle': (0, (5, 1, 1, 1, 1, 1)),
    'marker': '*',
  },
}
_LINESTYLES = ('-', '--', ':')
_DPI = 110


def accuracy(
  title: str, cells: Mapping[str, results.Result], test: str
) -> bytes:
  """Returns a PNG of accuracy against length, a line for each model.

  Args:
    title: The picture's.
    cells: Results by the model's name in the picture; not empty.
    test: Which of their tests.
  """
  are_known = all(result.model in STYLES for result in cells.values())
  lines = []
  for i, (model, result) in enumerate(cells.items()):
    rates, runs = numbers.chosen(result, test)
    lines.append(
      accuracy_curves.Line(
        f'{model}, learning rate{"s" * (len(rates) > 1)}'
        f' {numbers.spelled(rates)}, {_runs(len(runs))}',
        results.accuracies(result, test)[runs],
        STYLES[result.model] if are_known else pictures.style(i),
      )
    )
  return accuracy_curves.picture(
    title,
    lines,
    {results.trained_bounds(result) for result in cells.values()},
    {result.chance for result in cells.values()},
  )


def _runs(number: int) -> str:
  return f'{number} run{"s" if number > 1 else ""}'


def training(title: str, cells: Mapping[str, results.Result]) -> bytes:
  """Returns a PNG of the training curves of every run, a column for each model.

  Args:
    title: The picture's.
    cells: Results by the model's name in the picture; not empty.
  """
  figure = figure_lib.Figure(
    figsize=(max(5, 0.8 + 2.6 * len(cells)), 4.4), layout='constrained'
  )
  axes = figure.subplots(
    2, len(cells), sharex='col', sharey='row', squeeze=False
  )
  all_rates = sorted(
    {
      rate
      for result in cells.values()
      for rate in numbers.learning_rates(result)
    }
  )
  # Ordered, as the rates are; from dark to light.
  colors = colormaps['viridis'](np.linspace(0, 0.75, len(all_rates)))
  labelled = {}
  for column, (model, result) in enumerate(cells.items()):
    steps = result.curves['step']
    for row, (name, factor) in enumerate({'loss': 1, 'accuracy': 100}.items()):
      ax = axes[row, column]
      for run, values in zip(result.runs, result.curves[name], strict=True):
        rate = run['learning_rate']
        order = all_rates.index(rate)
        (line,) = ax.plot(
          steps,
          factor * np.array(values, float),
          color=colors[order],
          linestyle=_LINESTYLES[order % len(_LINESTYLES)],
          marker='.' if len(steps) == 1 else None,
          linewidth=1,
        )
        labelled[f'learning rate {rate:g}'] = line
        if run['diverged_at'] is not None:
          (cross,) = ax.plot(
            run['diverged_at'],
            0.04,
            transform=ax.get_xaxis_transform(),
            color=colors[order],
            marker='X',
            markersize=8,
            linestyle='none',
          )
          labelled[f'diverged, learning rate {rate:g}'] = cross
    axes[0, column].set_title(model, fontsize=9)
    axes[1, column].set_xlabel('training step')
    axes[1, column].xaxis.set_major_formatter(ticker.EngFormatter(sep=''))
  # A run that diverges does not flatten the others.
  axes[0, 0].set_yscale('symlog', linthresh=1e-3)
  axes[0, 0].set_ylim(bottom=0)
  axes[0, 0].set_ylabel('loss, nats')
  axes[1, 0].set(ylabel='training accuracy, %', ylim=(-2, 104))
  figure.suptitle(title, fontsize=11)
  figure.legend(
    labelled.values(),
    labelled.keys(),
    loc='outside lower center',
    ncols=3 if len(cells) > 1 else 2,
    fontsize=8,
  )
  return pictures.png(figure, _DPI)
