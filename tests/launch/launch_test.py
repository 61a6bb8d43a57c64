"""The commands as a user runs them, in processes of their own."""

import json
import re
import resource
import signal

import chex
import jax
import pytest

from experiments.engine import checkpoints
from experiments.engine import workdir as workdir_lib
from experiments.formal import builders, config, training
from tests.launch import commands

_TINY = (
  '--embedding_dim=8',
  '--num_heads=2',
  '--sequence_length=5',
  '--batch_size=4',
  '--max_range_test_length=9',
  '--range_test_batch_size=4',
)
_LONG = (*_TINY, '--training_steps=400', '--checkpoint_every=40')


def _results(workdir):
  """What is written for people, which must be the same to the letter."""
  return (
    (workdir / 'metrics.jsonl').read_text(),
    (workdir / 'range_evaluation.csv').read_text(),
  )


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
  workdir = tmp_path_factory.mktemp('undisturbed') / 'run'
  status, stdout, stderr = commands.run('train', *_LONG, f'--workdir={workdir}')
  assert status == 0, stderr
  assert 'score' in stdout
  return workdir


def test_killed_and_told_to_stop_equals_undisturbed(undisturbed, tmp_path):
  workdir = tmp_path / 'run'
  command = ('train', *_LONG, f'--workdir={workdir}')
  for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
    process = commands.start(*command)
    commands.wait_for_another_checkpoint(process, workdir)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    if number == signal.SIGKILL:
      assert process.returncode == -signal.SIGKILL
      continue
    assert 'Resuming from step' in stderr
    assert process.returncode == 128 + number
    assert 'Run the same command again' in commands.last_line(stderr)
    assert 'Traceback' not in stderr
  status, _, stderr = commands.run(*command)
  assert status == 0, stderr
  assert _results(workdir) == _results(undisturbed)
  chex.assert_trees_all_equal(_last_state(workdir), _last_state(undisturbed))


def _last_state(workdir):
  """Returns the arrays in the last checkpoint, and its step."""
  experiment, runs = workdir_lib.load(str(workdir), config.Experiment)
  _, model = builders.make_task_and_model(experiment)
  like = training.state_shapes(experiment, model, len(runs))
  return checkpoints.Checkpoints(str(workdir)).restore(like)


def test_evaluate_command(undisturbed, tmp_path):
  status, stdout, stderr = commands.run(
    'evaluate',
    f'--workdir={undisturbed}',
    f'--output_dir={tmp_path}',
    '--max_range_test_length=12',
    '--task_params={"probability": 0.1}',
  )
  assert status == 0, stderr
  assert 'lengths 6..12' in stdout
  results = json.loads((tmp_path / 'range_evaluation.json').read_text())
  assert results['experiment']['task_params'] == {'probability': 0.1}
  assert (tmp_path / 'range_evaluation.png').stat().st_size > 1000


def test_long_strings_are_tested_alike_on_any_number_of_devices(
  undisturbed, monkeypatch
):
  command = ('evaluate', f'--workdir={undisturbed}', '--lengths=6,33')
  status, expected, stderr = commands.run(*command)
  assert status == 0, stderr
  monkeypatch.setenv('XLA_FLAGS', commands.with_devices(2))
  status, stdout, stderr = commands.run(*command)
  assert status == 0, stderr
  assert stdout == expected
  assert re.search(r'\| 33 +\| 4 +\| 0\.\d{4} ', stdout)
  assert 'chance, a uniform guess: 0.5000' in stdout


def test_a_workdir_that_reads_as_a_pattern_is_refused(tmp_path):
  status, _, stderr = commands.run('train', f'--workdir={tmp_path}/a[1]')
  assert status == 1
  assert commands.last_line(stderr).startswith('Error: The path of a folder')
  assert not list(tmp_path.iterdir())


def _limit_the_size_of_files():
  # Compiled programs would be cut short too, for all who share them.
  jax.config.update('jax_enable_compilation_cache', False)
  resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))


def test_no_space_left_is_one_line_and_nothing_half_written(tmp_path):
  """A limit on the size of files fails writes as a full disk does."""
  workdir = tmp_path / 'run'
  command = ('train', *_TINY, '--training_steps=50', f'--workdir={workdir}')
  process = commands.start(*command, begin=_limit_the_size_of_files)
  _, stderr = process.communicate(timeout=300)
  assert process.returncode == 1
  assert commands.last_line(stderr).startswith('Error: Cannot save step 50')
  assert 'Traceback' not in stderr
  assert not commands.checkpoints(workdir)
  # With room again, the same command goes on to the end.
  status, stdout, stderr = commands.run(*command)
  assert status == 0, stderr
  assert 'score' in stdout


def test_automata_from_the_command_line(tmp_path):
  """An odd number of a's, with a state too many and no dead state."""
  given = tmp_path / 'odd.att'
  given.write_text(
    '0 1 a a\n0 2 b b\n1 2 a a\n1 1 b b\n2 1 a a\n2 0 b b\n2 3 c c\n1\n'
  )
  converted = tmp_path / 'odd.dot'
  status, _, stderr = commands.run(
    'convert', f'--automaton={given}', '--minimize', f'--output={converted}'
  )
  assert status == 0, stderr
  assert stderr.splitlines() == [
    f"{given}: 5 missing transitions lead to a sink, the new state 'sink',"
    ' rejecting (with --target=state one more class).',
    '--minimize leaves 3 of 5 states.',
    f'{converted}: 3 states, 3 symbols.',
  ]
  converted.write_text(
    ''.join(
      line
      for line in converted.read_text().splitlines(keepends=True)
      if '"c"' not in line
    )
  )
  flag = f'--automaton={converted}'
  status, stdout, stderr = commands.run('describe', flag, '--minimize')
  assert status == 0, stderr
  assert '--minimize leaves 2 of 3 states.' in stderr
  examples = re.findall(r'^  ([ab]{10}) -> (\d)$', stdout, re.MULTILINE)
  assert len(examples) == 5
  for string, answer in examples:
    assert int(answer) == string.count('a') % 2
  workdir = tmp_path / 'run'
  status, stdout, stderr = commands.run(
    'train', *_TINY, flag, '--training_steps=3', f'--workdir={workdir}'
  )
  assert status == 0, stderr
  assert 'score' in stdout
  stored = json.loads((workdir / 'config.json').read_text())
  assert set(stored['experiment']['automaton']) == {
    'alphabet',
    'states',
    'start',
    'accepting',
    'transitions',
  }


def test_compile_writes_a_workdir_that_evaluates_to_one(tmp_path):
  workdir = tmp_path / 'run'
  status, _, stderr = commands.run(
    'compile',
    '--regex=(01|10)*',
    '--max_range_test_length=60',
    '--range_test_batch_size=8',
    f'--workdir={workdir}',
  )
  assert status == 0, stderr
  assert 'Compiled the minimal automaton, of 4 states:' in stderr
  status, stdout, stderr = commands.run('evaluate', f'--workdir={workdir}')
  assert status == 0, stderr
  assert 'compiled regular_gpt on the regex (01|10)*' in stdout
  results = json.loads((workdir / 'range_evaluation.json').read_text())
  assert set(results['accuracy'].values()) == {1.0}


def test_compile_without_an_automaton_is_one_clear_line(tmp_path):
  workdir = tmp_path / 'run'
  status, _, stderr = commands.run(
    'compile', '--task=reverse_string', f'--workdir={workdir}'
  )
  assert status == 1
  assert 'no automaton' in commands.last_line(stderr)
  assert 'Traceback' not in stderr
  assert not workdir.exists()


def test_describe_refuses_what_is_for_a_task_it_is_not_given():
  status, stdout, stderr = commands.run(
    'describe', '--task_params={"probability": 0.3}'
  )
  assert status == 1
  assert not stdout
  assert stderr.startswith('Error: --task_params needs --task or')
