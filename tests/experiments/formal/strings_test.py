"""Training on labelled strings of a file, and testing on others."""

import collections
import dataclasses
import json

import jax
import numpy as np
import pytest

from experiments.engine import stopping
from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  builders,
  config,
  data,
  describe,
  evaluation,
  limits,
  models,
  run,
  string_samples,
  strings,
)
from tests import refusals
from tests.experiments.formal import tiny
from tests.tasks import automata

_LENGTHS = (3, 5, 5, 9)
_TINY = dataclasses.replace(
  tiny.TINY, sequence_length=9, training_steps=6, chunk_size=3
)


def _write(path, lengths=_LENGTHS, number=20, seed=0):
  rng = np.random.default_rng(seed)
  with open(path, 'w') as file:
    for length in lengths:
      for _ in range(number):
        string = ''.join(rng.choice(list('ab'), length))
        label = 'TRUE' if string[0] == string[-1] else 'FALSE'
        file.write(f'{string}\t{label}\n')
  return str(path)


def _lines(path):
  with open(path) as file:
    return [line.rstrip('\n').split('\t') for line in file]


@pytest.fixture(scope='module')
def experiment(tmp_path_factory):
  folder = tmp_path_factory.mktemp('strings')
  tests = [
    _write(folder / 'short.txt', seed=1),
    _write(folder / 'long.txt', [12], seed=2),
  ]
  return dataclasses.replace(
    _TINY,
    strings=strings.describe(_write(folder / 'train.txt')),
    test_strings=strings.describe_tests(tests),
  )


def test_lengths_are_those_of_the_file_as_often_as_they_are_there(experiment):
  curriculum = builders.make_curriculum(experiment)
  counts = collections.Counter(
    curriculum.sample_sequence_length(step) for step in range(4000)
  )
  assert set(counts) == set(_LENGTHS)
  assert abs(counts[5] / 4000 - 0.5) < 0.05
  shorter = dataclasses.replace(experiment, sequence_length=5)
  assert builders.make_curriculum(shorter).lengths(10) == {3, 5}


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'sequence_length': 2}, 'no string of at most 2 symbols.* has 3'),
    (
      {'curriculum': 'fixed', 'curriculum_params': {'sequence_length': 4}},
      'draws strings of 4 symbols, of which .*train.txt has none',
    ),
    (
      {'curriculum_params': {'values': [3, 4]}},
      'draws strings of 4 symbols, of which',
    ),
    ({'task': 'd_2'}, '--task is not for --strings'),
    ({'target': 'state'}, '--target is for --regex or --automaton'),
    ({'regex': 'a', 'alphabet': 'ab', 'target': 'state'}, 'not for --strings'),
    ({'task_module': 'x'}, 'Give only one of task_module and strings'),
  ],
)
def test_what_cannot_be(experiment, fields, message):
  experiment = dataclasses.replace(experiment, **fields)
  with pytest.raises(ValueError, match=message):
    builders.make_task(experiment)
    builders.make_curriculum(experiment)


_HELD = {'file': 'x', 'sha256': 'a' * 64, 'lengths': [[3, 2], [5, 1]]}
_TRAINING = {**_HELD, 'alphabet': ['a', 'b'], 'labels': ['0', '1']}


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({'lengths': None}, 'lengths must be rising pairs'),
    ({'lengths': []}, 'lengths must be rising pairs'),
    ({'lengths': 'x'}, 'lengths must be rising pairs'),
    ({'lengths': [['a', None]]}, 'lengths must be rising pairs'),
    ({'lengths': [[3, 1], [3, 1]]}, 'lengths must be rising pairs'),
    ({'lengths': [[0, 1]]}, 'lengths must be rising pairs'),
    ({'lengths': [[1, True]]}, 'lengths must be rising pairs'),
    ({'lengths': [[1, 10**17]]}, 'lengths must be rising pairs'),
    ({'file': 3}, 'file must be distinct texts'),
    ({'file': ['x']}, 'file must be distinct texts|of another file'),
    ({'sha256': 'x'}, 'sha256 must be 64 digits'),
    ({'more': 1}, 'must be the path of a file, or what was held of it'),
    ({'alphabet': ['a', 'b', 'a']}, 'alphabet must be distinct texts'),
    ({'alphabet': [1]}, 'alphabet must be distinct texts'),
    ({'labels': 5}, 'labels must be distinct texts'),
    ({'labels': ['0']}, 'labels must be two or more'),
  ],
)
def test_what_is_held_of_files_is_checked(change, message):
  config.Experiment(strings=_TRAINING, test_strings={'x': _HELD})
  with refusals.one_line(message):
    config.Experiment(strings={**_TRAINING, **change})
  if not {'alphabet', 'labels'} & {*change}:
    with pytest.raises(ValueError, match=message):
      config.Experiment(test_strings={'x': {**_HELD, **change}})


@pytest.mark.parametrize('tests', [{'f': 7}, {'f': []}, {'y': _HELD}])
def test_what_is_held_of_tests_is_by_file(tests):
  with pytest.raises(ValueError, match='test_strings'):
    config.Experiment(test_strings=tests)


def test_files_to_test_on_are_named_once(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  _write(tmp_path / 'a.txt')
  for paths, message in (
    (['a.txt', './a.txt'], 'given twice'),
    (['a.txt', ''], 'has no name'),
  ):
    with pytest.raises(ValueError, match=message):
      strings.describe_tests(paths)


def test_a_range_is_for_what_has_one(experiment, tmp_path):
  workdir_lib.claim(experiment, str(tmp_path))
  for name in config.RANGE_FIELDS:
    with pytest.raises(ValueError, match=f'--{name} is not for --strings'):
      run.evaluate(str(tmp_path), **{name: 5})


def test_batches_are_strings_of_the_file_right_aligned(experiment):
  task = builders.make_task(experiment)
  source = data.make_source(task, 4, (3, 9))
  stream = source.stream([7, 8], [(0, 3), (1, 5), (1, 5)])
  batches = [(width, *arrays) for width, arrays in stream]
  assert [width for width, _, _ in batches] == [3, 9, 9]
  _, tokens, answers = batches[1]
  assert tokens.shape == (2, 4, 9)
  assert (tokens[..., :4] == -1).all()
  rows = {
    (*row, answer)
    for row, answer in zip(
      task.groups[5].tokens.tolist(),
      task.groups[5].answers.tolist(),
      strict=True,
    )
  }
  for row, answer in zip(
    tokens[..., 4:].reshape(-1, 5).tolist(), answers.ravel(), strict=True
  ):
    assert (*row, answer) in rows
  # By seed and step alone.
  np.testing.assert_array_equal(tokens, batches[2][1])
  assert (tokens[0] != tokens[1]).any()
  (_, (alone, _)), *_ = source.stream([8], [(1, 5)])
  np.testing.assert_array_equal(alone[0], tokens[1])


def test_one_program_a_depth(experiment):
  task, model = builders.make_task_and_model(experiment)
  narrow = dataclasses.replace(experiment, smallest_bucket=1)
  assert builders.bucket_widths(narrow, task, model, 9) == (3, 9)


def test_killed_and_resumed_is_undisturbed(experiment, tmp_path, monkeypatch):
  once = tiny.train(experiment, tmp_path / 'once')
  with monkeypatch.context() as patch:
    patch.setattr(
      stopping.ReasonToStop,
      '__call__',
      lambda self, step: stopping.TIME_IS_OVER if step == 3 else 0,
    )
    with pytest.raises(stopping.StoppedError):
      tiny.train(experiment, tmp_path / 'twice')
  twice = tiny.train(experiment, tmp_path / 'twice')
  for a, b in zip(jax.tree.leaves(once), jax.tree.leaves(twice), strict=True):
    np.testing.assert_array_equal(a, b)


def _always_says(task, answer):
  """A model of one parameter, whose answer is always the same."""

  def apply(params, tokens, target, *unused, **unused_too):
    del target
    logits = jax.nn.one_hot(answer, task.output_size) + params
    return logits * np.ones((len(tokens), 1))

  return models.Model(lambda rng: np.zeros(()), apply, width=1)


def test_every_string_of_a_file_is_tested_once(experiment):
  task = builders.make_task(experiment)
  model = _always_says(task, 1)
  model = dataclasses.replace(model, sub_batch_size=3)
  tests = evaluation.evaluate(experiment, task, model, np.zeros(1))
  short, long = experiment.test_strings
  assert list(tests) == ['', long]
  found = tests[''].files[0]
  assert found['file'] == short
  lines = _lines(short)
  shares = {
    n: np.mean([label == 'TRUE' for s, label in lines if len(s) == n])
    for n in (3, 5, 9)
  }
  assert found['strings'] == len(lines) == 80
  assert found['accuracy'] == np.mean([label == 'TRUE' for _, label in lines])
  assert found['balanced_accuracy'] == 0.5
  assert found['by_label']['TRUE']['accuracy'] == 1
  for n in range(1, 10):
    expected = shares.get(n, np.nan)
    np.testing.assert_allclose(tests[''].accuracy[0, n - 1], expected)
    if n in shares:
      np.testing.assert_allclose(found['by_length'][n]['accuracy'], shares[n])
  assert tests[long].accuracy.shape == (1, 12)


def test_a_trained_model_is_tested_without_its_training_file(
  experiment, tmp_path, capsys
):
  path = _write(tmp_path / 'train.txt')
  experiment = dataclasses.replace(experiment, strings=strings.describe(path))
  workdir = str(tmp_path / 'run')
  run.train_and_evaluate(experiment, workdir)
  shown = capsys.readouterr().out
  for file, number in zip(experiment.test_strings, (80, 20), strict=True):
    assert f'accuracy, {file}, {number} strings' in shown
    assert f'balanced accuracy, {file}' in shown
  results = json.loads(tiny.read(workdir, 'range_evaluation.json'))
  assert [f['strings'] for f in results['files']] == [80, 20]
  assert set(results['accuracy']) == {'3', '5', '9'}
  (tmp_path / 'train.txt').unlink()
  run.evaluate(workdir)
  again = json.loads(tiny.read(workdir, 'range_evaluation.json'))
  assert again['accuracy'] == results['accuracy']
  with pytest.raises(ValueError, match=r'Cannot read .*train.txt'):
    run.train_and_evaluate(experiment, str(tmp_path / 'other'))
  assert not (tmp_path / 'other').exists()
  _write(tmp_path / 'train.txt', seed=5)
  with pytest.raises(ValueError, match='not what it was when the run began'):
    run.train_and_evaluate(experiment, str(tmp_path / 'other'))


def test_without_other_files_it_is_tested_on_its_own(experiment):
  alone = dataclasses.replace(experiment, test_strings={})
  assert alone.longest_tested == 9
  assert experiment.longest_tested == 12
  (file,) = strings.load_tests(alone, builders.make_task(alone))
  assert file == alone.strings['file']


def test_symbols_of_other_files_are_checked_first(experiment, tmp_path):
  path = tmp_path / 'c.txt'
  path.write_text('abc\tTRUE\n')
  other = dataclasses.replace(
    experiment, test_strings=strings.describe_tests([str(path)])
  )
  with pytest.raises(ValueError, match=r"c\.txt: line 1: the symbol 'c' is"):
    run.train_and_evaluate(other, str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


class TestBesideAnAutomaton:
  def test_strings_train_and_the_automaton_tests(
    self, experiment, tmp_path, capsys
  ):
    both = dataclasses.replace(
      experiment,
      automaton=automata.FIELDS,
      test_strings={},
      max_range_test_length=11,
      adversarial=True,
    )
    task = builders.make_task(both)
    trained_on = strings.make_training_task(both, task)
    assert trained_on.groups[9].tokens.shape == (20, 9)
    run.train_and_evaluate(both, str(tmp_path))
    captured = capsys.readouterr()
    assert 'of 80 strings the automaton has another answer' in captured.err
    assert 'adversarial accuracy, lengths 10..11' in captured.out
    results = json.loads(tiny.read(tmp_path, 'range_evaluation.json'))
    assert len(results['accuracy']) == 11
    assert not results['files']

  def test_the_order_of_symbols_is_the_automatons(self, experiment):
    fields = {**automata.FIELDS, 'alphabet': ['b', 'a']}
    both = dataclasses.replace(experiment, automaton=fields)
    first = builders.make_task(experiment).groups[3].tokens
    task = strings.make_training_task(both, builders.make_task(both))
    np.testing.assert_array_equal(task.groups[3].tokens, 1 - first)


def test_files_are_drawn_from_any_task(tmp_path):
  path = str(tmp_path / 'a' / 'strings.txt')
  experiment = config.Experiment(
    regex='(up|down up)*', alphabet='["up","down"]'
  )
  string_samples.write(experiment, path, 3, 5, 8)
  held = strings.describe(path)
  assert held['lengths'] == [[3, 8], [4, 8], [5, 8]]
  assert held['alphabet'] == ['down', 'up']
  tests = strings.describe_tests([path])
  both = dataclasses.replace(experiment, test_strings=tests)
  task = builders.make_task(both)
  (groups,) = strings.load_tests(both, task).values()
  for tokens, answers in groups.values():
    np.testing.assert_array_equal(task.solve(tokens), answers)
    assert answers.mean() == 0.5
  string_samples.write(experiment, path, 3, 5, 8, is_adversarial=True)
  pairs = _lines(path)
  assert [label for _, label in pairs] == ['TRUE', 'FALSE'] * 12
  for (first, _), (second, _) in zip(pairs[::2], pairs[1::2], strict=True):
    assert abs(len(first.split()) - len(second.split())) <= 1
  # Expressions have an odd number of symbols.
  arithmetic = config.Experiment(task='modular_arithmetic')
  string_samples.write(arithmetic, path, 2, 5, 4)
  assert sorted(len(string) for string, _ in _lines(path)) == [3] * 4 + [5] * 4
  three = {
    'alphabet': ['a'],
    'states': ['p', 'q', 'r'],
    'start': 'p',
    'transitions': {'p': {'a': 'q'}, 'q': {'a': 'r'}, 'r': {'a': 'p'}},
    'outputs': {'p': 'x', 'q': 'y\tz', 'r': 'w'},
  }
  for fields, arguments, message in (
    ({'task': 'modular_arithmetic'}, (2, 2, 4), 'no strings of 2 to 2'),
    ({'automaton': three}, (2, 2, 4), 'a tabulator'),
    ({'regex': 'a|bb', 'alphabet': '["a", "bb"]'}, (1, 1, 2), '2 or more'),
    ({'task': 'reverse_string'}, (1, 2, 2), 'more than one answer'),
    ({'task': 'd_2'}, (3, 2, 2), 'must not exceed max_length'),
    ({'task': 'd_2'}, (1, 2, 3, True), 'an even number of strings'),
    ({'task': 'modular_arithmetic'}, (1, 2, 2, True), 'not take all strings'),
    ({'task': 'd_2'}, (1, 1, 2, True), 'no pairs of 1 to 1'),
    ({'task': 'd_2'}, (1, 2**24, 2**24), 'larger than 64 MB'),
  ):
    with pytest.raises(ValueError, match=message):
      string_samples.write(config.Experiment(**fields), path, *arguments)


def test_a_page_about_strings(experiment):
  page = describe.describe(experiment)
  assert 'Of 80 strings' in page and 'Attributes' not in page
  assert '2 labels: FALSE TRUE' in page
  numbers = [line.split()[:2] for line in page.splitlines()[-3:]]
  assert numbers == [['3', '20'], ['5', '40'], ['9', '20']]


def test_what_does_not_fit_is_refused(experiment):
  task, model = builders.make_task_and_model(experiment)
  limits.check(experiment, task, model)
  huge = dataclasses.replace(experiment, range_test_batch_size=2**31 - 1)
  with pytest.raises(ValueError, match='up to 12 symbols need'):
    limits.check(huge, task, model)


def test_what_is_odd_is_said_once_and_not_by_reading_flags(
  experiment, tmp_path, capsys
):
  """Saying something starts JAX, and flags are read before processes join."""
  path = tmp_path / 'odd.txt'
  path.write_text('01\tTRUE\n01\tFALSE\n\tTRUE\n1\tTRUE\n')
  held = strings.describe(str(path))
  tests = strings.describe_tests([f'{tmp_path}/./odd.txt'])
  assert not capsys.readouterr().err
  experiment = experiment.replaced(
    strings=held, test_strings=tests, min_range_test_length=2
  )
  strings.check(experiment, builders.make_task(experiment))
  said = capsys.readouterr().err
  assert said.count('1 empty string is left out') == 1
  assert said.count('have several labels') == 1
  assert said.count('min_range_test_length does nothing') == 1
