"""Options of the compiler, asked for where they exist."""

import pytest

from experiments.engine import programs


@pytest.mark.parametrize('backend_has', [True, False])
def test_unknown_options_are_left_out(backend_has, monkeypatch):
  options = {'xla_backend_optimization_level': 0} if backend_has else {}
  given = options | {'xla_of_another_version': True}
  assert programs.known_options(given) == options
  monkeypatch.setattr(programs, '_COMPILER_OPTIONS', {'cpu': given})
  programs.quick_options.cache_clear()
  compiled = programs.Programs('a sum of {}', lambda width: lambda x: x + width)
  assert compiled(3, 4) == 7
  programs.quick_options.cache_clear()
