"""Strings of files in sweeps that users define."""

import dataclasses
import json

import pytest

from experiments.sweeps import grid, own, sweep


@pytest.mark.parametrize(
  ('base', 'task', 'flags', 'length'),
  [
    ({}, {}, {}, 6),
    ({'sequence_length': 4}, {}, {}, 4),
    ({'sequence_length': 4}, {'sequence_length': 5}, {}, 5),
    ({'sequence_length': 4}, {}, {'sequence_length': 3}, 3),
    ({}, {}, {'sequence_length': 3}, 3),
  ],
)
def test_strings_say_how_long_they_are_where_nobody_does(
  base, task, flags, length, tmp_path
):
  file = tmp_path / 'a.txt'
  file.write_text('aba\tTRUE\nabbaba\tFALSE\n')
  cells = {
    'base': base,
    'tasks': {'a': {'strings': str(file), **task}},
    'models': {'rnn': {}},
  }

  def read(cells):
    path = tmp_path / 'mine.json'
    path.write_text(json.dumps(cells))
    return own.read(str(path), {'task_module': [], 'model_module': []})

  preset = read(cells)
  (cell,) = grid.cells(sweep.narrowed(preset, **flags))
  assert cell.experiment.sequence_length == length
  # What a sweep kept is a file of cells too, while its files are the same.
  kept = json.loads(json.dumps(dataclasses.asdict(preset)))
  cells['tasks'] = kept['tasks']
  assert read(cells).tasks == preset.tasks
  file.write_text('aba\tTRUE\nabba\tFALSE\n')
  with pytest.raises(ValueError, match='is not what is in their files'):
    read(cells)
