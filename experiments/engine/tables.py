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


def named_values(title: str, rows: Sequence[tuple[str, Any]]) -> str:
  """Returns a title and named values, one a line."""
  width = max(len(title) - 8, *(len(name) for name, _ in rows))
  lines = [title, '-' * (width + 8)]
  for name, value in rows:
    shown = fraction(value) if isinstance(value, float) else str(value)
    lines.append(f'{name:{width}}  {shown}')
  return '\n'.join(lines)


def fraction(value: float) -> str:
  """Returns a number with four digits; what is less than 1 does not look it."""
  return '>0.9999' if 0.99995 <= value < 1 else f'{value:.4f}'


def percent(value: float | None, sign: str = '') -> str:
  """Returns a percentage with one digit; None and NaN, not tested, as a dash.

  What is less than 100 does not look like it.

  Args:
    value: In percent.
    sign: '+' to show that of positive ones too.
  """
  if _is_missing(value):
    return '-'
  shown = round(value, 1) + 0.0  # Not -0.
  return '>99.9' if 99.95 <= value < 100 else f'{shown:{sign}.1f}'


def _is_missing(value: Any) -> bool:
  return value is None or value != value


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
    rows: The header first. Numbers are written as they are, None and NaN as
      nothing; text that would be a formula is put behind an apostrophe, which
      spreadsheets do not show.
  """
  buffer = io.StringIO()
  writer = csv.writer(buffer, lineterminator='\n')
  writer.writerows(map(_cell, row) for row in rows)
  return buffer.getvalue()


def _cell(value: Any) -> Any:
  if _is_missing(value):
    return None
  if isinstance(value, numbers.Number):
    return value
  shown = ' '.join(str(value).split())  # Of one line, as in Markdown.
  return f"'{shown}" if shown.startswith(_FORMULA) else shown
