"""The commands that look inside a model, as a user runs them."""

import json
import shlex

import pytest

from experiments.formal import compiled, config
from tests.launch import commands

_MODULE = 'tests.experiments.formal.own_tasks'
_FEW = ('--num_strings=4', '--length=9', f'--task_module={_MODULE}')


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('compiled') / 'run'
  experiment = config.Experiment(task_module=_MODULE, task='Parity')
  compiled.compile_task(experiment, str(workdir), 'one_hot')
  return workdir


def test_evaluate_runs_a_users_module_that_is_named_again(workdir, tmp_path):
  flags = (
    f'--workdir={workdir}',
    f'--output_dir={tmp_path}',
    '--max_range_test_length=9',
    '--range_test_batch_size=4',
  )
  status, _, stderr = commands.run('evaluate', *flags)
  assert status == 1
  flag = f'--task_module={_MODULE}'
  # As it must be typed.
  assert flag in shlex.split(commands.last_line(stderr))
  status, stdout, stderr = commands.run('evaluate', *flags, flag)
  assert status == 0, stderr
  assert 'on Parity' in stdout


def test_analyze_command(workdir):
  status, stdout, stderr = commands.run(
    'analyze',
    f'--workdir={workdir}',
    '--analysis=attention',
    '--string=0110',
    *_FEW,
  )
  assert status == 0, stderr
  assert f'picture: {workdir}/attention.png' in stdout


def test_extract_command_writes_what_train_reads(workdir):
  status, stdout, stderr = commands.run(
    'extract', f'--workdir={workdir}', *_FEW
  )
  assert status == 0, stderr
  assert 'digraph' in stdout
  fields = json.loads((workdir / 'automaton.json').read_text())
  assert fields['transitions']['0']['1'] == '1'
  status, stdout, stderr = commands.run(
    'describe', f'--automaton={workdir}/automaton.json'
  )
  assert status == 0, stderr


@pytest.mark.parametrize(
  ('command', 'flags', 'message'),
  [
    (
      'analyze',
      (
        f'--task_module={_MODULE}',
        '--analysis=attention',
        '--string=012',
      ),
      "Symbol '2'",
    ),
    ('extract', (f'--task_module={_MODULE}', '--length=3'), 'too short'),
  ],
)
def test_bad_input_is_one_line(command, flags, message, workdir):
  status, _, stderr = commands.run(command, f'--workdir={workdir}', *flags)
  assert status == 1
  last = stderr.strip().splitlines()[-1]
  assert last.startswith('Error: ')
  assert message in last
  assert 'Traceback' not in stderr


def test_certify_command(workdir):
  status, stdout, stderr = commands.run(
    'certify', f'--workdir={workdir}', f'--task_module={_MODULE}'
  )
  assert status == 0, stderr
  assert 'proved: right on every string of every length' in stdout
