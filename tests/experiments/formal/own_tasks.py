"""Tasks of a user who writes them for this project."""

import numpy as np

from tasks import random_symbols
from tasks import task as task_lib
from tasks.regular import parity_check


class LastSymbol(task_lib.TokenTask):
  """Which symbol came last?"""

  input_size = 3
  output_size = 3

  def sample_tokens(self, rng, batch_size, length, width):
    return random_symbols.uniform_strings(
      rng, batch_size, length, width, self.input_size
    )

  def solve(self, tokens):
    return tokens[:, -1]


class PartlyNamed(LastSymbol):
  """Which symbol came last? The third has no name."""

  input_symbols = ('a', 'b')


class Parity(parity_check.ParityCheck):
  """Is the number of 1s odd?"""


class Copy(task_lib.GeneralizationTask):
  """The string, sampled in Python."""

  input_size = 2
  output_size = 2

  def sample_batch(self, rng, batch_size, length):
    one_hot = np.eye(2)[np.random.randint(2, size=(batch_size, length))]
    return {'input': one_hot, 'output': one_hot}

  def output_length(self, input_length):
    return input_length


class NoShortStrings(task_lib.GeneralizationTask):
  """Which symbol came first? Of strings of 3 symbols and more."""

  input_size = 2
  output_size = 2

  def sample_batch(self, rng, batch_size, length):
    if length < 3:
      raise ValueError('too short')
    one_hot = np.eye(2)[np.random.randint(2, size=(batch_size, length))]
    return {'input': one_hot, 'output': one_hot[:, 0]}
