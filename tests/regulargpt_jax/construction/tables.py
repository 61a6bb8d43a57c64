"""Automata as arrays, run one symbol at a time, to test with."""

import itertools

import numpy as np


def states(transitions, start, tokens_BxT):
  """Returns the states after each symbol, [B, T]; -1 leaves the state."""
  transitions = np.asarray(transitions)
  state_B = np.full(len(tokens_BxT), start)
  reached = []
  for symbol_B in tokens_BxT.T:
    state_B = np.where(symbol_B < 0, state_B, transitions[state_B, symbol_B])
    reached.append(state_B)
  return np.stack(reached, axis=1)


def all_strings(max_length, num_symbols=2):
  """Returns the strings of 1 to so many symbols, right-aligned."""
  symbols = range(-1, num_symbols)
  tokens = np.array(list(itertools.product(symbols, repeat=max_length)))
  # What is absent comes first, and something is there.
  absent = tokens < 0
  is_string = (absent[:, :-1] >= absent[:, 1:]).all(-1) & ~absent[:, -1]
  return tokens[is_string]


def all_tables(num_states, num_symbols=2):
  """Yields every transition table of a size."""
  size = num_states * num_symbols
  for entries in itertools.product(range(num_states), repeat=size):
    yield np.array(entries).reshape(num_states, num_symbols)


def random_automaton(rng, num_states, num_symbols=2, num_classes=2):
  """Returns transitions, start and classes."""
  return (
    rng.integers(num_states, size=(num_states, num_symbols)),
    rng.integers(num_states),
    rng.integers(num_classes, size=num_states),
  )
