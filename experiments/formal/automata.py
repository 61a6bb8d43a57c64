"""Automata that users bring: read, made smaller, written in another format."""

import os
from typing import Any

from experiments.engine import json_reading, progress, results
from experiments.formal import config as config_lib
from tasks.automata import completion, fields, reading, regex, writing


def read(path: str | os.PathLike) -> reading.Automaton:
  """See `tasks.automata.reading.read`; its JSON is as strict as all of ours."""
  return reading.read(path, json_reading.parse)


def complete(automaton: dict[str, Any]) -> reading.Automaton:
  """Returns what `read` would of a file that holds this JSON object.

  Raises:
    ValueError: If it is no automaton.
  """
  return reading.Automaton(*completion.complete(fields.describe(automaton)))


def read_folder(folder: str) -> dict[str, dict[str, Any]]:
  """Returns the automata of a folder's files, by their names without endings.

  Says what was done to them. Files of other endings are left alone.

  Raises:
    ValueError: If there is none, two have one name, or one cannot be read.
  """
  try:
    names = sorted(os.listdir(folder))
  except OSError as error:
    raise ValueError(
      f'Cannot read {folder}: {error.strerror or error}.'
    ) from error
  endings = sorted(['.json', *reading.FORMATS])
  found = {}
  for name in names:
    stem, ending = os.path.splitext(name)
    if ending.lower() not in endings:
      continue
    if stem in found:
      raise ValueError(f'{folder} has two automata called {stem}.')
    found[stem], notes = read(os.path.join(folder, name))
    for note in notes:
      progress.say(note)
  if not found:
    raise ValueError(
      f'{folder} has no automaton: no file whose name ends in'
      f' {", ".join(endings)}.'
    )
  return found


def read_alphabet(text: str, pattern: str) -> list[str]:
  """See `tasks.automata.regex.read_alphabet`; its JSON likewise."""
  return regex.read_alphabet(text, pattern, json_reading.parse)


def minimized(automaton: dict[str, Any]) -> tuple[dict[str, Any], str]:
  """Returns the smallest automaton that is equal, and what there is to say."""
  smaller = fields.minimized(automaton)
  note = (
    f'--minimize leaves {len(smaller["states"])} of'
    f' {len(automaton["states"])} states.'
  )
  return smaller, note


def convert(
  automaton: dict[str, Any] | None,
  pattern: str | None,
  alphabet: str | None,
  output: str,
) -> None:
  """Writes an automaton, in the format that a file's name says.

  Args:
    automaton: Its JSON object.
    pattern: A regular expression, in place of it.
    alphabet: Of the expression; None for that of `Experiment`.
    output: The file; its folder is made if it does not exist.

  Raises:
    ValueError: If there isn't one automaton, or it doesn't fit the format.
    OSError: If the file cannot be written.
  """
  if bool(automaton) == bool(pattern):
    raise ValueError('Give one of --automaton and --regex.')
  if automaton and alphabet is not None:
    raise ValueError('--alphabet is for --regex.')
  if pattern:
    if alphabet is None:
      alphabet = config_lib.Experiment.alphabet
    symbols = read_alphabet(alphabet, pattern)
    automaton = regex.to_fields(pattern, symbols)
  results.save(output, writing.to_text(automaton, output))
  progress.say(
    f'{output}: {len(automaton["states"])} states,'
    f' {len(automaton["alphabet"])} symbols.'
  )
