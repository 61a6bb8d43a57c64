"""Every launcher shows its flags, and says in one line what is wrong."""

import ast
import dataclasses
import json
import re
import signal
import subprocess
import sys

import pytest

from experiments.formal import config
from experiments.language import config as language_config
from tests.launch import commands

_PROCESSES = ('distributed', 'coordinator_address', 'num_processes')
# Flags that `flag_lib` defines, of some launchers.
_SHARED = {
  'train': [
    *_PROCESSES,
    *(field.name for field in dataclasses.fields(config.Experiment)),
  ],
  'train_lm': [*_PROCESSES, *language_config.FLAGS],
  'sweep': [*_PROCESSES, 'regex', 'model_module', 'batch_size'],
  'sweep_lm': [*_PROCESSES, 'data_dir', 'fsdp'],
  'evaluate': ['task_params', 'model_module', 'test_strings'],
  'evaluate_lm': _PROCESSES,
  'compile': ['task', 'regex', 'automaton', 'chunk_size'],
  'describe': ['task', 'regex', 'automaton', 'strings', 'task_module'],
  'sample_strings': ['task', 'regex', 'automaton', 'seed'],
}
_LAUNCHERS = sorted(
  path.stem
  for path in (commands.REPOSITORY / 'launch').glob('*.py')
  if path.stem not in ('__init__', 'flag_lib')
)


@pytest.fixture(scope='module')
def helps():
  return {name: commands.run(name, '--help') for name in _LAUNCHERS}


def _defined(name):
  """Returns the flags that a launcher's own file defines."""
  tree = ast.parse((commands.REPOSITORY / f'launch/{name}.py').read_text())
  return [
    node.args[0].value
    for node in ast.walk(tree)
    if isinstance(node, ast.Call)
    and getattr(node.func, 'attr', '').startswith('DEFINE_')
  ]


@pytest.mark.parametrize('name', _LAUNCHERS)
def test_help_shows_all_flags_and_is_no_failure(name, helps):
  status, stdout, stderr = helps[name]
  assert status == 0, stderr
  assert not stderr
  assert f'python -m launch.{name}' in stdout
  shown = re.findall(r'^ +--(?:\[no\])?(\w+):', stdout, re.MULTILINE)
  assert {*_defined(name), *_SHARED.get(name, ())} <= {*shown}


def _nested(depth):
  return '{"a": ' + '[' * depth + ']' * depth + '}'


def test_what_cannot_be_is_one_line(tmp_path):
  (tmp_path / 'deep.json').write_text(_nested(10**5))
  (tmp_path / 'twice.json').write_text('{"a": 1, "a": 2}')
  (tmp_path / 'a.txt').write_text('ab\tTRUE\nb\n')
  (tmp_path / 'ab.txt').write_text('ab\tTRUE\nb\tFALSE\n')
  strings = f'--strings={tmp_path}/a.txt'
  alone = f'--strings={tmp_path}/ab.txt'
  workdir = f'--workdir={tmp_path}/run'
  results = f'--results={tmp_path}/results'
  cases = {
    ('train', '--task=parity'): "'parity', perhaps parity_check; the",
    ('train', '--embedding_dim=10', '--num_heads=3'): 'num_heads',
    ('train', '--task_params={'): '--task_params={: it is not JSON',
    ('train', '--regex='): '--regex is empty',
    ('train', '--task_module='): '--task_module is empty',
    ('evaluate', '--lengths='): '--lengths is empty',
    ('train', '--regex=(01)*', '--task=parity_check'): '--task is not for --re',
    ('train', '--model_module=json'): 'json defines no model: a Flax module',
    ('train', '--alphabet=ab'): '--alphabet is for --regex',
    ('train', '--target=state'): '--target is for --regex or --automaton',
    ('train', 'parity_check'): "Unexpected argument 'parity_check'",
    ('train', '--chunk_sise=3'): "Unknown command line flag 'chunk_sise'",
    ('train', f'--task_params={_nested(9999)}'): '64 deep',
    ('train', '--task_params=[1]'): '--task_params=[1]: expected a JSON obj',
    ('train', '--task_params={"a": 1, "a": 2}'): "key 'a' is given twice",
    ('train', '--task_params={"a": ' + '9' * 400 + '}'): 'than 18 digits',
    ('train', f'--automaton={tmp_path}/deep.json'): 'nested more than 64',
    ('train', f'--automaton={tmp_path}/twice.json'): "key 'a' is given twice",
    ('train', f'--automaton={tmp_path}/absent.json'): 'absent.json: No such',
    ('train', strings): 'a.txt: line 2: expected a string, a tabulator and',
    ('train', f'--test_strings={tmp_path}/no.txt'): 'no.txt: No such file',
    ('train', '--min_range_test_length=501'): 'must not exceed max_range',
    ('train', '--task=reverse_string', '--adversarial'): 'has no automaton',
    ('sweep', '--preset=smoke', '--automata=.', results): '--automata is for',
    ('train', alone, '--max_range_test_length=500'): 'is not for --strings wit',
    ('describe', alone, '--min_range_test_length=2'): 'is not for --strings w',
    ('train', '--minimize'): '--minimize is for --automaton',
    (
      'train',
      '--architecture=rnn',
      '--num_heads=2',
    ): '--num_heads is not for rnn; its sizes are architecture_params',
    ('train', '--warmup_steps=2000'): 'give fewer, with --warmup_steps',
    ('train', '--regex=ab', '--alphabet=a,b'): "as --alphabet='ab'",
    ('train', f'--batch_size={2**63}'): 'batch_size must be at most',
    ('train', f'--seed={"9" * 4000}'): 'seed must be at most',
    ('train', f'--batch_size={"9" * 5000}'): 'flag --batch_size=999',
    ('train', '--learning_rate=abc'): 'flag --learning_rate=abc: could not',
    ('train', '--curriculum_params={"seed": Infinity}'): 'seed must be a whole',
    ('train', '--architecture=a\nb'): "Unknown architecture 'a\\nb'",
    ('train', '--embedding_dim=10000000'): 'need about 19.2 PB of memory',
    ('train', '--distributed', '--num_processes=0'): 'num_processes must be',
    ('analyze', '--analysis=clusters', '--num_strings=100000000000'): 'num_st',
    ('analyze', '--analysis=clusters', '--length=100000000000'): 'length must',
    ('extract', '--length=100000000000'): 'length must be',
    ('extract', '--max_test_length=100000000000'): 'max_test_length must be',
    ('sample', '--num_tokens=100000000000'): 'num_tokens must be at most',
    ('sample',): 'flag --workdir=None: Flag --workdir must have a value',
    (
      'evaluate_lm',
      '--batch_tokens=100000000000',
    ): 'batch_tokens must be at most',
    (
      'prepare_text',
      '--input=x',
      f'--data_dir={tmp_path}/data',
      '--num_workers=1000000',
    ): 'num_workers must be at most',
    ('compile', '--thickness=100000000'): 'Unknown command line flag',
    ('compile', '--chunk_size=100000000'): 'chunk_size must be at most',
    ('describe', '--seed=-1', '--task=d_2'): 'seed must be at least 0',
    ('describe', alone, '--seed=3'): '--seed is not for --strings without',
    (
      'describe',
      '--task=d_2',
      '--min_range_test_length=0',
    ): 'min_range_test_length must be at least 1',
    ('sweep', '--preset=smoke', '--seeds=1e3', results): '--seeds must be who',
    ('sweep', '--preset=smoke', f'--seeds={2**40}', results): 'seed must be at',
    ('sweep', '--preset=smoke', '--training_steps=10000000000'): 'at most',
    (
      'sweep',
      '--preset=smoke',
      '--task=d_2',
    ): 'the sweep sets it for the tasks and',
    ('sweep', f'--cells={tmp_path}/deep.json'): 'deep.json: it is nested more',
    ('sweep',): 'Give --preset, --cells, or flags of launch.train',
  }
  calls = [
    (name, *flags)
    if name in ('describe', 'prepare_text') or (name == 'sample' and not flags)
    else (name, workdir, *flags)
    for name, *flags in cases
  ]
  for call, message in zip(calls, cases.values(), strict=True):
    status, stdout, stderr = commands.run(*call)
    what = json.dumps(call)[:100], stdout[-300:], stderr[-3000:]
    assert status == 1, what
    assert message in stderr, what
    assert stderr.startswith('Error: '), what
    assert stderr.count('\n') == 1, what
    assert len(stderr) < 2100, what
  assert sorted(path.name for path in tmp_path.iterdir()) == [
    'a.txt',
    'ab.txt',
    'deep.json',
    'twice.json',
  ]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_imports_in_one_line(number):
  code = (
    'import os, sys; sys.argv = ["-m"]; import launch;'
    f' os.kill(os.getpid(), {number:d})'
  )
  done = subprocess.run(
    [sys.executable, '-c', code], capture_output=True, cwd=commands.REPOSITORY
  )
  assert (done.returncode, done.stderr) == (128 + number, b'Interrupted.\n')
