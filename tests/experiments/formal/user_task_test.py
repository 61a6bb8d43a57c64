"""Plugging in: users' own tasks, regular expressions and automata."""

import dataclasses
import itertools
import json
import re

import chex
import jax
import numpy as np
import pytest

from experiments.engine import metrics
from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  builders,
  config,
  data,
  describe,
  registries,
  run,
  strings,
  training,
)
from tests import refusals
from tests.experiments.formal import tiny
from tests.tasks import checks

_MODULE = 'tests.experiments.formal.user_task'
_TINY = dataclasses.replace(
  tiny.TINY, task_module=_MODULE, task='FirstSymbol', checkpoint_every=3
)


@pytest.mark.parametrize(
  ('task', 'architecture'),
  [
    pytest.param('FirstSymbol', 'regular_gpt', marks=pytest.mark.slow),
    ('Repeat', 'rnn'),
  ],
)
def test_a_benchmark_task_trains_unchanged(task, architecture, tmp_path):
  experiment = dataclasses.replace(_TINY, task=task)
  if architecture == 'rnn':
    experiment = experiment.replaced(architecture='rnn', **tiny.NO_SIZES)
  for name in ('first', 'second'):
    run.train_and_evaluate(experiment, str(tmp_path / name))
    np.random.seed(123)  # The task draws from it; we must not care.
  lines = metrics.read(str(tmp_path / 'first'))
  assert [line['step'] for line in lines] == [2, 4, 6]
  assert lines == metrics.read(str(tmp_path / 'second'))
  csv = 'range_evaluation.csv'
  assert (tmp_path / 'first' / csv).read_text() == (
    tmp_path / 'second' / csv
  ).read_text()


def test_resumed_user_task_goes_on_with_its_data(tmp_path, monkeypatch):
  task, model = builders.make_task_and_model(_TINY)
  expected = training.train(_TINY, str(tmp_path / 'whole'), task, model).params

  class KilledError(Exception):
    pass

  write = metrics.Metrics.write

  def killed_at_4(self, step, *args, **kwargs):
    if step == 4:
      raise KilledError
    write(self, step, *args, **kwargs)

  monkeypatch.setattr(metrics.Metrics, 'write', killed_at_4)
  with pytest.raises(KilledError):
    training.train(_TINY, str(tmp_path / 'killed'), task, model)
  monkeypatch.undo()
  actual = training.train(_TINY, str(tmp_path / 'killed'), task, model).params
  chex.assert_trees_all_equal(actual, expected)


def test_host_batches_are_padded_right_aligned():
  task = builders.make_task(dataclasses.replace(_TINY, task='Repeat'))
  source = data.make_source(task, 4, [3, 6])
  ((width, (tokens, target)),) = source.stream([7], [(0, 4)])
  assert width == 6
  assert tokens.shape == (1, 4, 6)
  assert target.shape == (1, 4, 7, 2)
  assert (tokens[..., :2] == -1).all()
  assert (tokens[..., 2:] >= 0).all()
  np.testing.assert_array_equal(target[..., :2, :], 0)
  np.testing.assert_array_equal(target[..., 2:6, :].argmax(-1), tokens[..., 2:])


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'task': 'Third'}, 'FirstSymbol, Repeat'),
    (
      {
        'task_module': '',
        'task': 'parity_check',
        'regex': '(01)*',
        'task_params': {'p': 1},
      },
      'task_params',
    ),
    ({'task_module': 'tests.conftest'}, 'defines no task'),
    ({'task_module': 'no.such_module'}, r'no\.such_module'),
    ({'regex': '0*'}, 'only one'),
  ],
)
def test_bad_task_modules(fields, message):
  with pytest.raises(ValueError, match=message):
    builders.make_task(dataclasses.replace(_TINY, **fields))


def _regex_task(regex, alphabet='01', target='membership'):
  return builders.make_task(
    config.Experiment(regex=regex, alphabet=alphabet, target=target)
  )


@pytest.mark.parametrize(
  ('regex', 'alphabet'),
  [
    pytest.param('(01)*', '01', marks=pytest.mark.slow),
    ('(a|bc)*b?', 'abc'),
  ],
)
def test_regex_labels_are_pythons(regex, alphabet):
  task = _regex_task(regex, alphabet)
  for length in (1, 2, 3, 6):
    strings = np.array(
      [*itertools.product(range(len(alphabet)), repeat=length)]
    )
    answers = checks.solve(task, strings)
    for string, answer in zip(strings, answers, strict=True):
      text = ''.join(alphabet[s] for s in string)
      assert bool(answer) == bool(re.fullmatch(regex, text))


def test_cycle_navigation_is_one_line():
  table = {
    'alphabet': ['-', '0', '+'],
    'states': list('01234'),
    'start': '0',
    'accepting': ['0'],
    'transitions': {
      str(q): {'-': str((q - 1) % 5), '0': str(q), '+': str((q + 1) % 5)}
      for q in range(5)
    },
  }
  task = builders.make_task(config.Experiment(automaton=table, target='state'))
  cycle = builders.make_task(config.Experiment(task='cycle_navigation'))
  tokens = cycle.sample_tokens(jax.random.key(0), 50, 20, 25)
  np.testing.assert_array_equal(task.solve(tokens), cycle.solve(tokens))
  assert task.input_symbols == cycle.input_symbols


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'regex': '(01'}, 'position 0'),
    ({'regex': '012'}, "symbol '2' is not in the alphabet"),
    ({'regex': '(0|1)*'}, 'nothing to learn'),
    ({'automaton': {'alphabet': ['a']}}, 'states'),
  ],
)
def test_bad_automata(fields, message):
  with refusals.one_line(message):
    builders.make_task(config.Experiment(**fields))


def test_describe_lists_every_task_and_shows_one():
  listed = describe.list_tasks()
  names = re.findall(r'^  (.+?)  ', listed, re.MULTILINE)
  names = ', '.join(names).split(', ')
  assert sorted(names) == sorted(registries.TASK_BUILDERS)
  assert '  d_1, d_2, d_3, d_4, d_12     D_n: are brackets balanced' in listed
  assert max(map(len, listed.splitlines())) <= 100
  page = describe.describe(config.Experiment(task='modular_arithmetic'))
  assert 'modulo 5' in page
  examples = re.findall(r'^  ([0-4+*-]+) -> (\d)$', page, re.MULTILINE)
  assert len(examples) == 5
  for expression, answer in examples:
    assert eval(expression) % 5 == int(answer)
  assert 'Chance level, a uniform guess: 0.2000' in page
  assert 'Which symbol came first?' in describe.describe(_TINY)


@pytest.mark.parametrize(
  ('ends', 'target', 'expected'),
  [
    (
      {'accepting': ['q1']},
      'membership',
      ['answer 0, FALSE, in states: q0', 'answer 1, TRUE, in states: q1'],
    ),
    (
      {'outputs': {'q0': 'low', 'q1': 'high'}},
      'membership',
      ['answer 0, high, in states: q1', 'answer 1, low, in states: q0'],
    ),
    (
      {'accepting': []},
      'state',
      ['answer 0, in states: q0', 'answer 1, in states: q1'],
    ),
  ],
)
def test_describe_says_what_an_automaton_is(ends, target, expected):
  automaton = {
    'alphabet': ['a', 'b'],
    'states': ['q0', 'q1'],
    'start': 'q0',
    'transitions': {q: {'a': 'q1', 'b': 'q0'} for q in ('q0', 'q1')},
    **ends,
  }
  page = describe.describe(
    config.Experiment(automaton=automaton, target=target)
  )
  lines = page.splitlines()
  start = lines.index('2 symbols: a b')
  assert lines[start + 1] == '2 states, of which q0 is the start'
  assert lines[start + 2 : start + 4] == expected


def test_a_symbol_without_a_name_is_a_number():
  experiment = config.Experiment(
    task_module='tests.experiments.formal.own_tasks', task='PartlyNamed'
  )
  task = builders.make_task(experiment)
  assert data.symbols(task) == ['a', 'b', '2']
  assert strings.symbols_and_labels(experiment, task)[0] == ['a', 'b', '2']
  assert re.search('[ab]+2', describe.describe(experiment))


def test_automaton_survives_config_json(tmp_path):
  experiment = config.Experiment(automaton={'alphabet': ['a'], 'states': ['x']})
  workdir_lib.claim(experiment, str(tmp_path))
  assert workdir_lib.load(str(tmp_path), config.Experiment)[0] == experiment
  json.loads((tmp_path / 'config.json').read_text())
