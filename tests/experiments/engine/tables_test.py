"""No cell of a table is a formula, and every number is one."""

import csv
import io

import hypothesis
from hypothesis import strategies as st
import numpy as np

from experiments.engine import tables


def _read(text):
  return list(csv.reader(io.StringIO(text)))


def test_numbers_stay_numbers():
  rows = [('n', 'x'), (-1, -2.5e-9), (np.float32(-0.5), None), (True, 'a,"b')]
  rows += [(np.nan, np.float32(np.nan)), (np.inf, 0)]
  assert tables.comma_separated(rows) == (
    'n,x\n-1,-2.5e-09\n-0.5,\nTrue,"a,""b"\n,\ninf,0\n'
  )


def test_percentages_that_round_to_100_are_told_from_it():
  found = map(tables.percent, (100, 99.99, 99.949, -0.01, None, np.nan))
  assert list(found) == ['100.0', '>99.9', '99.9', '0.0', '-', '-']
  assert tables.percent(0.26, '+') == '+0.3'
  found = map(tables.fraction, (1, 0.99999, 0.99994, 0, 2.5))
  assert [*found] == ['1.0000', '>0.9999', '0.9999', '0.0000', '2.5000']


@hypothesis.given(
  st.sampled_from(['', *'=+-@\t\r\n']), st.text('abc=,"\n\r\t -1')
)
def test_no_text_is_a_formula(first, rest):
  ((cell, other),) = _read(tables.comma_separated([(first + rest, [-1])]))
  assert not cell.startswith(('=', '+', '-', '@', '\t', '\r', '\n'))
  assert cell.removeprefix("'") == ' '.join((first + rest).split())
  assert other == '[-1]'
