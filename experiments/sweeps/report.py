"""Measured cells as pages: Markdown, CSV, and one self-contained HTML file."""

import collections
from collections.abc import Sequence
import operator
import os
import re
import shlex
import textwrap

from experiments.engine import files
from experiments.engine import results as results_lib
from experiments.engine import tables as tables_lib
from experiments.engine import workdir as workdir_lib
from experiments.sweeps import (
  mlregtest,
  numbers,
  own,
  protocol_report,
  results,
  spreadsheet,
  tables,
)
from experiments.sweeps import page as page_lib

NAME = 'report'

# What stands between these two lines of a page is the report, or the overview
# of a protocol, if the first says "results of" and its name.
BEGIN = '<!-- results: written by launch.report -->'
END = '<!-- results end -->'
_MARKED = re.compile(
  rf'(<!-- results(?: of (\w+))?: written by launch.report -->).*?{END}',
  re.DOTALL,
)

# What each cell says of itself, as others may.
_OF_EACH = (
  'learning rate',
  'score of each run by learning rate',
  'perfect runs',
  'training + evaluation',
)


def report(
  workdir: str | None,
  results_folder: str | None,
  output_dir: str | None,
  page: str | None,
) -> None:
  """Prints the report of a folder of results, and writes what is asked for.

  Args:
    workdir: Of a sweep; its results are in `results`, and the report is
      written into it.
    results_folder: The results themselves, in place of `workdir`.
    output_dir: Where to write `report.md`, `report.html` and a file of CSV for
      each kind of results; made if it does not exist. By default the workdir;
      without one, nowhere.
    page: File of Markdown in which to renew what is between two markers; see
      `renewed`.

  Where nothing is measured yet, nothing is written.

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
  folder = results_folder or os.path.join(workdir, results_lib.FOLDER)
  if not files.is_folder(workdir or folder):
    raise ValueError(f'There is no folder {workdir or folder}.')
  if workdir_lib.holds_run(workdir or folder):
    raise ValueError(
      f'{workdir or folder} holds a trained run, not a sweep: python -m'
      f' launch.compare --workdirs={shlex.quote(workdir or folder)}'
    )
  found, others = measured(folder)
  rest = sections(others)
  if not (found or rest):
    print('Nothing is measured yet.')
    return
  text = markdown(found, rest)
  new_page = renewed(page, found, others) if page else None
  output_dir = output_dir or workdir
  if output_dir:
    files.make_folder(output_dir)
    contents = {
      'md': f'# Report\n\n{text}',
      'html': page_lib.page(found, rest),
    }
    for extension, content in contents.items():
      path = os.path.join(output_dir, f'{NAME}.{extension}')
      files.write_atomically(path, content)
    for name, write, of_kind in (
      (NAME, spreadsheet.comma_separated, found),
      (mlregtest.PRESET, mlregtest.comma_separated, mlregtest.of(others)),
      (
        'protocols',
        protocol_report.comma_separated,
        protocol_report.of(others),
      ),
    ):
      if of_kind:
        path = os.path.join(output_dir, f'{name}.csv')
        files.write_atomically(path, write(of_kind))
  if page:
    files.write_atomically(page, new_page)
  print(text)
  if output_dir:
    print(f'page: {os.path.join(output_dir, NAME)}.html')


def measured(folder: str) -> tuple[tables.Tables, list[results.Result]]:
  """Returns the tables of a folder of results, and results of other kinds.

  The latter have tables of their own: see `mlregtest` and `protocol_report`.

  Raises:
    ValueError: If a result is damaged, or of no preset's cell.
  """
  found = list(results.load_all(folder))
  others = [*protocol_report.of(found), *mlregtest.of(found)]
  kinds = {r.preset for r in others}
  of_presets = (r for r in found if r.preset not in kinds)
  return numbers.tables(of_presets, own.kept(folder)), others


def renewed(
  page: str, found: tables.Tables, others: Sequence[results.Result]
) -> str:
  """Returns what is in a file of Markdown, with results between its markers.

  Args:
    page: The file.
    found: Of presets.
    others: Results of other kinds.

  Raises:
    ValueError: If it has no markers, or they ask for what is not measured.
    OSError: If it cannot be read.
  """
  try:
    contents = files.read(page).decode()
  except UnicodeDecodeError:
    raise ValueError(f'{page} is not text in UTF-8.') from None
  by_preset = protocol_report.by_preset(others)

  def with_results(match):
    begin, preset = match.groups()
    if preset is None:
      text = markdown(found, sections(others))
    elif preset in by_preset:
      table = protocol_report.overview(preset, by_preset[preset])
      text = tables_lib.markdown(*table) + '\n'
    else:
      raise ValueError(f'{page} asks for results of {preset}; there are none.')
    return f'{begin}\n\n{text}\n{END}'

  contents, number = _MARKED.subn(with_results, contents)
  if not number:
    raise ValueError(
      f'{page} has no line {BEGIN!r} followed by a line {END!r}.'
    )
  return contents


def sections(others: Sequence[results.Result]) -> list[tables.Section]:
  """Returns what a report says of results of other kinds than `tables`."""
  return protocol_report.sections(others) + mlregtest.sections(others)


def markdown(found: tables.Tables, rest: Sequence[tables.Section]) -> str:
  """Returns the tables in Markdown, which a terminal shows well too.

  Args:
    found: Of presets.
    rest: Of languages and of protocols.
  """
  parts = []
  for name, entries in found.items():
    parts.append(f'### {name}: {tables.num_measured(entries)}')
    parts.append(tables_lib.markdown(*tables.accuracies(entries)))
    parts.append(textwrap.fill(tables.legend(entries), tables_lib.WIDTH))
    parts.append('\n'.join(_provenance(*tables.provenance(entries))))
  for section in rest:
    parts.append(f'### {section.title}')
    parts.append(tables_lib.markdown(*section.table))
    parts.append(textwrap.fill(section.legend, tables_lib.WIDTH))
    if section.details:
      parts.append(tables_lib.markdown(*section.details))
  return '\n\n'.join(parts) + '\n'


def _provenance(header: list[str], rows: list[list[str]]) -> list[str]:
  """Returns how cells were measured, what is so of most cells once.

  Args:
    header: Of `tables.provenance`.
    rows: Of `tables.provenance`.
  """
  if not rows:
    return []
  usual = [
    '' if name in _OF_EACH else _usual(values)
    for name, values in zip(header, zip(*rows, strict=True), strict=True)
  ]

  def listed(row, is_shown):
    return '; '.join(
      f'{name}: {_shown(name, value)}'
      for name, value, shown in zip(header, row, is_shown, strict=True)
      if value and shown
    )

  lines = []
  # The first two columns name the cell.
  if any(usual[2:]):
    shown = [False, False, *map(bool, usual[2:])]
    lines.append(f'Unless it is said otherwise: {listed(usual, shown)}')
  for row in rows:
    shown = [False, False, *map(operator.ne, row[2:], usual[2:])]
    name = tables_lib.escaped(', '.join(row[:2]))
    lines.append(f'- {name}: {listed(row, shown)}')
  return [
    textwrap.fill(
      line, tables_lib.WIDTH, subsequent_indent='  ' * (line[0] == '-')
    )
    for line in lines
  ]


def _shown(name: str, value: str) -> str:
  """Returns a value in Markdown, flags so that they can be pasted."""
  line = ' '.join(value.split())
  if name == 'flags' and '`' not in line:
    return f'`{line}`'
  return tables_lib.escaped(value)


def _usual(values: Sequence[str]) -> str:
  """Returns what at least half of the cells have, '' if nothing is."""
  value, count = collections.Counter(values).most_common(1)[0]
  # Of a cell that has nothing it would be said.
  is_usual = len(values) > 1 and 2 * count >= len(values) and all(values)
  return value if is_usual else ''
