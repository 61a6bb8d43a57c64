"""Finite groups as multiplication tables.

Letters: N elements.
"""

from collections.abc import Sequence
import itertools
import re
from typing import NamedTuple

import numpy as np

# A table of them is checked in a second.
MAX_ORDER = 512
_LEAST = {'S': 2, 'A': 3, 'Z': 2}
_MOST = {'S': 5, 'A': 6, 'Z': MAX_ORDER}
_KNOWN = (
  f'S2 to S5, A3 to A6, Z2 to Z{MAX_ORDER}, and products of them, as Z2xZ3, of'
  f' at most {MAX_ORDER} elements'
)


class Group(NamedTuple):
  """A finite group.

  Attributes:
    elements: How they are written; element i is the number i below.
    table: Row a, column b is the product ab, int32 [N, N].
    identity: Which element it is.
  """

  elements: Sequence[str]
  table: np.ndarray
  identity: int


def named(name: str) -> Group:
  """Returns a group by its name.

  `Sn` are the permutations of n things, `An` the even ones, `Zn` the numbers
  modulo n under addition. A permutation is written as where it takes 1 to n; ab
  is first a, then b. Elements are numbered in the order of what is written, the
  identity first. In a product, `GxH`, each factor goes its own way.

  Raises:
    ValueError: If there is no such group, or it has too many elements.
  """
  factors = []
  for part in name.split('x'):
    match = re.fullmatch('([SAZ])([1-9][0-9]{0,3})', part)
    kind, n = (match[1], int(match[2])) if match else ('Z', 0)
    if not _LEAST[kind] <= n <= _MOST[kind]:
      raise ValueError(f'group must be one of {_KNOWN}; got {name!r}.')
    factors.append(_cyclic(n) if kind == 'Z' else _permutations(n, kind == 'A'))
    order = np.prod([len(factor.table) for factor in factors])
    if order > MAX_ORDER:
      raise ValueError(
        f'group must have at most {MAX_ORDER} elements; got {name!r}.'
      )
  product, *others = factors
  for factor in others:
    product = _product(product, factor)
  if others:
    product = product._replace(
      elements=tuple(f'({element})' for element in product.elements)
    )
  return product


def _cyclic(n: int) -> Group:
  numbers = np.arange(n, dtype=np.int32)
  return Group(
    tuple(map(str, range(n))), (numbers[:, None] + numbers) % np.int32(n), 0
  )


def _permutations(n: int, is_even: bool) -> Group:
  every = [
    p
    for p in itertools.permutations(range(n))
    if not (is_even and _num_inversions(p) % 2)
  ]
  number = {p: i for i, p in enumerate(every)}
  table = [[number[tuple(b[x] for x in a)] for b in every] for a in every]
  names = tuple(''.join(str(x + 1) for x in p) for p in every)
  return Group(names, np.asarray(table, np.int32), 0)


def _num_inversions(permutation: Sequence[int]) -> int:
  return sum(a > b for a, b in itertools.combinations(permutation, 2))


def _product(first: Group, second: Group) -> Group:
  """Returns the direct product; (a, b) is number a * |second| + b."""
  order = len(second.table)
  table = first.table[:, None, :, None] * order + second.table[:, None]
  size = len(first.table) * order
  return Group(
    tuple(map(','.join, itertools.product(first.elements, second.elements))),
    table.reshape(size, size),
    first.identity * order + second.identity,
  )


def from_table(table: Sequence[Sequence[int]]) -> Group:
  """Returns the group of a multiplication table.

  Args:
    table: Row a, column b is the product ab, of elements 0 to N - 1.

  Raises:
    ValueError: If it is none: which law fails, and where.
  """
  order = len(table)
  if not 2 <= order <= MAX_ORDER:
    raise ValueError(
      f'table must have from 2 to {MAX_ORDER} rows, got {order}.'
    )
  for a, row in enumerate(table):
    if len(row) != order:
      raise ValueError(
        f'table must have {order} rows of {order} elements; row {a} has'
        f' {len(row)}.'
      )
    for b, product in enumerate(row):
      if not 0 <= product < order:
        raise ValueError(
          f'table is no group: the product of {a} and {b}, {product}, is not'
          f' one of its elements, 0 to {order - 1}.'
        )
  products = np.asarray(table, np.int32)
  numbers = np.arange(order)
  is_identity = (products == numbers).all(1) & (numbers == products.T).all(1)
  if not is_identity.any():
    raise ValueError(
      'table is no group: it has no identity, an element whose row and column'
      f' are 0 to {order - 1}.'
    )
  identity = int(is_identity.argmax())
  is_one = products == identity
  for a in numbers[~(is_one & is_one.T).any(1)]:
    raise ValueError(
      f'table is no group: {a} has no inverse, an element whose product with'
      f' it is {identity} both ways.'
    )
  for b in range(order):
    left, right = products[products[:, b]], products[:, products[b]]
    for a, c in np.argwhere(left != right):
      raise ValueError(
        f'table is no group: it is not associative: ({a} {b}) {c} is'
        f' {left[a, c]}, but {a} ({b} {c}) is {right[a, c]}.'
      )
  return Group(tuple(map(str, range(order))), products, identity)
