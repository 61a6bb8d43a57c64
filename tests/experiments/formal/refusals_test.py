"""What an experiment and its folder cannot be."""

import dataclasses
import os

import pytest

from experiments.engine import locks, programs
from experiments.engine import workdir as workdir_lib
from experiments.formal import run
from tests import refusals
from tests.experiments.formal import tiny

# What an experiment holds of a file of strings.
_HELD = {
  'file': 'a.txt',
  'sha256': '0' * 64,
  'alphabet': ['0', '1'],
  'labels': ['FALSE', 'TRUE'],
  'lengths': [[1, 2]],
}


def test_another_experiment_in_the_workdir_is_refused(tmp_path):
  workdir = str(tmp_path)
  workdir_lib.claim(tiny.TINY, workdir)
  before = tiny.read(workdir, 'config.json')
  other = dataclasses.replace(tiny.TINY, learning_rate=0.5, chunk_size=3)
  with pytest.raises(ValueError, match=r'chunk_size 5 .*learning_rate 0.001 '):
    run.train_and_evaluate(other, workdir)
  assert os.listdir(workdir) == ['config.json']
  assert tiny.read(workdir, 'config.json') == before


def test_a_folder_with_other_files_is_refused(tmp_path):
  (tmp_path / 'thesis.tex').write_text('precious')
  with pytest.raises(ValueError, match='files but no'):
    run.train_and_evaluate(tiny.TINY, str(tmp_path))
  assert os.listdir(tmp_path) == ['thesis.tex']


def test_a_folder_is_given_back_if_a_program_does_not_fit(
  tmp_path, monkeypatch
):
  def refuse(*args, **options):
    raise ValueError('does not fit')

  monkeypatch.setattr(programs, 'compiled', refuse)
  with pytest.raises(ValueError, match='does not fit'):
    run.train_and_evaluate(tiny.TINY, str(tmp_path))
  assert not [x for x in os.listdir(tmp_path) if not x.startswith('.')]
  workdir_lib.claim(tiny.TINY, str(tmp_path))
  with pytest.raises(ValueError, match='does not fit'):
    run.train_and_evaluate(tiny.TINY, str(tmp_path))
  assert 'config.json' in os.listdir(tmp_path)  # Another put it there.


def test_a_second_process_is_kept_out(tmp_path):
  with locks.locked(str(tmp_path)), pytest.raises(OSError, match='Another'):
    run.train_and_evaluate(tiny.TINY, str(tmp_path))


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'task': 'parity'}, 'cycle_navigation, d_1'),
    ({'architecture': 'gpt'}, 'regular_gpt'),
    ({'curriculum': 'steep'}, 'uniform'),
    ({'preset': 'gpt3'}, 'benchmark, language'),
    ({'embedding_dim': 10, 'num_heads': 3}, r'embedding_dim \(10\).*num_heads'),
    ({'chunk_size': 1}, 'chunk_size must be at least 2'),
    ({'sequence_length': 0}, 'sequence_length must be at least 1'),
    ({'max_range_test_length': -3}, 'max_range_test_length must be at least 1'),
    ({'learning_rate': -1.0}, 'learning_rate must be positive'),
    ({'learning_rate': float('nan')}, 'learning_rate must be a finite'),
    ({'dropout_rate': 1.5}, 'dropout_rate'),
    ({'precision': 'float8'}, 'float32, bfloat16'),
    ({'warmup_steps': 7}, 'warmup_steps'),
    ({'task_params': {'probability': 2}}, 'probability'),
    ({'task_params': {'p': 0.5}}, 'task_params.*arguments are probability'),
    ({'task': ['x']}, 'task must be text'),
    ({'batch_size': '4'}, 'batch_size must be a whole number'),
    ({'learning_rate': 1e-60}, 'learning_rate'),
    (
      {
        'curriculum_params': {'tau': float('nan')},
        'curriculum': 'reverse_exponential',
      },
      'tau',
    ),
    ({'curriculum': 'fixed', 'curriculum_params': {'sequence_length': 8}}, '8'),
    ({'curriculum_params': {'values': [0]}}, 'lengths 0'),
    ({'curriculum_params': {'values': []}}, 'values'),
    ({'curriculum_params': {'values': 'abc'}}, 'curriculum_params'),
    ({'curriculum_params': {'values': [2.5]}}, 'curriculum_params'),
    ({'seed': 2**32}, 'seed must be at most'),
    ({'node_weight': -1.0}, 'node_weight must be at least 0'),
    ({'node_weight': 1.0, 'task': 'reverse_string'}, 'node_weight.*automaton'),
    ({'node_weight': 1.0, 'computation_steps_mult': 1}, 'node_weight.*without'),
    ({'spread_weight': 1.0, 'task': 'bucket_sort'}, 'spread_weight'),
    ({'spread_weight': 1.0, 'thickness': 2}, 'spread_weight.*thickness'),
    ({'node_weight': 1.0, 'regex': '(0|1)*1(0|1){6}'}, '128 .*64|64.*128'),
    ({'architecture_params': {'node_outputs': 4}}, '--node_weight'),
    ({'answers': 'prefixes', 'adversarial': True}, '--adversarial is for one'),
    (
      {'answers': 'prefixes', 'strings': _HELD, 'regex': '1*'},
      '--strings is for one answer a string, not for --answers=prefixes',
    ),
  ],
)
def test_bad_input_is_one_clear_line(fields, message, tmp_path):
  workdir = tmp_path / 'run'
  with refusals.one_line(message):
    run.train_and_evaluate(
      dataclasses.replace(tiny.TINY, **fields), str(workdir)
    )


def test_evaluating_what_is_not_there(tmp_path):
  with pytest.raises(ValueError, match='holds no experiment'):
    run.evaluate(str(tmp_path))
  workdir_lib.claim(tiny.TINY, str(tmp_path))
  with pytest.raises(OSError, match='no checkpoint'):
    run.evaluate(str(tmp_path))
  (tmp_path / 'config.json').write_text('{"experiment": {')
  with pytest.raises(ValueError, match='Cannot read'):
    run.evaluate(str(tmp_path))


def test_evaluating_otherwise_needs_its_own_folder(tmp_path):
  run.train_and_evaluate(tiny.TINY, str(tmp_path / 'run'))
  with pytest.raises(ValueError, match='output_dir'):
    run.evaluate(str(tmp_path / 'run'), max_range_test_length=7)


@pytest.mark.parametrize(
  ('name', 'message'),
  [('config.json', 'holds a trained run'), ('results/a', 'holds a sweep')],
)
def test_results_do_not_go_into_a_strangers_folder(name, message, tmp_path):
  trained, other = tmp_path / 'trained', tmp_path / 'other'
  workdir_lib.claim(tiny.TINY, str(trained))
  (other / name).parent.mkdir(parents=True)
  (other / name).touch()
  with refusals.one_line(f'{message}: give another --output_dir'):
    run.evaluate(str(trained), str(other))


def test_another_task_must_have_as_many_symbols(tmp_path):
  fields = {'task': 'word_problem', 'task_params': {'group': 'Z2'}}
  workdir_lib.claim(dataclasses.replace(tiny.TINY, **fields), str(tmp_path))
  with refusals.one_line('test has 3 input .* that of the training 2 and 2'):
    run.evaluate(str(tmp_path), lengths=[3], task_params={'group': 'Z3'})
