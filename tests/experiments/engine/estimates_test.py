"""What does not fit is refused; what is estimated is not more than it takes."""

import jax
import jax.numpy as jnp
import pytest

from experiments.engine import devices, estimates, programs


def test_bytes_of_arrays():
  shapes = jax.eval_shape(
    lambda: {'a': jnp.zeros((10**9, 10**9)), 'b': jnp.zeros(3, jnp.bfloat16)}
  )
  assert estimates.of_arrays(shapes) == 4 * 10**18 + 6
  assert estimates.of_arrays({'a': jnp.zeros((2, 3))}) == 24
  mesh = devices.make_mesh(len(jax.devices()), 1)
  lies = devices.sharding(mesh, 'run')
  divided = jax.ShapeDtypeStruct(
    (len(jax.devices()), 5), jnp.float32, sharding=lies
  )
  assert estimates.of_arrays(divided) == 20


def test_more_than_the_memory_is_refused_with_the_estimate():
  room = estimates.memory()
  assert 2**28 < room < 2**50
  estimates.check('Arrays', room, 'batch')
  with pytest.raises(
    ValueError, match=r'^Arrays need about 5 EB of memory, of'
  ):
    estimates.check('Arrays', 5 * 10**18, 'batch')
  with pytest.raises(
    ValueError, match=r'about 3 kB of memory, of 2 kB. Choose'
  ):
    estimates.check('Arrays', 3000, 'batch', room=2000)


def test_a_program_is_checked_before_it_runs(monkeypatch):
  program = jax.jit(lambda x: (x @ x.T).sum(0)).lower(jnp.ones((64, 4)))
  programs.compiled('a step', program)
  monkeypatch.setattr(estimates, 'memory', lambda: 1000)
  with pytest.raises(ValueError, match='The arrays of a step need about'):
    programs.compiled('a step', program)


def test_a_container_has_the_memory_that_it_may_use(monkeypatch, tmp_path):
  limit = tmp_path / 'memory.max'
  monkeypatch.setattr(estimates, '_CGROUPS', (str(limit),))
  whole = estimates.host_memory()
  limit.write_text('max\n')
  assert estimates.host_memory() == whole
  limit.write_text('123456\n')
  assert estimates.host_memory() == 123456
