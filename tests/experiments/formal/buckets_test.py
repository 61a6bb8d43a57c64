"""Widths of buckets, and what falls into them."""

import pytest

from experiments.formal import buckets


@pytest.mark.parametrize(
  ('longest', 'base', 'smallest', 'expected'),
  [
    (40, 2, 1, (2, 4, 8, 16, 32, 40)),
    (40, 2, 8, (8, 16, 32, 40)),
    (40, 2, 9, (16, 32, 40)),
    (32, 2, 16, (16, 32)),
    (10, 3, 1, (3, 9, 10)),
    (1, 2, 1, (1,)),
    (5, 2, 64, (5,)),
  ],
)
def test_widths_are_powers_and_the_longest(longest, base, smallest, expected):
  assert buckets.bucket_widths(longest, base, smallest) == expected


def test_each_length_is_in_one_bucket():
  widths = (8, 16, 20)
  found = [buckets.bucket_of(length, widths) for length in range(1, 21)]
  assert found == [8] * 8 + [16] * 8 + [20] * 4
  assert [buckets.shortest_in(width, widths) for width in widths] == [1, 9, 17]
  with pytest.raises(ValueError, match=r'21 symbols is longer than .* 20'):
    buckets.bucket_of(21, widths)
