"""Tables as text."""

from collections.abc import Iterable, Sequence
import csv
import io
import numbers
from typing import Any

WIDTH = 80  # Of a text beside them, in characters.
# What formulas begin with, in the spreadsheets in use.
_FORMULA = ('=', '+', '-', '@')


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
  """Returns a table in Markdown, which a terminal shows well too.

  Args:
    header: Of the columns.
    rows: As long as the header; no text can leave its cell.
  """
  cleaned = [list(map(escaped, row)) for row in [header, *rows]]
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


def escaped(text: str) -> str:
  """Returns a text as Markdown of one line, which can leave no cell."""
  return (
    ' '.join(text.split())
    .replace('\\', '\\\\')
    .replace('|', '\\|')
    .replace('<', '&lt;')
  )


def comma_separated(rows: Iterable[Sequence[Any]]) -> str:
  """Returns rows as CSV, a line each.

  Args:
    rows: The header first. Numbers are written as they are, None as nothing;
      text that would be a formula is put behind an apostrophe, which
      spreadsheets do not show.
  """
  buffer = io.StringIO()
  writer = csv.writer(buffer, lineterminator='\n')
  writer.writerows(map(_cell, row) for row in rows)
  return buffer.getvalue()


def _cell(value: Any) -> Any:
  if value is None or isinstance(value, numbers.Number):
    return value
  shown = ' '.join(str(value).split())  # Of one line, as in Markdown.
  return f"'{shown}" if shown.startswith(_FORMULA) else shown
