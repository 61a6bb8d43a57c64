"""Range evaluation: accuracy at every length of a range."""

from collections.abc import Callable, Sequence
import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from experiments.engine import devices, programs, progress
from experiments.formal import buckets, builders, data, models, training
from experiments.formal import config as config_lib
from tasks import task as task_lib

# Test strings come from this stream, whatever a run's own seed is, so that all
# runs are tested on the same ones.
TEST_SEED = 0x7E57
# Lengths handed to the device before the first has to be done.
_IN_FLIGHT = 8


class Found(NamedTuple):
  """What was found at each length; column i is length i + 1.

  Attributes:
    accuracy: Of R runs, float [R, lengths]; NaN where it is not tested.
    answers: Share of each of K answers among the right ones, which is the
      accuracy of a model that always gives it; float [K, lengths], NaN
      likewise.
  """

  accuracy: np.ndarray
  answers: np.ndarray


def evaluate(
  experiment: config_lib.Experiment,
  task: task_lib.GeneralizationTask,
  model: models.Model,
  params: chex.ArrayTree,
) -> Found:
  """Returns the accuracy of every run at every length.

  Args:
    experiment: Says the lengths and the number of strings of each.
    task: What to test on.
    model: What to test.
    params: Its parameters, [R, ...].
  """
  num_runs = jax.tree.leaves(params)[0].shape[0]
  # That of training, on which the parameters lie.
  mesh = devices.make_mesh(num_runs, experiment.batch_size)
  num_devices = mesh.shape['run']
  lengths = range(
    experiment.min_range_test_length, experiment.max_range_test_length + 1
  )
  batch_size = experiment.range_test_batch_size
  widths = builders.bucket_widths(experiment, task, model, lengths[-1])
  source = data.make_source(task, batch_size, widths)
  # On a CPU a device's runs take turns, so that what the calls of one share has
  # room; but strings that are made in Python are made once.
  takes_turns = jax.default_backend() == 'cpu' and source.run_axis is None
  num_turns = num_runs // num_devices if takes_turns else 1
  num_symbols = batch_size * sum(
    data.input_length(task, length) for length in lengths
  )
  by_run = devices.sharding(mesh, 'run')

  @functools.partial(jax.jit, out_shardings=by_run)
  def of_turn(params, turn):
    def pick(x):
      x = x.reshape(num_devices, num_turns, -1, *x.shape[1:])[:, turn]
      return x.reshape(-1, *x.shape[2:])

    return jax.tree.map(pick, params)

  share = jax.jit(
    jax.vmap(
      functools.partial(
        model.share,
        num_symbols=num_symbols,
        num_runs=num_runs // num_turns // num_devices,
      )
    ),
    out_shardings=by_run,
  )
  some = of_turn(params, 0)
  shares = bool(jax.tree.leaves(jax.eval_shape(share, some)))
  if shares:
    with progress.timed('Compiling what all lengths share'):
      share = programs.compiled('what all lengths share', share.lower(some))
  accuracy_programs = programs.Programs(
    'the evaluation of strings of up to {} symbols',
    lambda width: make_test(
      task,
      source,
      model,
      mesh,
      width,
      buckets.shortest_in(width, widths),
    ),
    out_shardings=(by_run, devices.sharding(mesh), devices.sharding(mesh)),
  )

  def found_of(params, bar):
    """Returns arrays [runs of the turn, lengths], [K, lengths], [lengths]."""
    shared = share(params) if shares else None
    found = []
    stream = source.stream(
      [TEST_SEED], ((length, length) for length in lengths)
    )
    for length, (width, host_data) in zip(lengths, stream, strict=True):
      # All runs are tested on the same strings.
      host_data = data.of_one_run(source, host_data)
      if source.run_axis is None and not accuracy_programs.num_compiled:
        accuracy_programs.prepare(
          widths[widths.index(width) :],
          params,
          shared,
          np.int32(length),
          host_data,
        )
      found.append(
        accuracy_programs(width, params, shared, np.int32(length), host_data)
      )
      # The device always has some work waiting, and the bar tells the truth.
      if len(found) >= _IN_FLIGHT:
        jax.block_until_ready(found[-_IN_FLIGHT])
        bar.update()
    found = devices.fetch(found)
    bar.update(min(len(lengths), _IN_FLIGHT - 1))
    return [np.stack(x, axis=-1) for x in zip(*found, strict=True)]

  with progress.bar(num_turns * len(lengths), 0, 'Evaluate', 'length') as bar:
    by_turn, answers, _ = zip(
      *(found_of(of_turn(params, turn), bar) for turn in range(num_turns)),
      strict=True,
    )
  accuracies = np.stack(
    [x.reshape(num_devices, -1, len(lengths)) for x in by_turn], axis=1
  )
  # All turns are tested on the same strings.
  return Found(
    *(
      np.pad(x, ((0, 0), (lengths[0] - 1, 0)), constant_values=np.nan)
      for x in (accuracies.reshape(num_runs, -1), answers[0])
    )
  )


def make_test(
  task: task_lib.GeneralizationTask,
  source: data.Source,
  model: models.Model,
  mesh: jax.sharding.Mesh,
  width: int,
  min_length: int = 1,
) -> Callable[..., tuple[jax.Array, jax.Array, jax.Array]]:
  """Returns the test of a bucket.

  Args:
    task: What to test on.
    source: Of its strings.
    model: What to test.
    mesh: Of `devices.make_mesh`.
    width: What strings are padded to.
    min_length: No string of the bucket is shorter.

  Returns:
    f(params, shared, length, host data, seed=TEST_SEED) -> accuracies [R],
    shares of the right answers [K], and how many answers count, with parameters
    and what they share [R, ...].
  """

  def accuracy_of(params, shared, length, host_data, seed=TEST_SEED):
    rng = jax.random.fold_in(jax.random.key(seed), length)
    batch = devices.divided(mesh, source.batch(rng, host_data, width))

    def of_run(params, shared):
      def count_right(part):
        tokens, target = part
        logits = model.apply(
          params,
          tokens,
          target,
          shared=shared,
          is_test=True,
          min_length=min_length,
        )
        return training.count_right(task, logits, target)

      num_right, num_counted = in_parts(count_right, batch, model)
      return num_right.sum() / jnp.maximum(num_counted.sum(), 1)

    num_runs = len(jax.tree.leaves(params)[0])
    of_runs = training.map_over_runs(of_run, (0, 0), 0, num_runs)
    _, target = batch
    counted = training.counted(task, target)[..., None]
    num_counted = counted.sum()
    shares_K = jnp.sum(target * counted, axis=range(target.ndim - 1))
    shares_K /= jnp.maximum(num_counted, 1)
    return of_runs(params, shared), shares_K, num_counted

  return accuracy_of


def in_parts(
  function: Callable[[Any], Any], batch: Any, model: models.Model
) -> Any:
  """Returns what a function makes of each part of a batch, on a first axis.

  Part p of P has the strings p, p + P, p + 2 P, ...
  """
  tokens_BxW = batch[0]
  batch_size = len(tokens_BxW)
  # The least number of equal parts that are small enough.
  num_parts = -(-batch_size // model.tested_at_once(*tokens_BxW.shape))
  while batch_size % num_parts:
    num_parts += 1

  def divided(x):
    # A part has strings of each device, which hold neighbours.
    return x.reshape(-1, num_parts, *x.shape[1:]).swapaxes(0, 1)

  return jax.lax.map(function, jax.tree.map(divided, batch))


def score(accuracies: Sequence[float], training_length: int) -> float | None:
  """Returns the mean accuracy on lengths beyond the training lengths.

  The mean is over training_length + 1 .. the longest, both included
  (Deletang et al., 2023, section 5); None where there is none.

  Args:
    accuracies: Of lengths 1, 2, ...; NaN where it is not tested.
    training_length: The longest training string.
  """
  return mean(accuracies[training_length:])


def mean(accuracies: Sequence[float]) -> float | None:
  """Returns the mean over the lengths that are tested, None without any."""
  tested = np.array(accuracies, float)
  tested = tested[~np.isnan(tested)]
  return float(tested.mean()) if tested.size else None
