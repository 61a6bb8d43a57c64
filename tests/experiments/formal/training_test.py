"""The training loop: what it computes, compiles, writes and refuses."""

import dataclasses
import json
import shutil

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.engine import (
  checkpoints,
  devices,
  loop,
  metrics,
  optimization,
)
from experiments.engine import workdir as workdir_lib
from experiments.formal import (
  builders,
  config,
  data,
  range_evaluation,
  run,
  training,
)
from tests import refusals
from tests.experiments.formal import tiny


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  """A workdir of `TINY`, trained and evaluated."""
  workdir = tmp_path_factory.mktemp('trained') / 'run'
  run.train_and_evaluate(tiny.TINY, str(workdir))
  return workdir


@pytest.fixture
def workdir(trained, tmp_path):
  """Its copy, to be changed."""
  return shutil.copytree(trained, tmp_path / 'trained')


@pytest.fixture
def compilations():
  """Names of the programs that JAX compiles or finds in its cache."""
  names = []

  def listen(event, duration, fun_name='', **_):
    del duration
    if event == '/jax/core/compile/backend_compile_duration':
      names.append(fun_name)

  jax.monitoring.register_event_duration_secs_listener(listen)
  yield names
  jax.monitoring.unregister_event_duration_listener(listen)


def test_one_program_a_depth(compilations, tmp_path):
  """Of any model whose buckets are powers of 2, so of one that compiles fast.

  Training on 1..40 has 6, evaluating 1..500 has 9; it is as true of 8 and 20.
  """
  experiment = dataclasses.replace(
    tiny.TINY,
    architecture='rnn',
    architecture_params={'hidden_size': 4},
    sequence_length=8,
    training_steps=40,
    max_range_test_length=20,
    range_test_batch_size=2,
    smallest_bucket=1,
    log_every=0,
    checkpoint_every=0,
  )
  task, model = builders.make_task_and_model(experiment)
  for longest, number in ((8, 3), (20, 5), (40, 6), (500, 9)):
    widths = builders.bucket_widths(experiment, task, model, longest)
    assert len(widths) == number
  params = tiny.train(experiment, tmp_path)
  steps = [name for name in compilations if 'train_step' in name]
  assert len(steps) == 3, compilations
  compilations.clear()
  accuracies = range_evaluation.evaluate(
    experiment, task, model, params
  ).accuracy
  assert accuracies.shape == (1, 20)
  tests = [name for name in compilations if 'accuracy_of' in name]
  assert len(tests) == 5, compilations


def _step(experiment, task, model, width=5):
  source = data.make_source(task, experiment.batch_size, [width])
  return jax.jit(
    training.make_step(
      task,
      source,
      model,
      devices.make_mesh(1, 1),
      width,
      max_extra_levels=experiment.max_extra_levels,
      node_weight=experiment.node_weight,
    )
  )


def _of_run(state, i):
  """Returns a run's parameters as arrays of NumPy, which compiles nothing."""
  return jax.tree.map(lambda x: np.asarray(x)[i], state.params)


def _is_finite(tree):
  return all(np.isfinite(x).all() for x in jax.tree.leaves(tree))


@pytest.mark.parametrize(
  'node_weight', [pytest.param(0.0, marks=pytest.mark.slow), 0.5]
)
def test_a_step_is_adam_behind_clipping(node_weight):
  """Against optax's own chain, one run, one batch, by hand."""
  experiment = dataclasses.replace(
    tiny.TINY, learning_rate=0.01, node_weight=node_weight
  )
  task, model = builders.make_task_and_model(experiment)
  runs = training.make_runs([experiment.run])
  state = training.init_state(experiment, model)
  params = _of_run(state, 0)
  optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.01))
  optimizer_state = optimizer.init(params)
  step = _step(experiment, task, model)

  @jax.jit
  def by_hand(params, optimizer_state, i):
    rng = jax.random.fold_in(jax.random.key(experiment.seed), i)
    tokens = task.sample_tokens(jax.random.split(rng, 3)[0], 4, 5, 5)

    def loss_fn(params):
      log_p = jax.nn.log_softmax(model.apply(params, tokens, None))
      loss = -log_p[jnp.arange(4), task.solve(tokens)].mean()
      nodes = 0.0
      if node_weight:
        _, nodes = model.with_nodes(params, tokens, None, None, 0, 1)
      return loss + node_weight * nodes, loss

    (_, loss), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
    updates, optimizer_state = optimizer.update(grads, optimizer_state)
    return optax.apply_updates(params, updates), optimizer_state, loss

  total = 0.0
  for i in range(3):
    state = step(state, runs, jnp.int32(5))
    params, optimizer_state, loss = by_hand(params, optimizer_state, i)
    total += loss
  chex.assert_trees_all_close(_of_run(state, 0), params, atol=1e-5)
  np.testing.assert_allclose(state.loss_sum[0], total, rtol=1e-5)
  assert int(state.step) == 3


def test_runs_do_not_disturb_each_other():
  """Run i among others equals run i alone, also where a run diverges."""
  task, model = builders.make_task_and_model(tiny.TINY)
  runs = [(1e-3, 0, 0), (1e-2, 1, 5), (9e29, 0, 0)]
  step = _step(tiny.TINY, task, model)

  def trained(runs):
    state = training.init_state(tiny.TINY, model, runs)
    for length in (5, 3, 4):
      state = step(state, training.make_runs(runs), jnp.int32(length))
    return state

  together = trained(runs)
  for i in range(2):
    alone = trained(runs[i : i + 1])
    chex.assert_trees_all_close(
      _of_run(together, i), _of_run(alone, 0), atol=1e-5
    )
  np.testing.assert_array_equal(together.diverged_at, [-1, -1, 1])
  assert _is_finite(together.params)

  # What has diverged stays frozen, though its batch is finite.
  before = training.init_state(tiny.TINY, model, runs)
  before = before.replace(diverged_at=jnp.array([-1, -1, 1]))
  after = step(before, training.make_runs(runs), jnp.int32(5))
  assert _is_finite(after.loss_sum)
  np.testing.assert_array_equal(after.diverged_at, [-1, -1, 1])
  goes_on = []
  for new, old in zip(
    jax.tree.leaves((after.params, after.optimizer)),
    jax.tree.leaves((before.params, before.optimizer)),
    strict=True,
  ):
    new, old = np.asarray(new), np.asarray(old)
    goes_on.append((new[:2] != old[:2]).any(axis=tuple(range(1, new.ndim))))
    np.testing.assert_array_equal(new[2], old[2])
  # Not every parameter has a gradient on every batch.
  assert np.any(goes_on, axis=0).all()


def test_divergence_is_reported_and_the_last_good_checkpoint_kept(tmp_path):
  experiment = dataclasses.replace(tiny.TINY, learning_rate=9e29)
  for _ in range(2):
    with pytest.raises(loop.DivergedError, match='step 2'):
      tiny.train(experiment, tmp_path)
  warm = dataclasses.replace(
    tiny.TINY, learning_rate=9e29, warmup_steps=6, checkpoint_every=1
  )
  with pytest.raises(loop.DivergedError, match='step 3'):
    tiny.train(warm, tmp_path / 'warm')
  _, model = builders.make_task_and_model(warm)
  state = training.init_state(warm, model)
  step, kept = checkpoints.Checkpoints(tmp_path / 'warm').restore(state)
  assert step == 2
  assert _is_finite(kept.params)


def test_extra_levels_and_dropout_change_the_loss(trained, tmp_path):
  workdirs = [trained]
  for fields in ({'max_extra_levels': 2}, {'dropout_rate': 0.1}):
    workdirs.append(tmp_path / str(fields))
    tiny.train(dataclasses.replace(tiny.TINY, **fields), workdirs[-1])
  losses = {
    tuple(line['loss'] for line in metrics.read(workdir))
    for workdir in workdirs
  }
  assert len(losses) == 3
  assert np.isfinite(list(losses)).all()


def test_extra_levels_are_drawn_from_0_to_the_most():
  experiment = dataclasses.replace(tiny.TINY, max_extra_levels=2)
  task, model = builders.make_task_and_model(experiment)

  def revealing(params, tokens, target, rng, extra_levels, min_length):
    """Logits whose loss is the draw, with a gradient of zero."""
    del tokens, rng, min_length
    zero = sum(jnp.sum(0 * x) for x in jax.tree.leaves(params))
    p = jnp.exp(-(extra_levels + zero + 0.5))
    return jnp.log(jnp.where(target > 0, p, 1 - p))

  step = _step(experiment, task, dataclasses.replace(model, apply=revealing))
  runs = training.make_runs([experiment.run])
  state = training.init_state(experiment, model)
  draws = []
  for _ in range(60):
    state = step(state.replace(loss_sum=jnp.zeros(1)), runs, jnp.int32(5))
    draws.append(round(float(state.loss_sum[0]) - 0.5))
  counts = np.bincount(draws, minlength=3)
  assert len(counts) == 3
  assert counts.min() > 8


@pytest.mark.parametrize(
  ('schedule', 'warmup', 'expected'),
  [
    ('constant', 0, [1, 1, 1, 1]),
    ('constant', 50, [0, 0.5, 1, 1]),
    ('cosine', 50, [0, 0.5, 1, 0.5]),
  ],
)
def test_schedules(schedule, warmup, expected):
  experiment = dataclasses.replace(
    tiny.TINY, training_steps=150, schedule=schedule, warmup_steps=warmup
  )
  factor = optimization.make_schedule(experiment)
  actual = [float(factor(step)) for step in (0, 25, 50, 100)]
  np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_same_command_same_result_and_what_is_written(
  trained, tmp_path, capsys
):
  first, second = tmp_path / 'first', trained
  run.train_and_evaluate(tiny.TINY, str(first))
  printed = capsys.readouterr().out
  assert 'accuracy, lengths 6..9 (score)' in printed
  assert f'plot: {first}/range_evaluation.png' in printed
  for name in ('metrics.jsonl', 'range_evaluation.csv'):
    assert tiny.read(first, name) == tiny.read(second, name)
  lines = metrics.read(str(first))
  assert [line['step'] for line in lines] == [2, 4, 6]
  saved = json.loads(tiny.read(first, 'config.json'))
  assert config.Experiment(**saved['experiment']) == tiny.TINY
  assert saved['environment']['jax'] == jax.__version__
  evaluation = json.loads(tiny.read(first, 'range_evaluation.json'))
  accuracy = list(evaluation['accuracy'].values())
  assert len(accuracy) == 9
  np.testing.assert_allclose(
    evaluation['summary']['score'], np.mean(accuracy[5:])
  )
  # Run again: nothing left to train, the same table.
  run.train_and_evaluate(tiny.TINY, str(first))
  assert capsys.readouterr().out.split('plot')[0] in printed
  # Evaluating from the checkpoint gives what the run itself gave.
  run.evaluate(str(first), str(tmp_path / 'again'))
  assert tiny.read(tmp_path / 'again', 'range_evaluation.csv') == tiny.read(
    first, 'range_evaluation.csv'
  )


def _largest_file(workdir, step):
  folder = workdir / 'checkpoints' / str(step)
  return max(
    (p for p in folder.rglob('*') if p.is_file()),
    key=lambda p: p.stat().st_size,
  )


@pytest.mark.parametrize(
  'kind',
  ['truncated', 'flipped', pytest.param('missing', marks=pytest.mark.slow)],
)
def test_a_damaged_checkpoint_is_passed_over(kind, workdir, capfd):
  expected = tiny.train(tiny.TINY, workdir)  # It is already.
  victim = _largest_file(workdir, 6)
  if kind == 'missing':
    victim.unlink()
  else:
    contents = bytearray(victim.read_bytes())
    if kind == 'truncated':
      contents = contents[: len(contents) // 2]
    else:
      contents[len(contents) // 2] ^= 1
    victim.write_bytes(contents)
  actual = tiny.train(tiny.TINY, workdir)
  said = capfd.readouterr().err
  assert 'Checkpoint 6 is damaged' in said
  assert 'Resuming from step 4' in said
  chex.assert_trees_all_equal(actual, expected)


def test_nothing_but_damaged_checkpoints_is_an_error(workdir):
  for step in (2, 4, 6):
    _largest_file(workdir, step).write_bytes(b'')
  with pytest.raises(OSError, match='damaged'):
    tiny.train(tiny.TINY, workdir)


def test_bfloat16_trains(tmp_path):
  """Of a size whose products the CPU hands to its library."""
  experiment = dataclasses.replace(
    tiny.TINY,
    embedding_dim=64,
    batch_size=64,
    sequence_length=16,
    training_steps=2,
    precision='bfloat16',
  )
  params = tiny.train(experiment, tmp_path)
  assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(params))
  assert _is_finite(params)


def test_training_can_be_prolonged(workdir, tmp_path):
  longer = dataclasses.replace(tiny.TINY, training_steps=10)
  run.train_and_evaluate(longer, str(tmp_path / 'at_once'))
  run.train_and_evaluate(longer, str(workdir))
  for name in ('metrics.jsonl', 'range_evaluation.csv'):
    assert tiny.read(workdir, name) == tiny.read(tmp_path / 'at_once', name)
  later, _ = workdir_lib.load(str(workdir), config.Experiment)
  assert later == longer
  with pytest.raises(ValueError, match=r'training_steps 10 \(here: 6\)'):
    run.train_and_evaluate(tiny.TINY, str(workdir))


def test_what_does_not_change_the_result_may_differ(trained, tmp_path):
  expected = tiny.train(tiny.TINY, trained)  # It is already.
  (tmp_path / 'second').mkdir()
  workdir_lib.claim(tiny.TINY, str(tmp_path / 'second'))
  other = dataclasses.replace(tiny.TINY, log_every=4, checkpoint_every=5)
  workdir_lib.claim(other, str(tmp_path / 'second'))
  actual = tiny.train(other, tmp_path / 'second')
  chex.assert_trees_all_equal(actual, expected)
  lines = metrics.read(str(tmp_path / 'second'))
  assert [line['step'] for line in lines] == [4, 6]


def test_damaged_metrics_lose_only_the_damaged_lines(workdir):
  path = workdir / 'metrics.jsonl'
  lines = path.read_text().splitlines(keepends=True)
  damaged = ['garbage\n', 'null\n', '{"step": "x"}\n', *lines, '{"step": 8']
  path.write_text(''.join(damaged))
  path.write_bytes(path.read_bytes() + b'\xff')
  assert [line['step'] for line in metrics.read(str(workdir))] == [2, 4, 6]


def test_a_checkpoint_of_another_shape_is_one_line(workdir, monkeypatch):
  monkeypatch.setattr(checkpoints, '_LAST_WORDS_S', 0.0)
  other = dataclasses.replace(tiny.TINY, embedding_dim=16)
  with refusals.one_line(r'fit .* stored shape: [\d(), ]+\.$', OSError):
    tiny.train(other, workdir)
