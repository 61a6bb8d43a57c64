"""Range evaluation: accuracy at every length from 1 to the longest."""

from collections.abc import Sequence
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

from experiments import buckets, builders, models, progress
from experiments import config as config_lib
from tasks import task as task_lib

# Test strings come from this stream, whatever a run's own seed is, so that all
# runs are tested on the same ones.
_TEST_SEED = 0x7E57


def evaluate(
  experiment: config_lib.Experiment,
  task: task_lib.TokenTask,
  model: models.Model,
  params: chex.ArrayTree,
) -> np.ndarray:
  """Returns the accuracy of every run at every length, float [R, lengths].

  Args:
    experiment: Says the longest length and the number of strings a length.
    task: What to test on.
    model: What to test.
    params: Its parameters, [R, ...].

  Returns:
    Column i is length i + 1.
  """
  lengths = range(1, experiment.max_range_test_length + 1)
  batch_size = experiment.range_test_batch_size
  widths = builders.bucket_widths(experiment, task, model, lengths[-1])
  num_symbols = batch_size * sum(
    builders.input_length(task, length) for length in lengths
  )
  share = jax.jit(
    jax.vmap(functools.partial(model.share, num_symbols=num_symbols))
  )
  with progress.timed('Compiling and computing what all lengths share'):
    shared = jax.block_until_ready(share(params))

  def accuracy_of(params, shared, rng, length, width):
    tokens = task.sample_tokens(rng, batch_size, length, width)
    target = jax.nn.one_hot(task.solve(tokens), task.output_size)

    def of_run(params, shared):
      logits = model.apply(params, tokens, shared=shared)
      mask = task.accuracy_mask(target)
      return jnp.sum(mask * task.accuracy_fn(logits, target)) / jnp.sum(mask)

    return jax.vmap(of_run)(params, shared)

  programs = {}
  rng = jax.random.key(_TEST_SEED)
  accuracies = []
  with progress.bar(len(lengths), 0, 'Evaluate', 'length') as bar:
    for length in lengths:
      arguments = (
        params,
        shared,
        jax.random.fold_in(rng, length),
        jnp.int32(length),
      )
      width = buckets.bucket_of(builders.input_length(task, length), widths)
      if width not in programs:
        with progress.timed(
          f'Compiling the evaluation of strings of up to {width} symbols'
        ):
          programs[width] = (
            jax.jit(accuracy_of, static_argnums=4)
            .lower(*arguments, width)
            .compile()
          )
      accuracies.append(np.asarray(programs[width](*arguments)))
      bar.update()
  return np.stack(accuracies, axis=-1)


def score(accuracies: Sequence[float], training_length: int) -> float | None:
  """Returns the mean accuracy on lengths beyond the training lengths.

  The mean is over training_length + 1 .. the longest, both included
  (Deletang et al., 2023, section 5); None where there is none.

  Args:
    accuracies: Of lengths 1, 2, ...
    training_length: The longest training string.
  """
  beyond = accuracies[training_length:]
  return float(np.mean(beyond)) if len(beyond) else None
