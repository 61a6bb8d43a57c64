"""Tests of converting automata."""

import pytest

from experiments.formal import automata
from tasks.automata import reading, regex

_FIELDS = regex.to_fields('a*b', 'ab')


@pytest.mark.parametrize(
  ('arguments', 'name', 'problem'),
  [
    (({}, 'a\tb', 'a\tb'), 'x.att', 'cannot stand in the format .att'),
    (({}, '', '01'), 'x.att', 'one of --automaton and --regex'),
    ((_FIELDS, 'a', 'ab'), 'x.att', 'one of --automaton and --regex'),
    ((_FIELDS, '', '01'), 'x.png', 'must end in one of .json, .dot, .att'),
    (({}, 'a', 'a,b'), 'x.att', 'a comma'),
  ],
)
def test_what_cannot_be_converted(arguments, name, problem, tmp_path):
  with pytest.raises(ValueError, match=problem):
    automata.convert(*arguments, str(tmp_path / name))
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('ending', ['json', 'dot', 'att'])
def test_a_regex_is_written(ending, tmp_path, capsys):
  path = str(tmp_path / f'x.{ending}')
  automata.convert({}, 'a*b', 'ab', path)
  assert reading.read(path).fields['transitions'] == _FIELDS['transitions']
  assert f'{path}: 3 states, 2 symbols.' in capsys.readouterr().err
