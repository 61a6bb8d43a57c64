"""From one format of automata to another."""

from typing import Any

from experiments.engine import files, progress
from tasks.automata import regex, writing


def convert(
  automaton: dict[str, Any], pattern: str, alphabet: str, output: str
) -> None:
  """Writes an automaton, in the format that a file's name says.

  Args:
    automaton: Its JSON object.
    pattern: A regular expression, in place of it.
    alphabet: Of the expression.
    output: The file.

  Raises:
    ValueError: If there isn't one automaton, or it doesn't fit the format.
    OSError: If the file cannot be written.
  """
  if bool(automaton) == bool(pattern):
    raise ValueError('Give one of --automaton and --regex.')
  if pattern:
    symbols = regex.read_alphabet(alphabet, pattern)
    automaton = regex.to_fields(pattern, symbols)
  files.write_atomically(output, writing.to_text(automaton, output))
  progress.say(
    f'{output}: {len(automaton["states"])} states,'
    f' {len(automaton["alphabet"])} symbols.'
  )
