"""Sweeps that users define: by flags, or by a file of cells.

A file of cells is JSON, and what `grid.Preset` is:

  {"base": {"training_steps": 2000, "max_range_test_length": 100},
   "tasks": {"pairs": {"regex": "(01|10)*"}, "tomita_4": {}},
   "models": {"rnn": {"architecture_params": {"hidden_size": 64}},
              "gpt": {"architecture": "regular_gpt", "chunk_size": 3}},
   "learning_rates": [0.001, 0.003],
   "seeds": [0, 1, 2]}

Fields are the flags of `launch.train`; an automaton is its JSON, or the path of
its file; strings are the path of theirs. What a sweep is, is kept beside its
results, so that a report knows what is missing.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import json
import os
import re
import reprlib
from typing import Any

from experiments.engine import (
  errors,
  files,
  json_reading,
  options,
  parameters,
  progress,
  results,
  selection,
)
from experiments.formal import (
  adversarial,
  automata,
  held_strings,
  models,
  run,
  strings,
)
from experiments.formal import config as config_lib
from experiments.sweeps import grid, presets
from experiments.sweeps import results as results_lib

# A sweep's name, if no file gives it one.
NAME = 'own'
_LEARNING_RATES = [config_lib.Experiment.learning_rate]
_SEEDS = [0, 1, 2]

# Names are folders.
_NAME = re.compile(r'\w[\w.,=+-]{0,99}')
# Of a test: a comma stands between it and its kind of strings.
_TEST = re.compile(r'\w[\w .=+-]{0,99}')
_FIELDS = {
  field.name: field for field in dataclasses.fields(config_lib.Experiment)
}
# What a sweep has lists of.
_LISTED = {
  'learning_rate': 'learning_rates',
  'seed': 'seeds',
  'model_init_seed': 'seeds',
}
_IN_FILES = ('automaton', 'strings', 'test_strings')
_MODULES = ('task_module', 'model_module')
_MODEL_FIELDS = ('architecture', 'architecture_params', 'model_module')
# Which language, which model: cells differ in these.
OF_CELLS = (*config_lib.TASK_FIELDS, *_MODEL_FIELDS)
# Flags of a sweep. The block of RegularGPT is called as the sweep's preset.
FLAGS = tuple(name for name in _FIELDS if name not in (*_LISTED, 'preset'))
# What a file of cells may have.
_KEYS = (
  'base',
  'tasks',
  'models',
  'learning_rates',
  'seeds',
  'tests',
  'about',
)


def chosen(
  preset: str | None, cells: str | None, values: Mapping[str, Any]
) -> tuple[str, grid.Preset, dict[str, Any]]:
  """Returns the sweep that a user asks for.

  Args:
    preset: Name of a preset.
    cells: Path of a file of cells, in place of it.
    values: Fields of `Experiment`, None where they are not given. With a file,
      modules are those that it may run, with commas between them.

  Returns:
    Its name, what it is, and fields to put in place of those that its cells
    share.

  Raises:
    ValueError: If both are given, or the sweep is impossible.
  """
  fields = options.given(values)
  if preset and cells:
    raise ValueError('Give one of --preset and --cells.')
  if preset:
    return preset, presets.PRESETS[preset], fields
  if cells:
    modules = {
      name: fields.pop(name).split(',') if name in fields else []
      for name in _MODULES
    }
    return _name_of(cells), read(cells, modules), fields
  if not fields:
    raise ValueError(
      'Give --preset, --cells, or flags of launch.train, as --task.'
    )
  return NAME, _of_flags(fields), {}


def _of_flags(values: Mapping[str, Any]) -> grid.Preset:
  """Returns a sweep over learning rates and seeds: one task, one model.

  Args:
    values: Fields of `Experiment` that are given.
  """
  experiment = config_lib.Experiment(**values)
  models.check_sizes(experiment)
  of_task, of_model = (
    {name: values[name] for name in names if name in values}
    for names in (config_lib.TASK_FIELDS, _MODEL_FIELDS)
  )
  # A regex or a path makes no good name of a folder. Strings come first: beside
  # a regex or an automaton they are what is trained on.
  brought = [name for name in reversed(config_lib.SOURCES) if name in values]
  whole = dataclasses.replace(experiment, answers=config_lib.Experiment.answers)
  task = brought[0] if brought else config_lib.task_title(whole)
  if experiment.answers != whole.answers:  # No paper's cell.
    task += f'_{experiment.answers}'
  if not brought and not experiment.task_module:
    of_task['task'] = experiment.task
  if not experiment.model_module:
    of_model['architecture'] = experiment.architecture
  return grid.Preset(
    base={k: v for k, v in values.items() if k not in OF_CELLS},
    tasks={task: of_task},
    models={config_lib.model_title(experiment): of_model},
    learning_rates=_LEARNING_RATES,
    seeds=_SEEDS,
  )


def read(path: str, modules: Mapping[str, Iterable[str]]) -> grid.Preset:
  """Reads a user's file of cells.

  Args:
    path: The file.
    modules: Which may run, by the field that names them: it is not enough that
      the file does.

  Raises:
    ValueError: If it cannot be read, is no sweep, names other modules, or gives
      a size that no model reads.
  """
  preset = _read(path, _with_files)
  named = {
    (field, fields[field])
    for fields in (
      preset.base,
      *preset.tasks.values(),
      *preset.models.values(),
    )
    for field in _MODULES
    if fields.get(field)
  }
  given = {(field, name) for field in _MODULES for name in modules[field]}
  for field, name in sorted(named - given):
    raise ValueError(f'{path} names a module, {run.to_trust(field, name)}.')
  for field, name in sorted(given - named):
    raise ValueError(f'{path} names no {field} {name!r}, so leave it out.')
  with grid.blamed(path):
    grid.check_read(preset, preset.base)
    for model, fields in preset.models.items():
      of_model = dataclasses.replace(preset, models={model: fields})
      grid.check_read(of_model, fields)
  return preset


def _with_files(fields: dict[str, Any]) -> dict[str, Any]:
  """Reads what is a path; completes the automaton."""
  completed = dict(fields)
  if automaton := fields.get('automaton'):
    is_path = isinstance(automaton, str)
    found = (automata.read if is_path else automata.complete)(automaton)
    completed['automaton'] = found.fields
    for note in found.notes:
      progress.say(note)
  if held := fields.get('strings'):
    path = held if isinstance(held, str) else held['file']
    completed['strings'] = _as_held(held, strings.describe(path))
  if held := fields.get('test_strings'):
    paths = held.split(',') if isinstance(held, str) else list(held)
    tests = strings.describe_tests(paths)
    completed['test_strings'] = _as_held(held, tests)
  return completed


def _as_held(held: Any, found: dict[str, Any]) -> dict[str, Any]:
  """Returns what is held of files; what a sweep kept of them must be that."""
  if not isinstance(held, str) and held != found:
    raise ValueError(
      'what is held of strings is not what is in their files; give the paths.'
    )
  return found


def _read(path: str, change=lambda fields: fields) -> grid.Preset:
  """Reads a file of cells.

  Args:
    path: The file.
    change: What is done to the fields of base, a task or a model.

  Raises:
    ValueError: If it cannot be read, or is no sweep.
  """
  try:
    contents = json_reading.read(path)
    return _to_preset(contents, change)
  except (OSError, ValueError) as error:
    reason = error
    if isinstance(error, OSError):  # Those of buckets say more themselves.
      reason = error.strerror or errors.first_line(error)
    raise ValueError(f'Cannot read the cells of {path}: {reason}') from error


def _to_preset(contents: Any, change) -> grid.Preset:
  _check_object('it', contents, _KEYS)
  for name in ('tasks', 'models'):
    if not contents.get(name):
      raise ValueError(f'it has no {name}.')
    _check_object(name, contents[name])
    for key in contents[name]:
      if not _NAME.fullmatch(key):
        raise ValueError(
          f'{name}: {reprlib.repr(key)} is no name of a folder: letters, digits'
          ' and _ . , = + - only.'
        )

  def fields_of(where, fields):
    _check_object(where, fields, sorted({*_FIELDS} - _LISTED.keys()))
    with grid.blamed(where):
      for name, value in fields.items():
        kind = _FIELDS[name].type
        # The path of what is in a file of its own.
        if not (name in _IN_FILES and isinstance(value, str)):
          parameters.check_type(name, value, kind)
      held = {k: v for k, v in fields.items() if not isinstance(v, str)}
      held_strings.check(held.get('strings', {}), held.get('test_strings', {}))
      return change(fields)

  tests = contents.get('tests', {})
  _check_object('tests', tests, tuple(contents['tasks']))
  for task, of_task in tests.items():
    _check_object(f'tests of {task}', of_task)
    if not of_task:
      raise ValueError(f'tests of {task} must not be empty.')
    for test, params in of_task.items():
      if not _TEST.fullmatch(test) or test == adversarial.NAME:
        raise ValueError(
          f'tests of {task}: {reprlib.repr(test)} is no name of a test:'
          ' letters, digits, spaces and _ . = + - only, and not'
          f' {adversarial.NAME}.'
        )
      _check_object(f'the test {test!r} of {task}', params)
  about = contents.get('about', '')
  if not isinstance(about, str):
    raise ValueError('about must be text.')
  preset = grid.Preset(
    base=fields_of('base', contents.get('base', {})),
    **{
      name: {
        key: fields_of(f'{name}, {key}', fields)
        for key, fields in contents[name].items()
      }
      for name in ('tasks', 'models')
    },
    learning_rates=_numbers(contents, 'learning_rates', _LEARNING_RATES, float),
    seeds=_numbers(contents, 'seeds', _SEEDS, int),
    tests=tests,
    about=about,
  )
  grid.cells(preset)  # Checks the fields' types and values.
  return preset


def _check_object(
  where: str, value: Any, known: Sequence[str] | None = None
) -> None:
  if not isinstance(value, dict):
    raise ValueError(
      f'{where} must be a JSON object, got {reprlib.repr(value)}.'
    )
  for name in value if known is not None else ():
    if name in _LISTED:
      raise ValueError(
        f'{where} has {name}; give a list, {_LISTED[name]}, of the whole sweep.'
      )
    if name not in known:
      raise ValueError(
        f'{where} has {reprlib.repr(name)}; what it may have is'
        f' {", ".join(known)}.'
      )


def _numbers(
  contents: Mapping[str, Any], name: str, default: Sequence[float], kind: type
) -> Sequence[float]:
  numbers = contents.get(name, default)
  parameters.check_type(name, numbers, list[kind])
  selection.check_lists(**{name: numbers})
  return numbers


def _name_of(path: str) -> str:
  """Returns a sweep's name from its file's.

  Raises:
    ValueError: If that cannot be one.
  """
  name = os.path.basename(path).removesuffix('.json')
  others = (*presets.PRESETS, results_lib.LANGUAGE, NAME)
  if not _NAME.fullmatch(name) or name in others:
    raise ValueError(
      f'The file {path} gives the sweep its name, which must be of letters,'
      f' digits and _ . , = + - and none of {", ".join(others)}.'
    )
  return name


def keep(name: str, preset: grid.Preset, results_dir: str) -> None:
  """Writes what a sweep is beside its results.

  A sweep may grow by tasks and models, but not become another: what was
  measured would then be reported as what it is not.

  Args:
    name: Its name.
    preset: The whole of it, of which only a part may be measured now.
    results_dir: The folder of results.

  Raises:
    ValueError: If what is there cannot be read, or is another sweep.
    OSError: If it cannot be written.
  """
  path = os.path.join(results_dir, name, results_lib.DEFINITION)
  contents = json.loads(json.dumps(dataclasses.asdict(preset)))
  contents = {key: contents[key] for key in _KEYS}
  if files.exists(path):
    found = json.loads(json.dumps(dataclasses.asdict(_read(path))))
    differing = [
      kind
      for kind in ('base', 'learning_rates', 'seeds')
      if contents[kind] != found[kind]
    ]
    # Tests first: they are of the tasks that are in both.
    for kind in ('tests', 'tasks', 'models'):
      of_what = 'models' if kind == 'models' else 'tasks'
      differing += [
        f'{kind}, {key}'
        for key in found[of_what].keys() & contents[of_what].keys()
        if contents[kind].get(key) != found[kind].get(key)
      ]
      contents[kind] = {**found[kind], **contents[kind]}
    if differing:
      raise ValueError(
        f'{path} is of another sweep of this name, with other'
        f' {"; ".join(sorted(differing))}. Choose another folder, or other'
        ' names.'
      )
  results.save_json(path, contents)


def kept(results_dir: str) -> dict[str, grid.Preset]:
  """Reads the sweeps beside whose results they are kept, by name.

  Raises:
    ValueError: If one cannot be read, or has the name of a preset.
  """
  found = {}
  for path in files.below(results_dir):
    name, _, rest = path.partition(os.sep)
    if rest != results_lib.DEFINITION:
      continue
    if name in presets.PRESETS:
      raise ValueError(
        f'{os.path.join(results_dir, path)} is in the wrong place: {name} is a'
        ' preset of ours.'
      )
    found[name] = _read(os.path.join(results_dir, path))
  return found
