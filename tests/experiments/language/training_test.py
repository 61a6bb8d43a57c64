"""The loop of the language models: what it computes and what it keeps."""

import dataclasses
import functools
import signal

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from experiments.engine import estimates, loop, metrics, stopping
from experiments.language import config, sharding, training
from experiments.text import loading
from tests.experiments.language import texts

_GPT = dataclasses.replace(
  texts.TINY, architecture='gpt_lm', position_bias='kerple_log'
)


def _batch(i):
  """Four strings, one of which is the end of a text."""
  rng = np.random.default_rng(i)
  tokens = rng.integers(0, texts.VOCAB_SIZE, (4, 11))
  tokens[2, -4:] = -1
  return jnp.array(tokens, jnp.int32)


@functools.cache
def _step(experiment):
  return jax.jit(
    functools.partial(training.train_step, experiment, sharding.make_mesh())
  )


# Names of all parameters of both models that do not decay.
_NOT_DECAYED = {'bias', 'scale', 'position_bias', 'r1', 'r2'}


@pytest.mark.parametrize(
  'tiny',
  [pytest.param(_GPT, marks=pytest.mark.slow), texts.TINY],
  ids=['gpt', 'regular_gpt'],
)
def test_a_step_is_adamw_behind_clipping(tiny):
  """Against optax's own chain; biases, norms and positions do not decay."""
  experiment = dataclasses.replace(tiny, learning_rate=1e-2, weight_decay=1.0)
  model = config.make_model(experiment)
  state = training.init_state(experiment, sharding.make_mesh())
  # Biases start at 0, where nothing decays.
  state = state.replace(params=jax.tree.map(lambda x: x + 0.3, state.params))
  optimizer = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.adamw(
      1e-2,
      0.9,
      0.95,
      weight_decay=1.0,
      mask=lambda p: jax.tree_util.tree_map_with_path(
        lambda path, x: path[-1].key not in _NOT_DECAYED, p
      ),
    ),
  )
  params = state.params
  optimizer_state = optimizer.init(params)

  @jax.jit
  def by_hand(params, optimizer_state, tokens):
    def loss_fn(params):
      logits = model.apply(params, tokens[:, :-1], method='all_logits')
      log_p = jax.nn.log_softmax(logits)
      found = jnp.take_along_axis(log_p, tokens[:, 1:, None], -1)[..., 0]
      return -found.mean(where=tokens[:, 1:] >= 0)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, optimizer_state = optimizer.update(grads, optimizer_state, params)
    return optax.apply_updates(params, updates), optimizer_state, loss

  step = _step(experiment)
  total = 0.0
  for i in range(3):
    state = step(state, _batch(i))
    params, optimizer_state, loss = by_hand(params, optimizer_state, _batch(i))
    total += loss
  np.testing.assert_allclose(state.loss_sum, total, rtol=1e-5)
  # Rounding, that Adam magnifies; what decays by mistake is 9e-3 off.
  chex.assert_trees_all_close(state.params, params, atol=1e-3)


def test_a_model_that_diverged_stays_frozen():
  """Though its batch is finite."""
  before = training.init_state(texts.TINY, sharding.make_mesh())
  before = before.replace(diverged_at=jnp.int32(3))
  after = _step(texts.TINY)(before, _batch(0))
  assert after.diverged_at == 3 and jnp.isfinite(after.loss_sum)
  chex.assert_trees_all_equal(
    (after.params, after.optimizer), (before.params, before.optimizer)
  )


def test_accumulation_equals_the_large_batch():
  """Adam's moments to 1e-6; its steps magnify what rounding is in them."""
  states = []
  for accumulation_steps in (1, 4):
    experiment = dataclasses.replace(
      texts.TINY, accumulation_steps=accumulation_steps
    )
    state = training.init_state(experiment, sharding.make_mesh())
    states.append(_step(experiment)(state, _batch(0)))
  whole, in_parts = states
  np.testing.assert_allclose(in_parts.loss_sum, whole.loss_sum, rtol=1e-5)
  chex.assert_trees_all_close(in_parts.optimizer, whole.optimizer, atol=1e-6)


def test_some_steps_repeat_the_last_level():
  """Each step as one of a given number of repetitions, drawn of its number."""
  deep = dataclasses.replace(texts.TINY, max_extra_levels=2)
  numbers = [int(training.extra_levels(deep, i)) for i in range(200)]
  assert {numbers.count(n) > 10 for n in (1, 2)} == {True}
  assert 130 < numbers.count(0) < 170
  other = dataclasses.replace(deep, seed=1)
  assert numbers != [int(training.extra_levels(other, i)) for i in range(200)]
  model = config.make_model(deep)
  state = training.init_state(deep, sharding.make_mesh())
  tokens = _batch(0)

  @functools.partial(jax.jit, static_argnums=0)
  def loss(num_repeats):
    losses = model.apply(
      state.params,
      jnp.maximum(tokens[:, :-1], 0),
      tokens[:, 1:],
      num_repeats=num_repeats,
      method='losses',
    )
    return losses.mean(where=tokens[:, 1:] >= 0)

  found = []
  for number in range(3):
    at = state.replace(step=jnp.int32(numbers.index(number)))
    found.append(float(_step(deep)(at, tokens).loss_sum))
    np.testing.assert_allclose(found[-1], loss(number), rtol=1e-5)
  assert len(set(found)) == 3


def test_warm_up_and_cosine_scale_the_step():
  """From 0, and to 0 again."""
  rates = {'warmup_steps': 2, 'schedule': 'cosine', 'training_steps': 6}
  scheduled = dataclasses.replace(_GPT, **rates)
  state = training.init_state(scheduled, sharding.make_mesh())
  step = _step(scheduled)
  first = step(state, _batch(0))
  chex.assert_trees_all_equal(first.params, state.params)  # Rate 0.
  moved = step(first.replace(step=jnp.int32(6)), _batch(0))
  chex.assert_trees_all_close(moved.params, first.params, atol=1e-9)
  moved = step(first, _batch(0))
  change = jax.tree.map(np.subtract, moved.params, first.params)
  assert max(np.abs(x).max() for x in jax.tree.leaves(change)) > 1e-4


@pytest.mark.parametrize(
  'experiment', [texts.TINY, pytest.param(_GPT, marks=pytest.mark.slow)]
)
def test_overfits_one_batch(experiment, tmp_path):
  """The text is one batch long; its order in the batch is all that varies."""
  experiment = dataclasses.replace(
    experiment,
    learning_rate=1e-2,
    training_steps=100,
    embedding_dim=32,
    batch_size=2,
    log_every=20,
    validate_every=0,
    checkpoint_every=0,
  )
  num_tokens = experiment.batch_size * experiment.sequence_length + 1
  text = texts.random_text(num_tokens)
  training.train(experiment, str(tmp_path), text)
  losses = [x['loss'] for x in metrics.read(str(tmp_path)) if 'loss' in x]
  assert losses[0] > 1.0 and losses[-1] < 0.1, losses
  # On other random tokens it is worse than a guess.
  (validation,) = [
    x['validation_loss']
    for x in metrics.read(str(tmp_path))
    if 'validation_loss' in x
  ]
  assert validation > np.log(texts.VOCAB_SIZE)


@pytest.fixture(scope='module')
def undisturbed(tmp_path_factory):
  workdir = str(tmp_path_factory.mktemp('whole'))
  return workdir, training.train(texts.TINY, workdir, texts.random_text(300))


@pytest.mark.parametrize(
  'stop_after', [3, pytest.param(4, marks=pytest.mark.slow)]
)
def test_resuming_is_bit_identical(stop_after, undisturbed, tmp_path):
  text = texts.random_text(300)
  workdir, whole = undisturbed
  prefetched = loading.prefetched

  def with_signal(batches, first_step):
    for step, batch in enumerate(prefetched(batches, first_step), 1):
      if step == stop_after:
        signal.raise_signal(signal.SIGTERM)
      yield batch

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(loading, 'prefetched', with_signal)
    with pytest.raises(stopping.RunInterruptedError):
      training.train(texts.TINY, str(tmp_path), text)
  resumed = training.train(texts.TINY, str(tmp_path), text)
  chex.assert_trees_all_equal(resumed, whole)
  assert metrics.read(str(tmp_path)) == metrics.read(workdir)


def test_what_is_logged(tmp_path):
  """Means of the steps since the last line; losses of one and the same text."""
  # Eight windows, the last one half full: two batches, also of validation.
  text = texts.random_text(76)
  experiment = dataclasses.replace(texts.TINY, learning_rate=1e-12)
  state = training.train(experiment, str(tmp_path), text)
  model = config.make_model(experiment)
  rows = metrics.read(str(tmp_path))
  assert [row['step'] for row in rows if 'loss' in row] == [2, 4, 6]
  assert [row['step'] for row in rows if 'validation_loss' in row] == [4, 6]

  @jax.jit
  def losses(tokens):
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    return model.apply(state.params, inputs, targets, method='losses')

  def of_targets(split, i):
    batch = loading.training_batches(text.streams[split], 10, 4, seed=0)[i]
    return losses(batch)[batch[:, 1:] >= 0]

  found = [row['loss'] for row in rows if 'loss' in row]
  means = [of_targets('train', i).mean() for i in range(6)]
  np.testing.assert_allclose(found, np.reshape(means, (3, 2)).mean(1), 1e-5)
  found = [row['validation_loss'] for row in rows if 'validation_loss' in row]
  both = np.concatenate([of_targets('validation', i) for i in (0, 1)])
  assert len(both) == 75
  np.testing.assert_allclose(found, [both.mean()] * 2, 1e-5)


@pytest.mark.parametrize(('chunk_size', 'least'), [(2, 4), (4, 2), (16, 1)])
def test_models_know_the_depth_of_their_training(chunk_size, least):
  """At 10 tokens; what it means is tested with the model."""
  experiment = dataclasses.replace(texts.TINY, chunk_size=chunk_size)
  assert config.make_model(experiment).config.min_levels == least


def test_divergence_keeps_the_last_good_checkpoint(tmp_path):
  experiment = dataclasses.replace(texts.TINY, learning_rate=9e29)
  for _ in range(2):
    with pytest.raises(loop.DivergedError, match='step 2'):
      training.train(experiment, str(tmp_path), texts.random_text(300))


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'architecture': 'rnn'}, 'regular_gpt_lm, gpt_lm'),
    ({'batch_size': 6, 'accumulation_steps': 4}, 'multiple of'),
    ({'learning_rate': 0.0}, 'learning_rate'),
    ({'weight_decay': -1.0}, 'weight_decay'),
    ({'warmup_steps': 7}, 'warmup_steps'),
    ({'position_bias': 'rotary'}, 'alibi, kerple_log, t5, none'),
    ({'training_steps': 0}, 'training_steps'),
  ],
)
def test_impossible_experiments_are_refused(fields, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(texts.TINY, **fields)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'embedding_dim': 10**7}, 'The parameters, their gradients and the state'),
    ({'batch_size': 2**31 - 1}, '21,474,836,470 tokens need about 1.37 TB'),
  ],
)
@pytest.mark.parametrize('tiny', [_GPT, texts.TINY], ids=['gpt', 'regular_gpt'])
def test_what_cannot_fit_is_refused(tiny, fields, message, monkeypatch):
  monkeypatch.setattr(estimates, 'memory', lambda: 2**34)
  mesh = sharding.make_mesh()
  training.check_fits(tiny, mesh)
  with pytest.raises(ValueError, match=message):
    training.check_fits(dataclasses.replace(tiny, **fields), mesh)


def test_more_blocks_than_can_be_compiled_are_refused():
  for tiny, name in ((_GPT, 'num_layers'), (texts.TINY, 'thickness')):
    with pytest.raises(ValueError, match=f'{name} must be at most 256'):
      dataclasses.replace(tiny, **{name: 10**9})
