"""What a watcher sees."""

import time

import pytest

from experiments.engine import progress


@pytest.mark.parametrize('is_nested', [False, True])
def test_bars_do_not_count_the_time_of_what_is_timed(is_nested, monkeypatch):
  """And count all other time, that since they were last shown too."""
  now = 0.0
  for name in ('time', 'perf_counter'):
    monkeypatch.setattr(time, name, lambda: now)
  with progress.bar(100, 0, 'Train', 'step') as bar:
    bar._time = time.time
    bar.start_t = bar.last_print_t = now
    now += 10
    with progress.timed('Compiling'):
      now += 20
      if is_nested:
        with progress.timed('Inside'):
          now += 40
    assert now - bar.start_t == 10
    assert now - bar.last_print_t == 10


def test_of_nothing_there_is_no_bar(capsys):
  with progress.bar(0, 0, 'Pictures', 'task') as bar:
    bar.update(0)
    with progress.timed('Compiling'):
      pass
  assert 'Pictures' not in capsys.readouterr().err
