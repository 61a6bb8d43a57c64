"""Pages about tasks."""

import re

import pytest

from experiments.formal import config, describe, strings


def test_strings_shown_are_of_more_than_the_first_label(tmp_path):
  path = tmp_path / 'sorted.txt'
  path.write_text(
    ''.join(f'{n:05b}\t{"TRUE" if n < 16 else "FALSE"}\n' for n in range(32))
  )
  page = describe.describe(
    config.Experiment(strings=strings.describe(str(path)))
  )
  shown = re.findall('([01]{5}) -> (TRUE|FALSE)', page)
  assert len(shown) == 5
  assert {label for _, label in shown} == {'TRUE', 'FALSE'}
  for string, label in shown:
    assert label == ('TRUE' if string[0] == '0' else 'FALSE')


def test_a_task_of_prefixes_says_of_what():
  parity, of_prefixes = (
    describe.describe(config.Experiment(answers=answers)).splitlines()
    for answers in ('last', 'prefixes')
  )
  assert of_prefixes[0] == parity[0]
  assert 'What does an automaton answer after each symbol?' in of_prefixes


def test_of_many_answers_the_least_and_most_shares_are_shown():
  experiment = config.Experiment(
    task='word_problem', task_params={'group': 'Z21'}
  )
  header, row, *_ = describe.describe(experiment).splitlines()[-5:]
  assert header.split() == ['length', 'least', 'most']
  _, least, most = map(float, row.split())
  assert 0 < least < 1 / 21 < most < 0.1


def test_an_automaton_is_described_whatever_is_asked_of_it():
  of_whole, of_prefixes = (
    describe.describe(config.Experiment(regex='(01)*', answers=answers))
    for answers in ('last', 'prefixes')
  )
  about = re.search('\n2 symbols.*in states: [^\n]*\n', of_whole, re.DOTALL)
  assert '3 states' in about[0]
  assert about[0] in of_prefixes
  assert '0101010101 -> 0101010101' in of_prefixes


def test_a_task_without_short_strings_is_described():
  page = describe.page(
    task_module='tests.experiments.formal.own_tasks',
    task='NoShortStrings',
    min_range_test_length=50,
  )
  assert re.search('^ +50 ', page, re.MULTILINE)


@pytest.mark.parametrize(
  ('params', 'elements', 'identity'),
  [
    ({}, '0:123 1:132 2:213 3:231 4:312 5:321', '123'),
    ({'table': [[1, 0], [0, 1]]}, '0:0 1:1', '1'),
    (
      {'group': 'Z21'},
      ' '.join(f'{i}:{i}' for i in range(20)) + ' ... (21)',
      '0',
    ),
  ],
)
def test_a_group_is_described(params, elements, identity):
  experiment = config.Experiment(task='word_problem', task_params=params)
  lines = describe.describe(experiment).splitlines()
  assert any(
    line.endswith(f' elements, by number: {elements}') for line in lines
  )
  assert f'The identity: {identity}' in lines


@pytest.mark.parametrize(
  ('fields', 'shown'),
  [
    ({}, 'probability (by default 0.5)'),
    ({'task': 'd_12'}, 'sampler (by default "paper")'),
    ({'task': 'word_problem'}, 'group, table'),
    ({'task': 'even_pairs'}, None),
    ({'regex': '(01)*'}, None),
  ],
)
def test_arguments_are_shown(fields, shown):
  page = describe.describe(config.Experiment(**fields))
  found = re.findall('^--task_params: (.*)$', page, re.MULTILINE)
  assert found == ([] if shown is None else [shown])
