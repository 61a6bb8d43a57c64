"""Pictures of what users write."""

import io

from matplotlib import figure as figure_lib
import pytest

from experiments.engine import pictures


def _draw(words):
  """Returns a figure and its texts."""
  figure = figure_lib.Figure(figsize=(4, 3), layout='constrained')
  panel = figure.subfigures()
  axes = panel.subplots()
  axes.plot([1, 1000], [0.01, 100], label=words)
  axes.set(yscale='log')
  legend = axes.legend(title=words)
  return figure, [
    figure.suptitle(words),
    axes.set_title(words),
    axes.xaxis.get_label(),
    axes.text(1, 1, words),
    axes.annotate(words, (1, 2)),
    *legend.get_texts(),
    legend.get_title(),
  ]


# Matplotlib would read the first three as mathematics: the first with an error.
@pytest.mark.parametrize('words', ['$_$', '$a$', r'\$a $b$', '$', 'plain'])
def test_texts_show_as_they_are_and_numbers_as_powers(words):
  figure, texts = _draw(words)
  for text in texts:
    text.set_parse_math(False)
  expected = io.BytesIO()
  figure.savefig(expected, format='png', dpi=50)
  figure, _ = _draw(words)
  assert pictures.png(figure, dpi=50) == expected.getvalue()
