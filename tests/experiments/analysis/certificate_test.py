"""What the command says of models that are right, wrong, or neither proved."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.analysis import certificate
from experiments.analysis import subject as subject_lib
from experiments.engine import checkpoints as checkpoints_lib
from experiments.engine import workdir as workdir_lib
from experiments.formal import builders, compiled, config, training
from tests.regulargpt_jax.analysis import parity

_MAX_CHUNKS = 100


def _compiled(workdir, **settings):
  compiled.compile_task(config.Experiment(**settings), str(workdir), 'one_hot')
  return workdir


def _saved(workdir, params):
  """A workdir of a model with parameters as of `parity`."""
  experiment = config.Experiment(training_steps=0, embedding_dim=8, num_heads=2)
  _, model = builders.make_task_and_model(experiment)
  state = training.init_state(experiment, model)
  state = state.replace(
    params=jax.tree.map(lambda x: jnp.array(x)[None], params)
  )
  workdir.mkdir()
  workdir_lib.claim(experiment, str(workdir))
  checkpoints = checkpoints_lib.Checkpoints(str(workdir))
  checkpoints.save(0, state)
  checkpoints.close()
  return workdir


def _certified(workdir, max_chunks=_MAX_CHUNKS):
  certificate.certify(str(workdir), max_chunks)
  return json.loads((workdir / 'certificate.json').read_text())


def _is_complete(workdir, results):
  assert (workdir / 'certificate.png').stat().st_size > 10_000
  arrays = np.load(workdir / 'certificate.npz')
  assert len(arrays['classes']) == results['num_regions']
  assert len(arrays['products']) == results['num_chunks']


def test_a_compiled_model(tmp_path, capsys):
  workdir = _compiled(tmp_path / 'run', task='cycle_navigation')
  results = _certified(workdir, max_chunks=None)
  assert results['proved'] and results['is_right']
  assert results['num_regions'] == 5
  _is_complete(workdir, results)
  shown = capsys.readouterr().out
  assert 'proved: right on every string of every length' in shown


def test_a_trained_model(tmp_path, capsys):
  workdir = _saved(tmp_path / 'run', parity.params())
  results = _certified(workdir)
  assert results['proved'] and results['is_right']
  assert results['largest_share_of_a_region'] <= 1
  assert results['margin_of_the_answer'] > 0
  assert len(results['radii']) == results['num_regions']
  _is_complete(workdir, results)
  assert 'every length' in capsys.readouterr().out
  held = workdir_lib.load(str(workdir), config.Experiment)
  subject = subject_lib.load(str(workdir), held)
  assert certificate.is_proved_right(subject, _MAX_CHUNKS)


def test_a_model_that_is_another_automaton_is_told_apart(tmp_path, capsys):
  params = parity.params()
  readout = params['params']['readout']
  params['params']['readout'] = {k: x[..., ::-1] for k, x in readout.items()}
  workdir = _saved(tmp_path / 'run', params)
  results = _certified(workdir)
  assert results['proved'] and not results['is_right']
  assert set(results['difference']) <= {'0', '1'}
  assert f'wrong on {results["difference"]}' in capsys.readouterr().out


@pytest.mark.parametrize(
  'factor, right_up_to, is_right',
  [(0.5, 2, True), pytest.param(0.3, 0, False, marks=pytest.mark.slow)],
)
def test_what_cannot_be_proved_is_said(
  factor, right_up_to, is_right, tmp_path, capsys
):
  weakened = parity.params(ffn_out=factor)  # What made the level contract.
  results = _certified(_saved(tmp_path / 'run', weakened))
  assert not results['proved']
  assert results['right_up_to'] == right_up_to
  assert results['snapped']['is_right'] == is_right
  shown = capsys.readouterr().out
  assert 'not proved: ' in shown
  assert 'proved: right' not in shown
  up_to = f'proved instead: right on every string of up to {right_up_to} '
  assert (up_to in shown) == (right_up_to > 0)
  assert 'proved of another model, this one with each state moved' in shown
  assert (f'wrong on {results["snapped"]["difference"]}' in shown) != is_right


def test_what_cannot_be_certified_is_refused(tmp_path):
  workdir = _compiled(tmp_path / 'thick', task='parity_check', chunk_size=3)
  with pytest.raises(ValueError, match='thickness 1 and chunk_size 2 or 3'):
    certificate.certify(str(workdir), _MAX_CHUNKS)
  with pytest.raises(ValueError, match='max_chunks must be at least 1'):
    certificate.certify(str(workdir), 0)
  workdir = _compiled(tmp_path / 'thin', task='parity_check')
  with pytest.raises(ValueError, match='max_chunks is not for a compiled'):
    certificate.certify(str(workdir), _MAX_CHUNKS)
  assert not list(workdir.glob('certificate*'))
