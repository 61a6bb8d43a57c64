"""Colours and markers that all pictures share."""

# Okabe and Ito's colours, told apart by the colour-blind; each comes with a
# marker of its own, for grey.
_COLOURS = (
  '#0072B2',
  '#E69F00',
  '#009E73',
  '#CC79A7',
  '#56B4E9',
  '#D55E00',
  '#000000',
)
_MARKERS = 'osD^vPX*<>hp'


def style(number: int) -> dict[str, str]:
  """Returns a kind's colour and marker; the first 84 kinds all differ."""
  return {
    'color': _COLOURS[number % len(_COLOURS)],
    'marker': _MARKERS[number % len(_MARKERS)],
  }
