"""Flags of XLA, asked for where they exist."""

import json
import os
import pathlib
import subprocess
import sys

_PROGRAM = """
import json, sys
from experiments.engine import programs
print(json.dumps(programs.known_options(json.loads(sys.argv[1]))))
"""


def with_known(options):
  """Returns XLA_FLAGS with those of the options that XLA has.

  A process of its own asks: an unknown flag would end this one. The workers of
  pytest inherit what it found.
  """
  given = os.environ.get('XLA_FLAGS', '')
  if 'PYTEST_XDIST_WORKER' in os.environ:
    return given
  printed = subprocess.run(
    [sys.executable, '-c', _PROGRAM, json.dumps(options)],
    cwd=pathlib.Path(__file__).parents[1],
    env={**os.environ, 'JAX_PLATFORMS': 'cpu'},
    check=True,
    stdout=subprocess.PIPE,
  ).stdout
  known = json.loads(printed)
  flags = [f'--{name}={json.dumps(value)}' for name, value in known.items()]
  return ' '.join([given, *flags])
