"""Perplexity of the last token, after contexts of several lengths.

Only the last token of a string counts, so that all predictions have the whole
context (no "early token curse"), and the last tokens are the same at every
length, so that nothing but the context differs.

The paper averages "over 1,000 sequences and report[s] their averaged
perplexities" (Chi et al., 2023, section 5). Here the perplexity of a model is
exp of the mean cross-entropy over the sequences, and Table 3's numbers are
means of that over seeds. The mean over sequences of exp(cross-entropy), 1/p of
a single token, would be ruled by the few least likely tokens: a model with the
paper's 25 would have thousands.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math

import chex
from flax import linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.engine import (
  devices,
  options,
  parameters,
  programs,
  progress,
  selection,
)
from experiments.language import sharding
from experiments.text import loading

# Lengths of an evaluation, of which each is compiled.
_MAX_PROGRAMS = 256


@dataclasses.dataclass(frozen=True)
class Perplexity:
  """Of the last tokens of many strings.

  Attributes:
    perplexity: exp(`loss`).
    standard_error: Of `perplexity`, to first order: itself times that of
      `loss`. It is of the choice of strings; that of a `Difference` is smaller,
      for the strings end in the same tokens.
    loss: Mean cross-entropy, nats.
  """

  perplexity: float
  standard_error: float
  loss: float


@dataclasses.dataclass(frozen=True)
class Difference:
  """Between the losses of the same last tokens after two contexts.

  Attributes:
    loss: Mean of the cross-entropies less those after the shorter one, nats.
    standard_error: Of `loss`, over the tokens.
  """

  loss: float
  standard_error: float


def perplexity(losses_N: np.ndarray) -> Perplexity:
  """Returns the perplexity of N >= 2 tokens from their cross-entropies.

  Of a model whose numbers overflow it is infinite.
  """
  losses_N = np.asarray(losses_N, np.float64)
  if not np.isfinite(losses_N).all():
    return Perplexity(math.inf, math.inf, math.inf)
  loss = float(losses_N.mean())
  error = float(losses_N.std(ddof=1)) / math.sqrt(len(losses_N))
  with np.errstate(over='ignore'):
    value = float(np.exp(loss))
  return Perplexity(value, value * error if error else 0.0, loss)


def differences(
  losses_N: Mapping[int, np.ndarray],
) -> dict[int, Difference]:
  """Returns the differences from the shortest context, by longer length.

  Args:
    losses_N: Of the same N >= 2 tokens, by length, as `last_token_losses`
      returns them. Of a model whose numbers overflow, differences are infinite.
  """
  shortest, *longer = sorted(losses_N)
  found = {}
  for length in longer:
    with np.errstate(invalid='ignore'):
      difference_N = np.subtract(
        losses_N[length], losses_N[shortest], dtype=np.float64
      )
    found[length] = Difference(math.inf, math.inf)
    if np.isfinite(difference_N).all():
      error = float(difference_N.std(ddof=1)) / math.sqrt(len(difference_N))
      found[length] = Difference(float(difference_N.mean()), error)
  return found


def check_numbers(
  lengths: Sequence[int], num_sequences: int, batch_tokens: int
) -> None:
  """Checks those arguments of `last_token_losses` that are numbers.

  Raises:
    ValueError: If one is out of bounds, or a length given twice.
  """
  if not lengths or min(lengths) < 1:
    raise ValueError(f'lengths must be positive, got {list(lengths)}.')
  parameters.check_bounds('num_sequences', num_sequences, 2, options.MAX_INT)
  parameters.check_bounds('batch_tokens', batch_tokens, 1, options.MAX_INT)
  if len(lengths) > _MAX_PROGRAMS:
    raise ValueError(
      'Each of the lengths is a program to compile, and there may be at most'
      f' {_MAX_PROGRAMS}, got {len(lengths)}.'
    )
  selection.check_lists(lengths=lengths)


def check(
  stream: loading.Stream,
  lengths: Sequence[int],
  num_sequences: int,
  batch_tokens: int,
) -> None:
  """Checks the arguments of `last_token_losses`.

  Raises:
    ValueError: If a number is out of bounds, or the stream is too short.
  """
  check_numbers(lengths, num_sequences, batch_tokens)
  loading.check_long_enough(stream, max(lengths), num_sequences)


def last_token_losses(
  model: nn.Module,
  params: chex.ArrayTree,
  stream: loading.Stream,
  lengths: Sequence[int],
  num_sequences: int,
  batch_tokens: int,
) -> dict[int, np.ndarray]:
  """Returns the cross-entropy of last tokens, nats, float [N], by length.

  Args:
    model: A language model, with the method `last_logits`.
    params: Its parameters, on all devices.
    stream: What to evaluate on.
    lengths: Of what the model reads; a string is one token longer.
    num_sequences: N.
    batch_tokens: How many tokens the model reads at once, at least one string
      on each device.

  Raises:
    ValueError: As `check`.
  """
  check(stream, lengths, num_sequences, batch_tokens)
  mesh = sharding.make_mesh()

  @jax.jit
  def losses_fn(params, tokens_BxS):
    logits = model.apply(params, tokens_BxS[:, :-1], method='last_logits')
    return optax.softmax_cross_entropy_with_integer_labels(
      logits.astype(jnp.float32), tokens_BxS[:, -1]
    )

  losses = {}
  with progress.bar(
    sum(lengths) * num_sequences, 0, 'Evaluate', 'token'
  ) as bar:
    for length in lengths:
      bar.set_postfix_str(f'length {length:,}')  # Compiling takes a while.
      batch_size = min(max(batch_tokens // length, 1), num_sequences)
      batch_size += -batch_size % mesh.size
      shape = jax.ShapeDtypeStruct(
        (batch_size, length + 1), jnp.int32, sharding=sharding.of_batch(mesh)
      )
      program = programs.compiled(
        f'{batch_size:,} strings of {length:,} tokens',
        losses_fn.lower(params, shape),
        'batch_tokens',
      )
      batches = loading.evaluation_batches(
        stream, length, max(lengths), num_sequences, batch_size
      )
      found = []
      for batch in loading.prefetched(batches):
        # The last batch is filled up, so that there is one program a length.
        filled = np.resize(batch, (batch_size, length + 1))
        # Every process has read all of it.
        tokens_BxS = jax.make_array_from_callback(
          filled.shape, sharding.of_batch(mesh), filled.__getitem__
        )
        part_B = devices.fetch(program(params, tokens_BxS))
        found.append(part_B[: len(batch)])
        bar.update(len(batch) * length)
      losses[length] = np.concatenate(found)
  return losses
