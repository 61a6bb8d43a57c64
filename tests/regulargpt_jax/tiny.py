"""Tiny models, their strings, and what they answer; for several tests."""

import functools

import chex
import jax
import numpy as np

from regulargpt_jax import config as config_lib
from regulargpt_jax import model as model_lib
from tests.regulargpt_jax import parameters


@functools.cache
def model(preset, chunk_size, thickness, vocab_size, **overrides):
  """A tiny model whose every parameter matters, biases and norms too."""
  config = config_lib.make_config(
    preset,
    vocab_size,
    vocab_size,
    chunk_size=chunk_size,
    thickness=thickness,
    embedding_dim=8,
    num_heads=2,
    **overrides,
  )
  made = model_lib.RegularGPT(config)
  return made, parameters.random(made, np.zeros((1, 1), np.int32))


def tokens(lengths, width, vocab_size, seed=0):
  """One random string of each length, right-aligned."""
  symbols = np.random.default_rng(seed).integers(
    vocab_size, size=(len(lengths), width)
  )
  places = np.arange(width, 0, -1)
  return np.where(places <= np.array(lengths)[:, None], symbols, -1)


# What is compared is compared by NumPy: each operation of JAX is a program.
@functools.partial(jax.jit, static_argnums=(0, 3, 4))
def _apply_jax(model, params, tokens, path, extra_levels):
  return model.apply(params, tokens, path, extra_levels)


def apply(model, params, tokens, path='reduce', extra_levels=0):
  return np.asarray(_apply_jax(model, params, tokens, path, extra_levels))


def last_logits(model, params, tokens, path, extra_levels=0):
  logits = apply(model, params, tokens, path, extra_levels)
  return logits if path == 'reduce' else logits[:, -1]


def assert_close(actual, expected, tolerance=1e-5):
  """Trees agree within the tolerance of their largest entry, or of 1."""
  actual, expected = jax.device_get((actual, expected))
  largest = max(np.abs(x).max() for x in jax.tree.leaves(expected))
  chex.assert_trees_all_close(
    actual, expected, rtol=0, atol=tolerance * max(1.0, largest)
  )
