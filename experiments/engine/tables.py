"""Tables as text."""

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  """Returns a table in Markdown, which a terminal shows well too.

  Args:
    header: Of the columns.
    rows: As long as the header; no text can leave its cell.
  """
  cleaned = [
    [
      ' '.join(text.split())
      .replace('\\', '\\\\')
      .replace('|', '\\|')
      .replace('<', '&lt;')
      for text in row
    ]
    for row in [header, *rows]
  ]
  widths = [max(map(len, column)) for column in zip(*cleaned, strict=True)]
  cleaned.insert(1, ['-' * width for width in widths])
  return '\n'.join(
    '| '
    + ' | '.join(
      text.ljust(width) for text, width in zip(row, widths, strict=True)
    )
    + ' |'
    for row in cleaned
  )
