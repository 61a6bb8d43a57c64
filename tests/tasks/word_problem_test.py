"""Groups, and their word problems, against permutations and numbers."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from experiments.formal import builders, config
from tasks.regular import groups, regular_task, word_problem
from tests import refusals
from tests.tasks import checks


def _then(a, b):
  return tuple(b[place] for place in a)


def _is_even(p):
  """Counted by cycles, not by inversions."""
  left, cycles = set(range(len(p))), 0
  while left:
    place, cycles = next(iter(left)), cycles + 1
    while place in left:
      left.remove(place)
      place = p[place]
  return (len(p) - cycles) % 2 == 0


def _product(name, word):
  """Returns the product of elements' names, and how many elements there are."""
  if 'x' in name:
    parts = [element.strip('()').split(',') for element in word]
    factors = zip(name.split('x'), zip(*parts, strict=True), strict=True)
    products, orders = zip(*(_product(*f) for f in factors), strict=True)
    return f'({",".join(products)})', math.prod(orders)
  n = int(name[1:])
  if name[0] == 'Z':
    return str(sum(map(int, word)) % n), n
  whole = tuple(range(n))
  for element in word:
    permutation = tuple(int(x) - 1 for x in element)
    assert name[0] == 'S' or _is_even(permutation)
    whole = _then(whole, permutation)
  order = math.factorial(n) // (2 if name[0] == 'A' else 1)
  return ''.join(str(x + 1) for x in whole), order


@pytest.mark.parametrize(
  'name', ['S2', 'S4', 'S5', 'A3', 'A5', 'Z6', 'Z2xZ3', 'S3xZ2xA4']
)
def test_products_of_named_groups(name):
  task = word_problem.WordProblem(name)
  assert len(set(task.input_symbols)) == task.input_size == task.output_size
  rng = np.random.default_rng(0)
  words = rng.integers(task.input_size, size=(20, 37))
  products = regular_task.answers(task.machine, words)
  for word, product in zip(words, products, strict=True):
    expected, order = _product(name, [task.input_symbols[g] for g in word])
    assert task.input_symbols[product] == expected
    assert order == task.input_size
  # The identity is the first, and the order is that of the names.
  assert task.machine.start == 0
  if name[0] != 'Z' and 'x' not in name:
    assert sorted(task.input_symbols) == list(task.input_symbols)
  # By a tree, padded.
  tokens = np.concatenate([np.full((20, 4), -1), words], axis=1)
  np.testing.assert_array_equal(task.solve(tokens), products)


@pytest.mark.parametrize('name', ['S4', 'A4', 'Z6', 'S3xZ4'])
def test_a_named_group_is_a_group_by_its_table_too(name):
  group = groups.named(name)
  again = groups.from_table(group.table.tolist())
  assert again.identity == group.identity
  # Numbered otherwise, it is a group still, whose identity is found.
  order = np.random.default_rng(0).permutation(len(group.table))
  place = np.argsort(order)
  renamed = place[group.table[np.ix_(order, order)]]
  assert groups.from_table(renamed.tolist()).identity == place[0]


_Z4 = [[(a + b) % 4 for b in range(4)] for a in range(4)]
# A loop of five elements: identity and inverses, and not associative.
_LOOP = [
  [0, 1, 2, 3, 4],
  [1, 0, 3, 4, 2],
  [2, 4, 0, 1, 3],
  [3, 2, 4, 0, 1],
  [4, 3, 1, 2, 0],
]


@pytest.mark.parametrize(
  ('params', 'message'),
  [
    ({'group': 'D4'}, "S2 to S5, .* as Z2xZ3, .*; got 'D4'"),
    ({'group': 'S6'}, 'S2 to S5'),
    ({'group': 'Z1'}, 'Z2 to Z512'),
    ({'group': 'Z2x'}, "'Z2x'"),
    ({'group': ''}, 'S2 to S5'),
    ({'group': 'S5xS5'}, 'at most 512'),
    ({'group': 'Z2' + 'xZ2' * 500}, 'at most 512'),
    ({'group': 'S3', 'table': _Z4}, 'only one of group and table'),
    ({'group': 5}, 'group must be text or null'),
    ({'groop': 'S3'}, 'arguments are group, table'),
    ({'table': [[0, 1.5], [1, 0]]}, 'table must be a list'),
    ({'table': [[0]]}, 'from 2 to 512 rows, got 1'),
    ({'table': [[0, 1], [1]]}, 'row 1 has 1'),
    ({'table': [[0, 1], [1, 2]]}, 'product of 1 and 1, 2, .* 0 to 1'),
    ({'table': [[1, 1], [1, 1]]}, 'no identity'),
    ({'table': [[0, 1], [1, 1]]}, '1 has no inverse.*is 0 both'),
    ({'table': _LOOP}, r'not associative: \(1 1\) 2 is 2, but 1 \(1 2\) is 4'),
  ],
)
def test_what_is_no_group(params, message):
  experiment = config.Experiment(task='word_problem', task_params=params)
  with refusals.one_line(message):
    builders.make_task(experiment)


def test_any_wrong_entry_is_found():
  """A table that differs from a group's in one place is none."""
  for a, b, product in itertools.product(range(4), repeat=3):
    table = [list(row) for row in _Z4]
    if table[a][b] == product:
      continue
    table[a][b] = product
    with pytest.raises(ValueError, match='no group'):
      groups.from_table(table)


def test_a_table_is_the_task_on_the_command_line():
  experiment = dataclasses.replace(
    config.Experiment(task='word_problem'), task_params={'table': _Z4}
  )
  task = builders.make_task(experiment)
  tokens = checks.sample(task, 0, 9)
  expected = np.where(tokens < 0, 0, tokens).sum(-1) % 4
  np.testing.assert_array_equal(checks.solve(task, tokens), expected)
