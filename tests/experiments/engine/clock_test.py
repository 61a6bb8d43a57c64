"""The time that training took, over its interruptions."""

import json

import pytest

from experiments.engine import clock


def test_times_are_added(tmp_path, monkeypatch):
  now = iter([10.0, 13.0, 100.0, 104.5])
  monkeypatch.setattr(clock.time, 'perf_counter', lambda: next(now))
  assert clock.seconds(str(tmp_path)) == 0
  with clock.running(str(tmp_path)):
    pass
  assert clock.seconds(str(tmp_path)) == 3
  with pytest.raises(KeyboardInterrupt), clock.running(str(tmp_path)):
    raise KeyboardInterrupt
  assert clock.seconds(str(tmp_path)) == 7.5


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
