"""Compiled models are right on every string, by every path, exactly."""

import collections
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regulargpt_jax import model as model_lib
from regulargpt_jax.construction import compiler, minimization
from tests.regulargpt_jax.construction import tables

SHORT = tables.all_strings(10)
# All of up to eight symbols, and some of the longer ones.
FEWER = np.concatenate([SHORT[:510], SHORT[510::8]])
# As prefixes, these are all the short strings.
LONGEST = SHORT[SHORT[:, 0] >= 0]
# Automata run through a model at a time.
_AT_ONCE = 8


@functools.partial(jax.jit, static_argnums=(0, 3))
def _logits(config, params, tokens, path):
  """Logits of many parameters of one configuration, [N, B, ...]."""
  model = model_lib.RegularGPT(config)
  return jax.lax.map(
    lambda p: model.apply(p, tokens, path), params, batch_size=_AT_ONCE
  )


def assert_exact(all_automata, tokens, paths, **options):
  """Checks compiled models, to the last bit, against symbol by symbol.

  Args:
    all_automata: Arguments of `compile_automaton`: table, start, classes.
    tokens: Right-aligned strings. 'reduce' is asked about these, the other
      paths about all their prefixes.
    paths: Of `model.PATHS`.
    **options: Of `compile_automaton`.
  """
  groups = collections.defaultdict(list)
  for automaton in all_automata:
    config, params = compiler.compile_automaton(*automaton, **options)
    groups[config].append((params, automaton))
  for config, members in groups.items():
    all_params, group = zip(*members, strict=True)
    params = jax.tree.map(lambda *x: np.stack(x), *all_params)
    states = [tables.states(*a[:2], tokens) for a in group]
    classes = [
      s if a[2] is None else np.asarray(a[2]).astype(int)[s]
      for s, a in zip(states, group, strict=True)
    ]
    expected = np.eye(config.output_size)[np.stack(classes)]
    for path in paths:
      logits = np.asarray(_logits(config, params, tokens, path))
      if path == 'reduce':
        np.testing.assert_array_equal(logits, expected[:, :, -1])
      else:
        is_in = tokens >= 0
        np.testing.assert_array_equal(logits[:, is_in], expected[:, is_in])


@functools.cache
def _minimal_acceptors(max_states):
  """All automata of up to so many states, one of each language.

  Every other is compiled to the same parameters as one of these, since
  `minimization.minimal` gives the same arrays. So the start may be state 0.
  """
  found = {}
  for num_states in range(1, max_states + 1):
    for table in tables.all_tables(num_states):
      for accepting in itertools.product((False, True), repeat=num_states):
        small = minimization.minimal(table, 0, np.array(accepting))
        found[small[0].tobytes(), small[2].tobytes()] = small
  return list(found.values())


def test_equivalent_automata_compile_to_the_same_parameters():
  table, accepting = np.array([[1, 2], [1, 0], [1, 0]]), [False, True, True]
  number = np.array([2, 0, 1])  # Of each state, under other names.
  renamed = np.empty_like(table)
  renamed[number] = number[table]
  compiled = [
    compiler.compile_automaton(table, 0, accepting),
    compiler.compile_automaton(renamed, 2, np.array(accepting)[[1, 2, 0]]),
  ]
  assert compiled[0][0] == compiled[1][0]
  jax.tree.map(np.testing.assert_array_equal, compiled[0][1], compiled[1][1])


@pytest.mark.parametrize(
  ('every', 'tokens', 'paths'),
  [
    (2, FEWER, ['reduce']),
    pytest.param(
      5, LONGEST[::33], ['scan', 'reference'], marks=pytest.mark.slow
    ),
    pytest.param(1, SHORT, ['reduce'], marks=pytest.mark.slow),
    pytest.param(1, LONGEST, ['scan', 'reference'], marks=pytest.mark.slow),
  ],
  ids=['strings', 'prefixes', 'all strings', 'all prefixes'],
)
def test_every_language_of_up_to_three_states(every, tokens, paths):
  languages = _minimal_acceptors(3)
  assert len(languages) == 2 + 24 + 1028
  assert_exact(languages[::every], tokens, paths)


@pytest.mark.slow
def test_states_of_every_table_of_three_states():
  """Where all are reached, so that one program serves all."""
  distinct = [
    (table, start, None)
    for table in tables.all_tables(3)
    for start in range(3)
    if len(minimization.minimal(table, start, np.arange(3))[0]) == 3
  ]
  assert_exact(distinct, SHORT[1::5], ['reduce'])


def _random_minimal(rng, number, num_states, num_symbols=2):
  """Returns so many random automata that have no state too many."""
  found = []
  while len(found) < number:
    automaton = tables.random_automaton(rng, num_states, num_symbols)
    if len(minimization.minimal(*automaton)[0]) == num_states:
      found.append(automaton)
  return found


@pytest.mark.parametrize(
  ('number', 'tokens', 'paths'),
  [
    (200, SHORT[::2], ['reduce']),
    (100, LONGEST[::65], ['scan', 'reference']),
    pytest.param(3000, SHORT, ['reduce'], marks=pytest.mark.slow),
  ],
  ids=['half of all strings', 'prefixes', 'thousands'],
)
def test_random_languages_of_four_states(number, tokens, paths):
  languages = _random_minimal(np.random.default_rng(0), number, num_states=4)
  assert_exact(languages, tokens, paths)


@pytest.mark.parametrize(
  ('longest', 'paths'),
  [
    pytest.param(5000, ['scan'], marks=pytest.mark.slow),
    (300, model_lib.PATHS),
  ],
)
def test_long_strings(longest, paths):
  rng = np.random.default_rng(longest)
  tokens = rng.integers(2, size=(4, longest))
  for row, length in zip(tokens, (longest, longest - 1, 1, 129), strict=True):
    row[: longest - length] = -1
  assert_exact(_random_minimal(rng, 6, num_states=4), tokens, paths)


@pytest.mark.parametrize(
  'length', [2**14, pytest.param(2**20, marks=pytest.mark.slow)]
)
def test_up_to_a_million_symbols(length):
  """PARITY of two strings that differ in the first symbol only."""
  tokens = np.random.default_rng(0).integers(2, size=(2, length))
  tokens[1] = tokens[0]
  tokens[1, 0] ^= 1
  assert_exact([([[0, 1], [1, 0]], 0, None)], tokens, ['reduce'])


@pytest.mark.parametrize(
  ('chunk_size', 'encoding'),
  [
    (2, 'binary'),
    (3, 'one_hot'),
    pytest.param(4, 'binary', marks=pytest.mark.slow),
    pytest.param(7, 'one_hot', marks=pytest.mark.slow),
  ],
)
def test_any_chunk_size_and_encoding(chunk_size, encoding):
  rng = np.random.default_rng(chunk_size)
  # Three symbols; strings that reach to several levels, and end in any chunk.
  tokens = rng.integers(3, size=(20, 20))
  for i, row in enumerate(tokens):
    row[:i] = -1
  assert_exact(
    _random_minimal(rng, 4, num_states=4, num_symbols=3),
    tokens,
    model_lib.PATHS,
    chunk_size=chunk_size,
    encoding=encoding,
  )


def test_wide_windows():
  """Beyond 16, `scan` attends in blocks."""
  rng = np.random.default_rng(0)
  assert_exact(
    [(np.array([[1, 0], [2, 1], [0, 0]]), 0, [True, False, False])],
    rng.integers(2, size=(8, 45)),
    model_lib.PATHS,
    chunk_size=18,
  )


@pytest.mark.parametrize('chunk_size', [2, 3])
def test_all_values_inside_are_zero_or_one(chunk_size):
  """After any number of levels: nothing drifts."""
  config, params = compiler.compile_automaton(
    [[1, 2], [2, 0], [2, 1]], 0, chunk_size=chunk_size
  )
  model = model_lib.RegularGPT(config)
  tokens = np.random.default_rng(0).integers(2, size=(2, 50))

  @functools.partial(jax.jit, static_argnums=0)
  def apply(extra_levels):
    return model.apply(
      params, tokens, 'scan', extra_levels, mutable='intermediates'
    )

  logits, inside = apply(30)
  np.testing.assert_array_equal(logits, apply(0)[0])
  for values in jax.tree.leaves(inside):
    assert set(np.unique(values)) <= {0, 1}
  # Every feed-forward output is a map: one place for each state.
  outputs = inside['intermediates'][f'block_{config.thickness - 1}']['ffn'][0]
  maps = outputs[..., :9].reshape(-1, 3, 3)
  np.testing.assert_array_equal(maps.sum(-1), 1)


def test_half_precision_is_exact_too():
  config, params = compiler.compile_automaton([[0, 1], [1, 0]], 0)
  tokens = np.random.default_rng(0).integers(2, size=(4, 16))
  coarse = config.__class__(**{**vars(config), 'dtype': jnp.bfloat16})
  logits = _logits(
    coarse, jax.tree.map(lambda x: x[None], params), tokens, 'reduce'
  )[0]
  np.testing.assert_array_equal(logits.argmax(-1), tokens.sum(-1) % 2)


@pytest.mark.parametrize(
  ('chunk_size', 'encoding'), [(2, 'one_hot'), (3, 'binary'), (4, 'one_hot')]
)
def test_parameters_are_the_modules_own(chunk_size, encoding):
  config, params = compiler.compile_automaton(
    [[1, 0, 1], [2, 1, 0], [0, 0, 3], [3, 0, 1]],
    1,
    [True, False, False, True],
    chunk_size,
    encoding,
  )
  model = model_lib.RegularGPT(config)
  own = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 1), int))
  assert jax.tree.map(lambda x: (x.shape, x.dtype), own) == jax.tree.map(
    lambda x: (x.shape, x.dtype), params
  )
  num_parameters = sum(x.size for x in jax.tree.leaves(params))
  assert compiler.num_parameters(config) == num_parameters


@pytest.mark.parametrize(
  ('arguments', 'problem'),
  [
    (([[0, 1], [1]], 0), 'not complete: state 1 has .* for symbol 1'),
    (([[0, None], [1, 1]], 0), 'not complete: state 0 has .* for symbol 1'),
    (([[0, 1], [2, 1]], 0), r'transitions\[1\]\[0\]: state 2 is not in \[0, 2'),
    (([[0, 1], [-1, 1]], 0), r'transitions\[1\]\[0\]: state -1 is not in'),
    (([[0, 1], [0.5, 1]], 0), r'transitions\[1\]\[0\] must be .* got 0.5'),
    (([[0, 1], [1, 1]], 2), r'start: state 2 is not in \[0, 2\)'),
    (([], 0), 'a state and a symbol'),
    (([[], []], 0), 'a state and a symbol'),
    (([[0], [1]], 0, [True]), r'accepting must have shape \[2\], got \[1\]'),
    (([[0], [1]], 0, [-1, 0]), 'classes as integers from 0'),
    (([[0], [1]], 0, [0.5, 0]), 'classes as integers from 0'),
    (([[0], [1]], 0, None, 1), 'chunk_size must be at least 2'),
    (([[0], [1]], 0, None, 2, 'other'), 'one_hot, binary'),
  ],
)
def test_bad_arguments_are_named(arguments, problem):
  with pytest.raises(ValueError, match=problem):
    compiler.compile_automaton(*arguments)


def _counter(num_states):
  """Counts symbols 1 up to a bound, and accepts there."""
  count = np.arange(num_states)
  after = np.stack([count, np.minimum(count + 1, num_states - 1)], axis=-1)
  return after, 0, count == num_states - 1


def test_too_large_says_how_large_and_what_would_do():
  with pytest.raises(ValueError) as error:
    compiler.compile_automaton(*_counter(50))
  message = str(error.value)
  assert '50 states' in message
  assert '125,000 hidden units, 5.4 GB' in message
  assert "'binary', 35,000 hidden units, 0.4 GB" in message
  for encoding, size in (
    ('binary', '22,000,000'),
    ('one_hot', '1,000,000,000'),
  ):
    # What would not do either is not named.
    with pytest.raises(ValueError, match=rf'{size} .* allowed\.$'):
      compiler.compile_automaton(*_counter(1000), encoding=encoding)


def test_size_counts_after_minimization():
  table, start, accepting = _counter(100)
  config, _ = compiler.compile_automaton(table, start, accepting | True)
  assert config.embedding_dim == 2


def test_binary_codes_reach_larger_automata():
  automaton = _counter(24)
  assert_exact(
    [automaton],
    np.random.default_rng(0).integers(2, size=(8, 60)),
    ['reduce', 'scan'],
    encoding='binary',
  )
  dense, _ = compiler.compile_automaton(*automaton)
  short, _ = compiler.compile_automaton(*automaton, encoding='binary')
  ratio = compiler.num_parameters(dense) / compiler.num_parameters(short)
  assert ratio > 3
