"""Accuracy against length, as a picture."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib import figure as figure_lib
import numpy as np

from experiments.engine import pictures

_NUM_MARKERS = 10
_DPI = 110


class Line(NamedTuple):
  """Accuracy of runs against length.

  Attributes:
    label: In the legend.
    accuracy: At lengths 1, 2, ..., [R, lengths]; NaN where it is not tested.
    style: Of the line, as `engine.pictures.style` returns it.
  """

  label: str
  accuracy: np.ndarray
  style: Mapping[str, Any]


def picture(
  title: str,
  lines: Sequence[Line],
  trained: Collection[tuple[int, int]],
  chances: Collection[float],
) -> bytes:
  """Returns a PNG of accuracy against length.

  Args:
    title: The picture's.
    lines: Each the mean of its runs, in a band from the worst to the best.
    trained: Shortest and longest training strings, which are shaded.
    chances: Of uniform guesses, a dotted line each.
  """
  figure = figure_lib.Figure(
    figsize=(8, 3.4 + 0.1 * len(lines)), layout='constrained'
  )
  axes = figure.subplots()
  longest = max(line.accuracy.shape[1] for line in lines)
  for first, last in sorted(trained):
    lengths = f'on {first}' if first > 1 else 'up'
    axes.axvspan(
      first - 0.5,
      min(last, longest) + 0.5,
      color='0.5',
      alpha=0.2,
      linewidth=0,
      label=f'trained {lengths} to {last}',
    )
  for number, line in enumerate(lines):
    tested = np.flatnonzero(~np.isnan(line.accuracy).any(axis=0))
    percent_RxT = 100 * line.accuracy[:, tested]
    # Odd, since what is right at even lengths alone has two levels.
    every = max(1, len(tested) // _NUM_MARKERS) | 1
    axes.fill_between(
      tested + 1,
      percent_RxT.min(axis=0),
      percent_RxT.max(axis=0),
      color=line.style['color'],
      alpha=0.2,
      linewidth=0,
    )
    axes.plot(
      tested + 1,
      percent_RxT.mean(axis=0),
      **line.style,
      linewidth=1.3,
      markersize=5,
      # Lines that cover each other still show their markers.
      markevery=(number * every // len(lines), every),
      label=line.label,
    )
  for chance in sorted(chances):
    axes.axhline(
      100 * chance,
      color='0.4',
      linewidth=0.8,
      linestyle=':',
      label=f'chance ({100 * chance:.0f}%)',
    )
  axes.set(
    title=title,
    xlabel='length of the string',
    ylabel='accuracy, %',
    ylim=(-2, 104),
  )
  axes.margins(x=0.01)
  figure.legend(loc='outside lower center', ncols=2, fontsize=8)
  return pictures.png(figure, _DPI)
