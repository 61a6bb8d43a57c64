"""Checkpoints: what does not fit is refused, what is not whole passed over."""

import jax
import jax.numpy as jnp
import pytest

from experiments.engine import checkpoints


@pytest.fixture(autouse=True)
def _do_not_wait(monkeypatch):
  monkeypatch.setattr(checkpoints, '_LAST_WORDS_S', 0.0)


def _saved(folder, state):
  kept = checkpoints.Checkpoints(folder)
  kept.save(1, state)
  return kept


_A, _B = jnp.arange(3.0), jnp.ones((2, 2))


@pytest.mark.parametrize(
  ('saved', 'wanted'),
  [
    ({'a': _A}, {'a': _A, 'b': _B}),
    ({'a': _A, 'b': _B}, {'a': _A}),
    ({'a': _A}, {'a': _B}),
    ({'a': _A}, {'b': _A}),
  ],
)
def test_another_state_is_refused(saved, wanted, tmp_path):
  kept = _saved(tmp_path, {'params': saved})
  with pytest.raises(OSError, match='does not fit the experiment'):
    kept.restore({'params': wanted})


def test_parameters_are_read_alone(tmp_path):
  _saved(tmp_path, {'params': {'a': _A}, 'optimizer': (_B, {'a': _A})}).close()
  step, params = checkpoints.load(str(tmp_path), {'a': _A}, 1)
  assert step == 1
  assert params.keys() == {'a'} and (params['a'] == _A).all()


@pytest.mark.parametrize('wanted', [{'a': _A, 'b': _B}, {'a': _B}])
def test_other_parameters_are_refused(wanted, tmp_path):
  _saved(tmp_path, {'params': {'a': _A}, 'optimizer': _B}).close()
  wanted = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
    wanted,
  )
  with pytest.raises(OSError, match='does not fit the experiment'):
    checkpoints.load(str(tmp_path), wanted, 1)


def test_a_checkpoint_with_a_file_too_many_is_passed_over(tmp_path, capfd):
  kept = _saved(tmp_path, {'a': _A})
  kept.save(2, {'a': 2 * _A})
  (tmp_path / 'checkpoints' / '2' / 'stray').write_text('')
  step, state = kept.restore({'a': _A})
  assert step == 1 and (state['a'] == _A).all()
  message = 'Checkpoint 2 is damaged (stray has changed); passing it over.'
  assert message in capfd.readouterr().err


@pytest.mark.parametrize('sums', ['{}', '[]', '[' * 100_000, '{"a": 1}'])
def test_a_stray_folder_does_not_hide_the_one_before(sums, tmp_path, capsys):
  state = {'params': {'a': _A}}
  _saved(tmp_path, state).close()
  (tmp_path / 'checkpoints' / '7').mkdir()
  (tmp_path / 'checkpoints' / '7.sha256.json').write_text(sums)
  kept = checkpoints.Checkpoints(tmp_path)
  step, restored = kept.restore(state)
  kept.close()
  assert step == 1 and (restored['params']['a'] == _A).all()
  assert 'Checkpoint 7 is damaged' in capsys.readouterr().err


def test_a_file_in_place_of_the_folder_is_refused_at_once(tmp_path):
  (tmp_path / 'checkpoints').touch()
  with pytest.raises(OSError, match='checkpoints cannot be a folder: a file'):
    checkpoints.Checkpoints(tmp_path)
