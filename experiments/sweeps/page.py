"""Measured cells as one self-contained HTML file."""

import base64
from collections.abc import Callable, Sequence
import html

from experiments.engine import progress
from experiments.sweeps import (
  numbers,
  paper,
  pictures,
  results,
  tables,
)

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto;
  max-width: 80em; padding: 0 1em; color: #111; background: #fff }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; margin: 1em 0;
  font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid #ddd; padding: .25em .7em; text-align: left;
  vertical-align: top }
td.missing { color: #767676; font-style: italic }
tr.first > * { border-top: 1px solid #555 }
figure { margin: 1.5em 0 }
figcaption { font-size: 13px; color: #444 }
summary { font-weight: bold; cursor: pointer }
img { max-width: 100%; height: auto }
"""


def page(found: tables.Tables, rest: Sequence[tables.Section] = ()) -> str:
  """Returns one HTML page with all tables and pictures inside it.

  Args:
    found: Of presets.
    rest: Of languages and of protocols.
  """
  body = ['<h1>Report</h1>']
  tasks = {(name, e.cell.task) for name, es in found.items() for e in es}
  with progress.bar(len(tasks), 0, 'Pictures', 'task') as bar:
    for name, entries in found.items():
      heading = html.escape(f'{name}: {tables.num_measured(entries)}')
      body += [
        f'<h2>{heading}</h2>',
        _html_table(*tables.accuracies(entries)),
        f'<p>{html.escape(tables.legend(entries))}</p>',
        *_figures(name, entries, bar.update),
        '<details><summary>How each cell was measured</summary>',
        _html_table(*tables.provenance(entries)),
        '</details>',
      ]
  for section in rest:
    body += [
      f'<h2>{html.escape(section.title)}</h2>',
      _html_table(*section.table),
      f'<p>{html.escape(section.legend)}</p>',
    ]
    if section.details:
      body.append(_html_table(*section.details))
  return (
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width">\n'
    f'<title>Report</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n'
    + '\n'.join(body)
    + '\n</body>\n</html>\n'
  )


def _html_table(header: list[str], rows: list[list[str]]) -> str:
  lines = ['<div class="wide"><table>', '<thead><tr>']
  lines += [f'<th scope="col">{html.escape(text)}</th>' for text in header]
  lines += ['</tr></thead>', '<tbody>']
  for row in rows:
    lines.append('<tr class="first">' if row[0] else '<tr>')
    lines.append(f'<th scope="row">{html.escape(row[0])}</th>')
    lines += [
      f'<td{" class=missing" if text == tables.MISSING else ""}>'
      f'{html.escape(text)}</td>'
      for text in row[1:]
    ]
    lines.append('</tr>')
  lines += ['</tbody>', '</table></div>']
  return '\n'.join(lines)


def _figures(
  name: str, entries: Sequence[numbers.Entry], tell: Callable[[], None]
) -> list[str]:
  """Returns the pictures of each task that has a measured cell.

  Args:
    name: Of the preset.
    entries: Of it.
    tell: Called after each task.
  """
  by_task: dict[str, dict[str, dict[str, results.Result | None]]] = {}
  for entry in entries:
    if entry.setting == paper.EXTRAPOLATION:
      by_test = by_task.setdefault(entry.cell.task, {})
      by_test.setdefault(entry.test, {})[tables.model_name(entry)] = (
        entry.result
      )
  parts = []
  for task, by_test in by_task.items():
    figures = []
    trained = {}
    for test, cells in by_test.items():
      measured = {model: r for model, r in cells.items() if r is not None}
      if not measured:
        continue
      trained |= measured
      title = ', '.join(filter(None, (task, test)))
      missing = ', '.join(model for model in cells if model not in measured)
      figures.append(
        _figure(
          pictures.accuracy(
            f'{title}: accuracy against length', measured, test
          ),
          f'{name}, {title}: accuracy at each length. Lines: the mean over the'
          ' runs of the chosen learning rates; bands: from the worst to the'
          f' best of these.{missing and f" Missing: {missing}."}',
        )
      )
    if trained:
      figures.append(
        _figure(
          pictures.training(f'{task}: training', trained),
          f'{name}, {task}: loss and accuracy on the training strings, a line'
          ' for each run. Crosses: diverged and frozen.',
        )
      )
      parts += [f'<h3>{html.escape(f"{name}, {task}")}</h3>', *figures]
    tell()
  return parts


def _figure(png: bytes, caption: str) -> str:
  caption = html.escape(caption)
  data = base64.b64encode(png).decode()
  return (
    f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
    f'<figcaption>{caption}</figcaption></figure>'
  )
