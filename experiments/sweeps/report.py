"""Measured cells as pages: Markdown, CSV, and one self-contained HTML file."""

import base64
from collections.abc import Mapping, Sequence
import csv
import datetime
import html
import io
import os

from experiments.engine import files, progress
from experiments.sweeps import numbers, paper, presets, results
from experiments.sweeps import pictures as sweep_pictures

NAME = 'report'

# README's table is what stands between these two lines.
BEGIN = '<!-- results: written by launch.report -->'
END = '<!-- results end -->'

_MISSING = 'missing'
_DIVERGED = '†'
_DIFFERS = '‡'

Tables = Mapping[str, Sequence[numbers.Entry]]
# Of text: a header and rows.
_Text = tuple[list[str], list[list[str]]]


def report(
  workdir: str | None,
  results_folder: str | None,
  output_dir: str | None,
  readme: str | None,
) -> None:
  """Prints the report of a folder of results, and writes what is asked for.

  Args:
    workdir: Of a sweep; its results are in `results`, and the report is
      written into it.
    results_folder: The results themselves, in place of `workdir`.
    output_dir: Where to write `report.md`, `.csv` and `.html`; made if it does
      not exist. By default the workdir; without one, nowhere.
    readme: File in which to renew the table between the two markers.

  Raises:
    ValueError: If not exactly one folder is given, one of its results is
      damaged, or the file has no markers.
    OSError: If a file cannot be read or written.
  """
  if bool(workdir) == bool(results_folder):
    raise ValueError(
      'Give one of --workdir (of a sweep) and --results (a folder of results),'
      f' not {"both" if workdir else "neither"}.'
    )
  folder = results_folder or os.path.join(workdir, results.FOLDER)
  if not os.path.isdir(workdir or folder):
    raise ValueError(f'There is no folder {workdir or folder}.')
  tables = numbers.tables(results.load_all(folder))
  text = markdown(tables)
  if readme:
    _renew(readme, text)
  output_dir = output_dir or workdir
  if output_dir:
    files.make_folder(output_dir)
    contents = {
      'md': f'# Report\n\n{text}',
      'csv': comma_separated(tables),
      'html': page(tables),
    }
    for extension, content in contents.items():
      path = os.path.join(output_dir, f'{NAME}.{extension}')
      files.write_atomically(path, content)
  print(text)
  if output_dir:
    print(f'page: {os.path.join(output_dir, NAME)}.html')


def _renew(readme: str, text: str) -> None:
  """Replaces what is between a file's markers."""
  with open(readme, encoding='utf-8') as f:
    before, begin, rest = f.read().partition(BEGIN)
  _, end, after = rest.partition(END)
  if not (begin and end):
    raise ValueError(
      f'{readme} has no line {BEGIN!r} followed by a line {END!r}.'
    )
  files.write_atomically(readme, f'{before}{begin}\n\n{text}\n{end}{after}')


def markdown(tables: Tables) -> str:
  """Returns the tables in Markdown, which a terminal shows well too."""
  parts = []
  for name, entries in tables.items():
    parts.append(f'### {name}: {_num_measured(entries)}')
    parts.append(_markdown_table(*_accuracies(entries)))
    parts.append(_legend(entries))
    parts.append(_markdown_table(*_provenance(entries)))
  return '\n\n'.join(parts or ['Nothing is measured yet.']) + '\n'


def _markdown_table(header: list[str], rows: list[list[str]]) -> str:
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


def _num_measured(entries: Sequence[numbers.Entry]) -> str:
  cells = {(entry.preset, entry.cell.name): entry.result for entry in entries}
  number = sum(result is not None for result in cells.values())
  return f'{number} of {len(cells)} cells measured'


def _model(entry: numbers.Entry) -> str:
  """Returns a model's name, saying so where the paper does not have it."""
  is_ours = entry.cell.experiment.max_extra_levels > 0
  return entry.cell.model + (' (ours)' if is_ours else '')


def _legend(entries: Sequence[numbers.Entry]) -> str:
  """Says what the numbers of a table are."""
  about = presets.PRESETS[entries[0].preset].about
  text = f'{about} ' if about else ''
  text += 'Mean accuracy over all lengths beyond training, in percent'
  if any(entry.test for entry in entries):
    text += ' (same length: accuracy at the longest training length)'
  text += (
    '. Measured: Max / Avg / mean: the best of all runs / the mean over the'
    ' seeds at the best learning rate / the mean over all runs.'
  )
  if any(entry.paper for entry in entries):
    text += (
      ' Paper: Max / Avg of Chi et al. (2023). Difference: measured less paper.'
    )
  results_ = [entry.result for entry in entries if entry.result]
  if any(map(numbers.diverged, results_)):
    text += f' {_DIVERGED} Some runs diverged and count as frozen then.'
  if any(_differences(entry) for entry in entries):
    text += f' {_DIFFERS} Not as the preset says: see below.'
  return text


def _differences(entry: numbers.Entry) -> list[str]:
  if entry.result is None:
    return []
  return numbers.differences(entry.result, entry.cell)


def _accuracies(entries: Sequence[numbers.Entry]) -> _Text:
  """Returns the table of accuracies: rows of tasks, columns of models."""
  models = list(dict.fromkeys(map(_model, entries)))
  by_row: dict[tuple[str, ...], dict[str, numbers.Entry]] = {}
  for entry in entries:
    row = (entry.cell.task, entry.test, entry.setting if entry.test else '')
    by_row.setdefault(row, {})[_model(entry)] = entry
  rows = []
  for row, by_model in by_row.items():
    kinds = {
      'measured': [_measured(by_model[model]) for model in models],
      'paper': [_published(by_model[model]) for model in models],
      'difference': [_difference(by_model[model]) for model in models],
    }
    label = ', '.join(filter(None, row))
    for kind, texts in kinds.items():
      if any(texts):
        rows.append([label, kind, *texts])
        label = ''
  return ['task', '', *models], rows


def _percent(value: float | None, sign: str = '') -> str:
  return '-' if value is None else f'{value:{sign}.1f}'


def _measured(entry: numbers.Entry) -> str:
  if entry.ours is None:
    return _MISSING
  found = (entry.ours.max, entry.ours.avg, entry.ours.mean)
  text = ' / '.join(map(_percent, found))
  if numbers.diverged(entry.result):
    text += f' {_DIVERGED}'
  if _differences(entry):
    text += f' {_DIFFERS}'
  return text


def _published(entry: numbers.Entry) -> str:
  if entry.paper is None:
    return ''
  return f'{_percent(entry.paper.max)} / {_percent(entry.paper.avg)}'


def _difference(entry: numbers.Entry) -> str:
  if entry.ours is None or entry.paper is None:
    return ''
  pairs = ((entry.ours.max, entry.paper.max), (entry.ours.avg, entry.paper.avg))
  # Of the numbers as they are shown.
  return ' / '.join(
    _percent(None if theirs is None else round(ours, 1) - theirs, '+')
    for ours, theirs in pairs
  )


def _provenance(entries: Sequence[numbers.Entry]) -> _Text:
  """Returns how each measured cell of a table was made, a row a cell."""
  header = [
    'task',
    'model',
    'best learning rate',
    'runs',
    'diverged',
    'steps',
    'not as the preset',
    'lengths trained; tested',
    'device',
    'training + evaluation, h:mm:ss',
    'date',
    'versions',
  ]
  by_cell: dict[tuple[str, str], list[numbers.Entry]] = {}
  for entry in entries:
    if entry.ours is not None:
      by_cell.setdefault((entry.preset, entry.cell.name), []).append(entry)
  rows = []
  for same in by_cell.values():
    entry, result = same[0], same[0].result
    rates = dict.fromkeys(f'{e.ours.learning_rate:g}' for e in same)
    rows.append(
      [
        entry.cell.task,
        _model(entry),
        ', '.join(rates),
        str(len(result.runs)),
        '; '.join(
          f'learning rate {run["learning_rate"]:g}, seed {run["seed"]}, at step'
          f' {run["diverged_at"]}'
          for run in numbers.diverged(result)
        )
        or 'none',
        str(result.experiment.get('training_steps')),
        '; '.join(_differences(entry)),
        _lengths(entry),
        _device(result),
        f'{_duration(result, "training")} + {_duration(result, "evaluation")}',
        result.date,
        _versions(result),
      ]
    )
  return header, rows


def _lengths(entry: numbers.Entry) -> str:
  trained = entry.result.training_length
  longest = len(entry.result.accuracy[entry.test][0])
  return f'1..{trained}; {trained + 1}..{longest}'


def _device(result: results.Result) -> str:
  environment = result.environment
  return f'{environment.get("num_devices")} x {environment.get("device")}'


def _versions(result: results.Result) -> str:
  environment = result.environment
  commit = str(environment.get('git_commit'))[:10]
  return (
    f'jax {environment.get("jax")}, flax {environment.get("flax")},'
    f' Python {environment.get("python")}, commit {commit}'
  )


def _duration(result: results.Result, part: str) -> str:
  seconds = round(result.wall_time_s.get(part, 0))
  return str(datetime.timedelta(seconds=seconds))


def comma_separated(tables: Tables) -> str:
  """Returns every number as CSV, a line each; a missing one has none."""
  lines = [_line(entry) for entries in tables.values() for entry in entries]
  text = io.StringIO()
  writer = csv.DictWriter(text, lines[0] if lines else [], lineterminator='\n')
  writer.writeheader()
  writer.writerows(lines)
  return text.getvalue()


def _line(entry: numbers.Entry) -> dict[str, object]:
  ours, theirs, result = entry.ours, entry.paper, entry.result

  def of_result(get):
    return '' if result is None else get(result)

  def rounded(value):
    return '' if value is None else round(value, 4)

  def less(ours, theirs):
    return '' if ours is None or theirs is None else rounded(ours - theirs)

  line = {
    'preset': entry.preset,
    'task': entry.cell.task,
    'model': entry.cell.model,
    'test': entry.test,
    'setting': entry.setting,
    'status': _MISSING if ours is None else 'measured',
  }
  for name in ('max', 'avg', 'mean'):
    line[f'{name}_percent'] = rounded(getattr(ours, name, None))
  for name in ('max', 'avg'):
    line[f'paper_{name}_percent'] = rounded(getattr(theirs, name, None))
    line[f'difference_{name}'] = less(
      getattr(ours, name, None), getattr(theirs, name, None)
    )
  line |= {
    'best_learning_rate': '' if ours is None else ours.learning_rate,
    'runs': of_result(lambda r: len(r.runs)),
    'diverged_runs': of_result(lambda r: len(numbers.diverged(r))),
    'training_steps': of_result(lambda r: r.experiment.get('training_steps')),
    'training_length': of_result(lambda r: r.training_length),
    'longest_length': of_result(lambda r: len(r.accuracy[entry.test][0])),
    'chance_percent': of_result(lambda r: rounded(100 * r.chance)),
    'training_s': of_result(lambda r: r.wall_time_s.get('training')),
    'evaluation_s': of_result(lambda r: r.wall_time_s.get('evaluation')),
    'date': of_result(lambda r: r.date),
    'not_as_preset': '; '.join(_differences(entry)),
  }
  for name in ('device', 'num_devices', 'jax', 'flax', 'python', 'git_commit'):
    line[name] = of_result(lambda r, name=name: r.environment.get(name))
  return line


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
img { max-width: 100%; height: auto }
"""


def page(tables: Tables) -> str:
  """Returns one HTML page with all tables and pictures inside it."""
  body = ['<h1>Report</h1>']
  with progress.timed('Drawing the pictures'):
    for name, entries in tables.items():
      heading = html.escape(f'{name}: {_num_measured(entries)}')
      body += [
        f'<h2>{heading}</h2>',
        _html_table(*_accuracies(entries)),
        f'<p>{html.escape(_legend(entries))}</p>',
        '<h3>How each cell was measured</h3>',
        _html_table(*_provenance(entries)),
        *_figures(name, entries),
      ]
  if not tables:
    body.append('<p>Nothing is measured yet.</p>')
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
      f'<td{" class=missing" if text == _MISSING else ""}>{html.escape(text)}'
      '</td>'
      for text in row[1:]
    ]
    lines.append('</tr>')
  lines += ['</tbody>', '</table></div>']
  return '\n'.join(lines)


def _figures(name: str, entries: Sequence[numbers.Entry]) -> list[str]:
  """Returns the pictures of each task that has a measured cell."""
  by_task: dict[str, dict[str, dict[str, results.Result | None]]] = {}
  for entry in entries:
    if entry.setting == paper.EXTRAPOLATION:
      by_test = by_task.setdefault(entry.cell.task, {})
      by_test.setdefault(entry.test, {})[_model(entry)] = entry.result
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
          sweep_pictures.accuracy(
            f'{title}: accuracy against length', measured, test
          ),
          f'{name}, {title}: accuracy at each length. Lines: the mean over the'
          ' seeds of the best learning rate; bands: from the worst to the best'
          f' of these seeds.{missing and f" Missing: {missing}."}',
        )
      )
    if trained:
      figures.append(
        _figure(
          sweep_pictures.training(f'{task}: training', trained),
          f'{name}, {task}: loss and accuracy on the training strings, a line'
          ' for each run. Crosses: diverged and frozen.',
        )
      )
      parts += [f'<h3>{html.escape(f"{name}, {task}")}</h3>', *figures]
  return parts


def _figure(png: bytes, caption: str) -> str:
  caption = html.escape(caption)
  data = base64.b64encode(png).decode()
  return (
    f'<figure><img alt="{caption}" src="data:image/png;base64,{data}">'
    f'<figcaption>{caption}</figcaption></figure>'
  )
