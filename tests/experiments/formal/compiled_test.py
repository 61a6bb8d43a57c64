"""Compiled workdirs, and every regular task of the benchmark."""

import functools

import jax
import numpy as np
import pytest

from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  builders,
  compiled,
  config,
  range_evaluation,
  registries,
  run,
)
from regulargpt_jax import construction
from regulargpt_jax import model as model_lib
from tasks.regular import parity_check
from tests import slow
from tests.tasks import checks

REGULAR = [k for k, v in registries.TASK_LEVELS.items() if v == 'regular']
# 25 states; a third of the hidden units.
BINARY = ('modular_arithmetic',)


@functools.partial(jax.jit, static_argnums=(0, 3))
def _answers(config, params, tokens, path):
  return model_lib.RegularGPT(config).apply(params, tokens, path)


# Those left out are like others, but in their numbers.
_LIKE_OTHERS = (
  *('d_1', 'd_2', 'd_3', 'd_4', 'tomita_1', 'tomita_2', 'tomita_4'),
  *BINARY,
)


@pytest.mark.parametrize(
  'name', slow.unless(lambda name: name not in _LIKE_OTHERS, REGULAR)
)
def test_every_regular_task_is_solved_exactly(name):
  task = registries.TASK_BUILDERS[name]()
  gpt, params = construction.compile_automaton(
    *task.machine, encoding='binary' if name in BINARY else 'one_hot'
  )

  def assert_right(lengths, width, paths):
    tokens = np.concatenate(
      [checks.sample(task, n, n, width, batch_size=4) for n in lengths]
    )
    expected = np.eye(task.output_size)[checks.solve(task, tokens)]
    for path in paths:
      logits = _answers(gpt, params, tokens, path)
      last = logits if path == 'reduce' else logits[:, -1]
      np.testing.assert_array_equal(last, expected)

  assert_right((1, 2, 3, 10, 39, 255), 256, ['reduce'])
  if name in ('parity_check', *BINARY):  # Tested with many automata elsewhere.
    assert_right((1, 9, 16), 17, ['scan', 'reference'])


_SMALL = {'max_range_test_length': 20, 'range_test_batch_size': 16}
EXPERIMENTS = {
  'default': config.Experiment(**_SMALL),
  'regex': config.Experiment(regex='(01|10)*', chunk_size=3, **_SMALL),
  'state': config.Experiment(regex='(aa|b)*', alphabet='ab', target='state'),
}


@pytest.mark.parametrize(
  'name', slow.unless(lambda name: name == 'regex', EXPERIMENTS)
)
def test_a_workdir_is_read_as_any_other(name, tmp_path):
  workdir = str(tmp_path / 'run')
  wanted = EXPERIMENTS[name]
  compiled.compile_task(wanted, workdir, 'one_hot')
  experiment, task, model, params = run.load(workdir)
  assert experiment.training_steps == 0
  for field in ('task', 'regex', 'target', 'chunk_size'):
    assert getattr(experiment, field) == getattr(wanted, field)
  one = jax.tree.map(lambda x: x[0], params)
  assert {x.shape[0] for x in jax.tree.leaves(params)} == {1}
  tokens = checks.sample(task, 0, 20, 32)
  logits = jax.jit(model.apply)(one, tokens, None)
  np.testing.assert_array_equal(
    logits, np.eye(task.output_size)[checks.solve(task, tokens)]
  )
  # The same again is no other experiment.
  compiled.compile_task(wanted, workdir, 'one_hot')
  if name == 'default':
    with pytest.raises(ValueError, match=r'chunk_size 2 \(here: 4\)'):
      compiled.compile_task(wanted.replaced(chunk_size=4), workdir, 'one_hot')
    accuracies = range_evaluation.evaluate(
      experiment, task, model, params
    ).accuracy
    assert accuracies.shape == (1, 20)
    assert (accuracies == 1.0).all()


def test_a_task_without_an_automaton_lists_those_with_one(tmp_path):
  experiment = config.Experiment(task='reverse_string')
  with pytest.raises(ValueError, match=r'ReverseString .* parity_check'):
    compiled.compile_task(experiment, str(tmp_path / 'run'), 'one_hot')
  assert not (tmp_path / 'run').exists()


def test_a_single_state_is_nothing_to_learn(tmp_path):
  automaton = {
    'alphabet': ['a'],
    'states': ['q'],
    'start': 'q',
    'accepting': [],
    'transitions': {'q': {'a': 'q'}},
  }
  for target in ('state', 'membership'):
    experiment = config.Experiment(automaton=automaton, target=target)
    with pytest.raises(ValueError, match='nothing to learn'):
      compiled.compile_task(experiment, str(tmp_path / 'run'), 'one_hot')
  assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize(
  ('name', 'problem'), [('input_size', 'symbols'), ('output_size', 'answers')]
)
def test_a_machine_of_another_size_than_its_task(
  name, problem, monkeypatch, tmp_path
):
  monkeypatch.setattr(parity_check.ParityCheck, name, 3)
  message = f'ParityCheck has 2 {problem}, but the task 3'
  with pytest.raises(ValueError, match=message):
    compiled.compile_task(config.Experiment(), str(tmp_path / 'run'), 'one_hot')
  assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize(
  ('there', 'here', 'kind'), [(1000, 0, 'trained'), (0, 1000, 'compiled')]
)
def test_a_workdir_is_trained_or_compiled(there, here, kind, tmp_path):
  def claim(training_steps):
    workdir_lib.claim(
      config.Experiment(training_steps=training_steps), str(tmp_path)
    )

  claim(there)
  with pytest.raises(ValueError, match=f'a model that was {kind}'):
    claim(here)


def test_a_file_is_no_workdir(tmp_path):
  (tmp_path / 'run').write_text('')
  for name in ('run', 'run/below'):
    workdir = str(tmp_path / name)
    with pytest.raises(OSError, match=f'^{workdir} cannot be a folder'):
      compiled.compile_task(config.Experiment(), workdir, 'one_hot')


def test_what_is_said_counts_states_of_the_minimal_automaton(tmp_path, capsys):
  automaton = {
    'alphabet': ['a'],
    'states': ['0', '1', 'lost'],
    'start': '0',
    'accepting': ['1'],
    'transitions': {'0': {'a': '1'}, '1': {'a': '0'}, 'lost': {'a': '0'}},
  }
  experiment = config.Experiment(automaton=automaton)
  compiled.compile_task(experiment, str(tmp_path / 'run'), 'one_hot')
  assert 'automaton, of 2 states:' in capsys.readouterr().err


def test_training_needs_a_step(tmp_path):
  experiment = config.Experiment().replaced(training_steps=0)
  with pytest.raises(ValueError, match='at least 1'):
    run.train_and_evaluate(experiment, str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


def test_builders_take_what_the_compiler_chose(tmp_path):
  """The same configuration, so that no parameter is read differently."""
  workdir = str(tmp_path / 'run')
  compiled.compile_task(config.Experiment(chunk_size=3), workdir, 'one_hot')
  experiment, task, model, params = run.load(workdir)
  gpt, own = construction.compile_automaton(*task.machine, chunk_size=3)
  assert model.config == gpt
  jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[0], b), params, own)
  assert builders.make_model(experiment, task).bucket_base == 3
