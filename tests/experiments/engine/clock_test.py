"""The time that training took, over all its interruptions."""

import json

import pytest

from experiments.engine import clock


def test_seconds_are_summed(tmp_path):
  assert clock.seconds(tmp_path) == 0
  for _ in range(2):
    before = clock.seconds(tmp_path)
    with clock.running(tmp_path):
      pass
    assert clock.seconds(tmp_path) > before


@pytest.mark.parametrize(
  'text',
  [
    '{"seconds": NaN}',
    '{"seconds": -1}',
    '{"seconds": Infinity}',
    '{"seconds": 1e12}',
    '{"seconds": 1' + 400 * '0' + '}',
    '{"seconds": "long"}',
    '{"seconds": null}',
    '{"second": 1}',
    '[]',
    '[' * 100_000,
    '',
    '\xff',
  ],
)
def test_what_is_no_time_is_told_and_counts_as_none(text, tmp_path, capsys):
  (tmp_path / 'wall_time.json').write_bytes(text.encode('latin-1'))
  assert clock.seconds(tmp_path) == 0
  assert 'wall_time.json is damaged' in capsys.readouterr().err
  with clock.running(tmp_path):
    pass
  found = json.loads((tmp_path / 'wall_time.json').read_text())['seconds']
  assert 0 < found < 60
