"""A task as a user of DeepMind's benchmark has it: Python and NumPy inside."""

import random

import jax.nn as jnn
from neural_networks_chomsky_hierarchy.tasks import task
import numpy as np


class FirstSymbol(task.GeneralizationTask):
  """Which symbol came first?"""

  def sample_batch(self, rng, batch_size, length):
    strings = np.random.randint(3, size=(batch_size, length))
    shift = random.randrange(3)
    strings = (strings + shift) % 3
    return {
      'input': jnn.one_hot(strings, self.input_size),
      'output': jnn.one_hot(strings[:, 0], self.output_size),
    }

  @property
  def input_size(self):
    return 3

  @property
  def output_size(self):
    return 3


class Repeat(task.GeneralizationTask):
  """The string, and its first symbol again."""

  def sample_batch(self, rng, batch_size, length):
    strings = np.random.randint(2, size=(batch_size, length))
    outputs = np.concatenate([strings, strings[:, :1]], axis=1)
    return {
      'input': np.eye(2)[strings],
      'output': np.eye(2)[outputs],
    }

  @property
  def input_size(self):
    return 2

  @property
  def output_size(self):
    return 2

  def output_length(self, input_length):
    return input_length + 1
