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
    ((_FIELDS, '', None), 'x.png', 'must end in one of .json, .dot, .att'),
    (({}, 'a', 'a,b'), 'x.att', 'a comma'),
    ((_FIELDS, '', '01'), 'x.att', '--alphabet is for --regex'),
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


@pytest.mark.parametrize('ending', ['json', 'dot', 'att'])
def test_the_empty_language_is_written(ending, tmp_path):
  path = str(tmp_path / f'x.{ending}')
  automata.convert({}, 'a&b', 'ab', path)
  assert reading.read(path).fields['accepting'] == []


def test_all_of_a_folder_are_read_and_what_was_done_is_said(tmp_path, capsys):
  automata.convert(_FIELDS, '', None, str(tmp_path / 'one.json'))
  (tmp_path / 'two.att').write_text('0 1 a a\n1 0 b b\n0\n')
  (tmp_path / 'notes.txt').write_text('no automaton')
  assert [*automata.read_folder(str(tmp_path))] == ['one', 'two']
  assert 'two.att: 2 missing transitions lead' in capsys.readouterr().err
