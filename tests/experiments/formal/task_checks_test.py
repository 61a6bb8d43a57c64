"""What is wrong with a user's task is one line, before anything is written."""

import functools
import itertools
import random
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.analysis import analyses, extraction
from experiments.engine import workdir as workdir_lib
from experiments.formal import blame, config, data, run, task_checks
from tests import refusals
from tests.experiments.formal import own_tasks

_BATCH_SIZE, _LENGTH = 4, 5


def _check(task):
  task_checks.check(task, _BATCH_SIZE, _LENGTH)


def _raise(*args):
  raise ValueError('first line\nsecond line')


_draws = itertools.count()


def _drawn_elsewhere(self, rng, batch_size, length, width):
  """Never as the call before."""
  tokens = np.full((batch_size, width), next(_draws) % 3)
  return jnp.where(jnp.arange(width) < width - length, -1, tokens)


@pytest.mark.parametrize(
  'kind', [own_tasks.LastSymbol, own_tasks.Parity, own_tasks.Copy]
)
def test_a_good_task_passes_in_silence(kind, capsys):
  _check(kind())
  assert capsys.readouterr().err == ''


@pytest.mark.parametrize(
  ('name', 'value', 'message'),
  [
    ('input_size', 2.5, ': .* got 2.5'),
    ('input_size', property(_raise), ': ValueError: first line$'),
    ('output_size', 0, ': .* got 0'),
    ('output_size', True, ': .* got True'),
    ('input_symbols', [0, 1, 2], ': .* strings'),
    ('input_length', lambda self, n: n / 2, ', length 1: .* got 0.5'),
    ('output_length', lambda self, n: 1.0, ', length 1: .* got 1.0'),
    ('output_length', _raise, ', length 1: ValueError: first line$'),
    ('sample_tokens', _raise, ', length 5: ValueError: first line$'),
    ('sample_tokens', _drawn_elsewhere, ', length 1: .* from rng alone'),
    (
      'sample_tokens',
      lambda self, rng, batch_size, length, width: np.zeros((2, length)),
      ', length 5: TracerIntegerConversionError: ',
    ),
    ('solve', _raise, ', length 5: ValueError: first line$'),
    ('solve', lambda *args: sys.exit(), ', length 5: SystemExit$'),
    ('solve', lambda self, x: None, ', length 5: '),
    (
      'solve',
      lambda self, x: np.asarray(x)[:, -1],
      ', length 5: TracerArrayConversionError: ',
    ),
    ('pointwise_loss_fn', _raise, ', length 5: ValueError'),
    (
      'pointwise_loss_fn',
      lambda self, output, target: np.maximum(output, target),
      ', length 5: TracerArrayConversionError: ',
    ),
    ('accuracy_fn', _raise, ', length 5: ValueError: first line$'),
    ('accuracy_mask', _raise, ', length 5: ValueError: first line$'),
  ],
)
def test_what_a_task_cannot_do_is_one_line(name, value, message):
  task = type('Own', (own_tasks.LastSymbol,), {name: value})()
  _check_says(task, f'Own.{name}{message}')


@pytest.mark.parametrize(
  ('name', 'change', 'message'),
  [
    ('sample_tokens', lambda x: x.T, r'5: .* \(5, 4\), not \(4, 5\)'),
    ('sample_tokens', lambda x: x * 1.0, '5: .* whole numbers'),
    ('sample_tokens', lambda x: x + 1, '1: symbols must be 0 to 2, got 3'),
    ('sample_tokens', lambda x: x[:, ::-1], '1: .* right-aligned'),
    ('solve', lambda x: x[:2], r'5: .* \(2,\), not \(4,\) or \(4, 1\)'),
    ('solve', lambda x: x * 1.0, '5: .*float32, not .* whole'),
    ('solve', lambda x: x + 1, '1: answers must be 0 to 2, got 3'),
    ('solve', lambda x: x * 0 - 1, '1: .* have 1 answers'),
    ('solve', lambda x: (x + next(_draws)) % 3, '1: two calls with the same'),
    ('pointwise_loss_fn', lambda x: x.sum(-1), r'5: .* \(4,\), not \(4, 3\)'),
    ('pointwise_loss_fn', lambda x: x > 0, '5: .*bool, not'),
    ('pointwise_loss_fn', lambda x: x / 0, '1: .*not finite'),
    ('accuracy_fn', lambda x: x.mean(), r'5: .* shape \(\), not \(4,\)'),
    ('accuracy_fn', lambda x: 100 * x + 2, '1: .* 0 to 1'),
    ('accuracy_mask', lambda x: x[:, None], r'5: .* \(4, 1\), not \(4,\)'),
    ('accuracy_mask', lambda x: x * 0, '5: no output symbol counts'),
  ],
)
def test_what_a_task_must_not_return_is_named(name, change, message):
  _check_is_named(own_tasks.LastSymbol, name, change, message)


@pytest.mark.parametrize(
  'solve',
  [
    lambda self, tokens: jnp.sum(tokens, -1) % 2,  # Adds what stands for none.
    lambda self, tokens: 0 * tokens[:, -1] + tokens.shape[1] % 2,
  ],
)
def test_answers_must_not_depend_on_padding(solve):
  task = type('Own', (own_tasks.LastSymbol,), {'solve': solve})()
  _check_says(task, 'Own.solve, length 1: answers differ where -1 stands')


@pytest.mark.parametrize(
  ('sizes', 'message'),
  [
    ({'input_size': 10**12}, 'input_size: .* 1 to 1,048,576, got 1000000000'),
    ({'output_size': 1}, 'output_size: .*number, 2 to 1,048,576, got 1'),
  ],
)
def test_impossible_sizes_are_named(sizes, message):
  _check_says(type('Own', (own_tasks.LastSymbol,), sizes)(), f'Own.{message}')


@pytest.mark.parametrize(
  ('name', 'change', 'message'),
  [
    ('sample_batch', lambda x: None, '1: TypeError'),
    ('sample_batch', lambda x: sys.exit('bye'), '1: SystemExit: bye$'),
    ('sample_batch', _raise, '1: ValueError: first line$'),
    ('sample_batch', lambda x: {**x, 'input': x['input'][:2]}, '1: .*shape'),
    ('sample_batch', lambda x: {**x, 'input': x['input'] / 2}, '1: .*hot'),
    ('sample_batch', lambda x: {**x, 'output': x['output'] / 2}, '1: .*hot'),
    ('sample_batch', lambda x: {**x, 'output': x['output'][:, 1:]}, '1: .*sha'),
    ('accuracy_mask', lambda x: x[:, 1:], r'5: .* \(4, 4\), not \(4, 5\)'),
  ],
)
def test_so_is_that_of_a_task_in_python(name, change, message):
  _check_is_named(own_tasks.Copy, name, change, message)


def _check_is_named(kind, name, change, message):
  method = getattr(kind, name)

  def changed(self, *args):
    return change(method(self, *args))

  task = type('Own', (kind,), {name: changed})()
  _check_says(task, f'Own.{name}, length {message}')


def _check_says(task, message):
  with pytest.raises(blame.UserCodeError) as e:
    _check(task)
  # Without the notes that JAX adds, which pytest would match too.
  assert re.match(message, str(e.value)), str(e.value)
  assert '\n' not in str(e.value)


def test_a_task_that_compiles_for_every_length_is_told(capsys):
  class Compiled(own_tasks.Copy):
    @functools.partial(jax.jit, static_argnums=(0, 2, 3))
    def sample_batch(self, rng, batch_size, length):
      tokens = jax.random.randint(rng, (batch_size, length), 0, 2)
      one_hot = jax.nn.one_hot(tokens, 2)
      return {'input': one_hot, 'output': one_hot}

  _check(Compiled())
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith('Compiled.sample_batch is inside jax.jit')


_TASKS = '''
import sys
from tests.experiments.formal import own_tasks

class Picky(own_tasks.Copy):
  """Takes no number below 1."""
  def __init__(self, number=0):
    if number < 1:
      raise ValueError('number must be positive')

class Wide(own_tasks.Copy):
  """Has half a symbol."""
  input_size = 2.5
'''


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    (
      {'task': 'Picky'},
      r'^Picky\(number\), task_params {}: ValueError: number',
    ),
    (
      {'task': 'Picky', 'task_params': {'numbre': 1}},
      r"^Picky\(number\), task_params {'numbre': 1}: TypeError: .*numbre",
    ),
    ({'task': 'Wide'}, '^Wide.input_size: .*2.5'),
    (
      {'task_module': 'ends_at_once'},
      'ends_at_once: SystemExit: 0',
    ),
  ],
)
def test_a_module_that_cannot_be_used_is_one_line(
  fields, message, tmp_path, monkeypatch
):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / 'some_tasks.py').write_text(_TASKS)
  (tmp_path / 'ends_at_once.py').write_text('import sys; sys.exit(0)')
  workdir = tmp_path / 'run'
  experiment = config.Experiment(**{'task_module': 'some_tasks', **fields})
  with refusals.one_line(message):
    run.train_and_evaluate(experiment, str(workdir))
  assert not workdir.exists()


@pytest.mark.parametrize(
  ('task', 'method'), [('LastSymbol', 'solve'), ('Copy', 'sample_batch')]
)
def test_a_bad_task_leaves_no_workdir(task, method, tmp_path, monkeypatch):
  monkeypatch.setattr(getattr(own_tasks, task), method, _raise)
  experiment = config.Experiment(
    task_module=own_tasks.__name__, task=task, batch_size=4, sequence_length=5
  )
  with pytest.raises(ValueError, match=f'^{task}.{method}, length '):
    run.train_and_evaluate(experiment, str(tmp_path / 'run'))
  assert not list(tmp_path.iterdir())


def test_batches_of_a_length_differ_from_step_to_step():
  class Drawn(own_tasks.Copy):
    """A string each from NumPy, from `random` and from the key."""

    def output_length(self, input_length):
      return 1

    def sample_batch(self, rng, batch_size, length):
      strings = np.stack(
        [
          np.random.randint(2, size=length),
          random.choices((0, 1), k=length),
          jax.random.randint(rng, (length,), 0, 2),
        ]
      )
      return {'input': np.eye(2)[strings], 'output': np.eye(2)[strings[:, 0]]}

  source = data.HostSource(Drawn(), 3, [64])
  batches = [
    tokens[run]
    for _, (tokens, _) in source.stream([7, 8], [(0, 64), (1, 64)])
    for run in range(2)
  ]
  for row in range(3):
    assert len({batch[row].tobytes() for batch in batches}) == 4
  _, (again, _) = next(source.stream([7, 8], [(0, 64)]))
  np.testing.assert_array_equal(again, batches[:2])


def test_a_workdir_runs_no_module_that_is_not_named_again(
  tmp_path, monkeypatch
):
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / 'from_someone.py').write_text('raise RuntimeError("It ran.")')
  workdir = str(tmp_path / 'run')
  (tmp_path / 'run').mkdir()
  experiment = config.Experiment(task_module='from_someone')
  workdir_lib.claim(experiment, workdir)
  for read in (
    run.load,
    run.evaluate,
    functools.partial(
      analyses.analyze,
      name='clusters',
      string=None,
      num_strings=4,
      length=9,
      max_clusters=8,
    ),
    functools.partial(
      extraction.extract,
      num_strings=4,
      length=9,
      max_clusters=8,
      max_test_length=9,
    ),
  ):
    for other in ({}, {'task_module': 'json'}):
      with pytest.raises(ValueError, match=' --task_module=from_someone '):
        read(workdir, **other)
    with pytest.raises(ValueError, match=r'from_someone: .* It ran\.'):
      read(workdir, task_module='from_someone')


def test_a_module_that_the_workdir_does_not_name_is_refused(tmp_path):
  workdir_lib.claim(config.Experiment(), str(tmp_path))
  with pytest.raises(ValueError, match=r"no task_module.*'json'"):
    run.load(str(tmp_path), task_module='json')
