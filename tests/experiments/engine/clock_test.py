"""The time that training took, over its interruptions."""

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
