"""What all pictures share: colours, markers, and how they become files."""

import io

from matplotlib import axis, text
from matplotlib import figure as figure_lib

# Told apart by most of the colour-blind (Okabe and Ito, 2008).
COLOURS = {
  'blue': '#0072B2',
  'orange': '#E69F00',
  'green': '#009E73',
  'purple': '#CC79A7',
  'sky': '#56B4E9',
  'vermilion': '#D55E00',
  'black': '#000000',
  'grey': '#777777',
}
_MARKERS = 'osD^vPX*<>hp'


def style(number: int) -> dict[str, str]:
  """Returns a kind's colour and marker; the first 84 kinds all differ.

  The marker is for grey.
  """
  colours = list(COLOURS.values())
  return {
    'color': colours[number % len(colours)],
    'marker': _MARKERS[number % len(_MARKERS)],
  }


def png(figure: figure_lib.Figure, dpi: int = 150) -> bytes:
  """Returns a figure as a PNG, whose texts show as they are.

  A user's symbols or regex may have dollars, which Matplotlib would read as
  mathematics; only numbers at ticks are that.
  """
  at_ticks = {
    label
    for tick in figure.findobj(axis.Tick)
    for label in (tick.label1, tick.label2)
  }
  for words in set(figure.findobj(text.Text)) - at_ticks:
    words.set_parse_math(False)
  buffer = io.BytesIO()
  figure.savefig(buffer, format='png', dpi=dpi)
  return buffer.getvalue()
