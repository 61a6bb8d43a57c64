"""Language models as a user trains them: faults, devices and processes."""

import json
import math
import os
import signal

import numpy as np
import pytest

from experiments.analysis import receptive_field
from experiments.engine import estimates, metrics
from experiments.language import evaluation, report, run
from tests.experiments.language import texts
from tests.launch import commands

_MODEL = (
  '--embedding_dim=16',
  '--num_heads=2',
  '--chunk_size=4',
  '--thickness=1',
  '--precision=float32',
  '--sequence_length=10',
  '--batch_size=8',
)
_OFTEN = (
  '--training_steps=40',
  '--log_every=4',
  '--validate_every=10',
  '--validation_batches=2',
  '--checkpoint_every=5',
)
_EVALUATION = ('--lengths=20,5', '--num_sequences=30')


@pytest.fixture(scope='module')
def data_dir(tmp_path_factory):
  return texts.prepare(tmp_path_factory.mktemp('text'))


@pytest.fixture(scope='module')
def trained(data_dir, tmp_path_factory):
  workdir = tmp_path_factory.mktemp('trained')
  status, stdout, stderr = commands.run('train_lm', *_flags(data_dir, workdir))
  assert status == 0, stderr
  *_, losses, following = stdout.splitlines()
  step, loss, perplexity = losses.split()
  assert step == '40'
  assert float(perplexity) == pytest.approx(math.exp(float(loss)), abs=0.02)
  command = f'launch.evaluate_lm --workdir={workdir} --lengths=10,40,160'
  assert following.endswith(command)
  return workdir


@pytest.fixture(scope='module')
def evaluated(trained):
  status, stdout, stderr = commands.run(
    'evaluate_lm', f'--workdir={trained}', *_EVALUATION
  )
  assert status == 0, stderr
  return stdout


def _flags(data_dir, workdir):
  return (*_MODEL, *_OFTEN, f'--data_dir={data_dir}', f'--workdir={workdir}')


def _result(folder):
  return json.loads((folder / 'perplexity.json').read_text())


def _one_error(command, *flags):
  status, stdout, stderr = commands.run(command, *flags)
  assert status == 1 and not stdout and 'Traceback' not in stderr, stderr
  last = commands.last_line(stderr)
  assert last.startswith('Error: ')
  return last


@pytest.mark.slow  # The loop is that of other training, see launch_test.
def test_killed_twice_equals_undisturbed(
  data_dir, trained, evaluated, tmp_path
):
  flags = _flags(data_dir, tmp_path)
  for number, num_checkpoints in ((signal.SIGTERM, 1), (signal.SIGKILL, 3)):
    process = commands.start('train_lm', *flags)
    commands.wait_for_checkpoints(process, tmp_path, num_checkpoints)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=120)
    if process.returncode == 0:  # It was done already.
      break
    if number == signal.SIGTERM:
      assert process.returncode == 128 + signal.SIGTERM, stderr
      assert 'Run the same command again' in commands.last_line(stderr)
  status, _, stderr = commands.run('train_lm', *flags)
  assert status == 0, stderr
  assert metrics.read(str(tmp_path)) == metrics.read(str(trained))
  status, _, stderr = commands.run(
    'evaluate_lm', f'--workdir={tmp_path}', *_EVALUATION
  )
  assert status == 0, stderr
  assert _result(tmp_path)['perplexity'] == _result(trained)['perplexity']


def test_what_an_evaluation_leaves(trained, evaluated):
  result = _result(trained)
  assert list(result['perplexity']) == ['5', '20']
  assert result['step'] == 40 and result['num_sequences'] == 30
  rows = [line.split() for line in evaluated.splitlines()[2:4]]
  for length, perplexity, error, *_ in rows:
    value = result['perplexity'][length]
    assert float(perplexity) == round(value['perplexity'], 2)
    assert float(error) == round(value['standard_error'], 2)
  # Of the longer one alone, how it differs.
  difference = evaluation.Difference(**result['difference']['20'])
  assert [row[3:] for row in rows] == [[], report.percent(difference).split()]
  assert len((trained / 'perplexity.csv').read_text().splitlines()) == 3
  assert (trained / 'perplexity.png').read_bytes().startswith(b'\x89PNG')


def test_measured_lengths_are_not_lost(trained, evaluated):
  del evaluated
  before = (trained / 'perplexity.json').read_bytes()
  flags = (f'--workdir={trained}', '--lengths=20,21', '--num_sequences=9')
  assert (
    'holds perplexities at lengths 5 too, which would be lost: measure them'
  ) in _one_error('evaluate_lm', *flags)
  assert (trained / 'perplexity.json').read_bytes() == before


def test_with_as_many_levels_as_in_training_more_context_changes_nothing(
  trained, tmp_path
):
  """Two levels of chunks of 4 read 16 tokens."""
  status, _, stderr = commands.run(
    'evaluate_lm',
    f'--workdir={trained}',
    '--lengths=16,17,40',
    '--num_sequences=30',
    '--max_levels=2',
    f'--output_dir={tmp_path}',
  )
  assert status == 0, stderr
  perplexities = _result(tmp_path)['perplexity'].values()
  found = [x['perplexity'] for x in perplexities]
  assert found == pytest.approx([found[0]] * 3, rel=1e-5)
  flags = (f'--workdir={trained}', '--lengths=16', '--max_levels=2')
  assert 'Give an --output_dir' in _one_error('evaluate_lm', *flags)


def test_two_processes_of_two_devices_equal_one(
  data_dir, trained, tmp_path, monkeypatch
):
  """Losses to 1e-4, with the parameters divided among two devices."""
  monkeypatch.setenv('XLA_FLAGS', commands.with_devices(2))
  flags = (*_flags(data_dir, tmp_path), '--training_steps=12')
  processes = commands.start_together(2, 'train_lm', *flags, '--fsdp=2')
  ends = [process.communicate(timeout=300) for process in processes]
  assert [p.returncode for p in processes] == [0, 0], ends

  def rows(workdir):
    """What both log; the shorter one also logs where it ends."""
    return [r for r in metrics.read(str(workdir)) if r['step'] <= 10]

  found, expected = rows(tmp_path), rows(trained)
  assert len(found) == 3  # Losses of steps 4 and 8, validation at 10.
  for row, other in zip(found, expected, strict=True):
    assert row.keys() == other.keys()
    np.testing.assert_allclose(
      list(row.values()), list(other.values()), atol=1e-4
    )


def test_two_processes_evaluate_as_one(trained, evaluated, tmp_path):
  flags = (f'--workdir={trained}', f'--output_dir={tmp_path}', *_EVALUATION)
  processes = commands.start_together(2, 'evaluate_lm', *flags)
  ends = [process.communicate(timeout=300) for process in processes]
  assert not any(p.returncode for p in processes), ends
  printed, nothing = (
    [line for line in stdout.splitlines() if '[Gloo]' not in line]
    for stdout, _ in ends
  )
  assert printed[:4] == evaluated.splitlines()[:4]
  assert not nothing  # The first process alone reports.
  _assert_close(_result(tmp_path), _result(trained))


def _assert_close(found, expected):
  assert found['perplexity'].keys() == expected['perplexity'].keys()
  for length, value in expected['perplexity'].items():
    np.testing.assert_allclose(
      list(found['perplexity'][length].values()),
      list(value.values()),
      rtol=1e-4,
    )


def test_a_process_without_its_text_stops_all(data_dir, tmp_path):
  processes = commands.start_together(
    2,
    'train_lm',
    *_flags(data_dir, tmp_path / 'run'),
    each=(f'--data_dir={data_dir}', '--data_dir=none'),
  )
  ends = [process.communicate(timeout=120) for process in processes]
  assert [p.returncode for p in processes] == [1, 1]
  for _, stderr in ends:
    last = commands.last_line(stderr)
    assert last.startswith('Error: Process 1: none holds no prepared text')


@pytest.mark.slow
def test_two_processes_measure_what_one_does(tmp_path):
  """A sweep: training, evaluation and the report."""
  data_dir = texts.prepare(tmp_path, num_documents=60)
  found = []
  for name in ('one', 'two'):
    flags = (
      '--preset=tiny',
      '--models=regular_gpt_4_2',
      '--training_steps=2',
      '--warmup_steps=0',
      '--batch_size=2',
      f'--data_dir={data_dir}',
      f'--workdir={tmp_path / name}',
    )
    if name == 'one':
      processes = [commands.start('sweep_lm', *flags)]
    else:
      processes = commands.start_together(2, 'sweep_lm', *flags)
    ends = [process.communicate(timeout=300) for process in processes]
    assert not any(p.returncode for p in processes), ends
    folder = tmp_path / name / 'results' / 'tiny'
    assert (folder / 'report.md').exists()
    path = folder / 'regular_gpt_4_2' / 'seed_0.json'
    found.append(json.loads(path.read_text()))
  _assert_close(*found)


def test_samples(trained):
  status, stdout, stderr = commands.run(
    'sample', f'--workdir={trained}', '--prompt=ab ba', '--num_tokens=20'
  )
  assert status == 0, stderr

  def sample(**kwargs):
    return run.sample(str(trained), 'ab ba', num_tokens=20, **kwargs)

  assert stdout == sample() + '\n' and stdout.startswith('ab ba')
  assert sample(seed=1) != sample()
  assert sample(temperature=0) == sample(top_k=1)
  with pytest.raises(ValueError, match='--prompt must be UTF-8'):
    run.sample(str(trained), os.fsdecode(b'caf\xe9'), num_tokens=20)


def test_time_that_is_over_saves(data_dir, tmp_path):
  status, _, stderr = commands.run(
    'train_lm', *_flags(data_dir, tmp_path), '--time_budget_s=0'
  )
  assert status == 0
  assert 'saved step 1.' in stderr
  assert commands.checkpoints(tmp_path)


def test_another_text_is_refused(data_dir, trained, tmp_path):
  other = texts.prepare(tmp_path, seed=1)
  last = _one_error('train_lm', *_flags(other, trained))
  assert 'different experiment: another text.' in last
  moved = tmp_path / 'moved'
  moved.symlink_to(data_dir)  # The same text at another place.
  status, _, stderr = commands.run('train_lm', *_flags(moved, trained))
  assert status == 0, stderr


def test_a_mismatched_tokenizer_is_refused(data_dir, tmp_path):
  flags = _flags(data_dir, tmp_path / 'run')
  last = _one_error('train_lm', *flags, '--tokenizer=gpt2')
  assert 'holds tokens of byte, not of gpt2' in last


def test_another_kind_of_workdir_is_said(trained, tmp_path):
  last = _one_error('evaluate', f'--workdir={trained}')
  assert 'it is of a language model, for launch.evaluate_lm' in last


@pytest.mark.parametrize(
  ('command', 'flags', 'message'),
  [
    ('train_lm', ('--batch_size=0',), 'batch_size must be at least 1'),
    ('train_lm', ('--fsdp=3',), 'fsdp must divide the number of devices, 1'),
    ('train_lm', ('--data_dir=none',), 'none holds no prepared text'),
    ('train_lm', ('--num_layers=2',), '--num_layers is for --architecture=gpt'),
    ('train_lm', ('--sequence_length=90000',), 'need more than the'),
    ('train_lm', ('--max_levels=1',), 'at least the 2 levels that a training'),
    (
      'train_lm',
      ('--max_levels=3', '--max_extra_levels=2'),
      'up to 4 levels, more than max_levels (3)',
    ),
    ('evaluate_lm', ('--lengths=a',), '--lengths must be whole numbers'),
    ('sample', (), 'holds no experiment'),
  ],
)
def test_bad_flags_are_one_line(command, flags, message, data_dir, tmp_path):
  given = (f'--workdir={tmp_path / "run"}',)
  if command == 'train_lm':
    given = _flags(data_dir, tmp_path / 'run')
  assert message in _one_error(command, *given, *flags)


def test_more_tokens_than_fit_are_not_read(trained, monkeypatch):
  monkeypatch.setattr(estimates, 'memory', lambda: 1000)
  with pytest.raises(ValueError, match='The keys and values of 51 tokens need'):
    run.sample(str(trained), '', 50)
  monkeypatch.setattr(estimates, 'host_memory', lambda: 1000)
  with pytest.raises(ValueError, match='embeddings of 6 strings of 12 tokens'):
    receptive_field.analyze_language_model(
      run.load_experiment(str(trained)), str(trained), 6, 12
    )


def test_receptive_field_of_a_language_model(trained):
  flags = (f'--workdir={trained}', '--num_strings=6', '--length=12')
  status, stdout, stderr = commands.run(
    'analyze', *flags, '--analysis=receptive_field'
  )
  assert status == 0, stderr
  assert 'receptive field of the next token' in stdout
  found = json.loads((trained / 'receptive_field.json').read_text())
  assert found['length'] == 12 and found['num_strings'] == 6
  assert np.all(np.diff(found['mean']) >= 0)
  np.testing.assert_allclose(found['mean'][-1], 1, rtol=1e-5)
  error = _one_error('analyze', *flags, '--analysis=clusters')
  assert 'of these there is receptive_field' in error
