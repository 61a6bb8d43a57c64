import itertools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from experiments.text import splits


def _split(texts, rule):
  """Returns the split of every document, which is in one."""
  found = []
  for text in texts:
    ((split, part),) = splits.parts(text, splits.place_of(text), rule)
    assert part == text
    found.append(split)
  return found


def _cut(texts, heldout):
  """Returns the parts of every split, and where documents are."""
  places = np.array([splits.place_of(text) for text in texts])
  lengths = np.array([len(text) for text in texts])
  rule, where = splits.by_cut(places, lengths, heldout)
  found = {split: [] for split in splits.SPLITS}
  for text, before_end in zip(texts, where.tolist(), strict=True):
    for split, part in splits.parts(text, before_end, rule):
      found[split].append(part)
  return found, where


def test_many_are_split_by_the_text_alone_and_have_their_share():
  texts = [str(i) for i in range(20_000)]
  found = _split(texts, splits.by_hash(0.1))
  for split, share in (('train', 0.8), ('validation', 0.1), ('test', 0.1)):
    share_found = found.count(split) / len(texts)
    error = np.sqrt(share * (1 - share) / len(texts))
    assert abs(share_found - share) < 4 * error
  larger = _split(texts, splits.by_hash(0.2))
  for before, after in itertools.islice(zip(found, larger, strict=True), 500):
    assert after == 'test' or before != 'test'


def test_the_hash_is_that_of_texts_prepared_long_ago():
  """Results name the fingerprint of what it splits."""
  assert [splits.place_of(t) for t in ('a', 'é')] == [
    0.25379361057584854,
    0.7933768955844694,
  ]


@hypothesis.given(
  texts=st.lists(st.text('abc', min_size=1, max_size=30), min_size=1),
  heldout=st.floats(1e-6, 0.499),
)
@hypothesis.example(texts=['abc'] * 9, heldout=0.4)
@hypothesis.example(texts=['a', 'b' * 30, 'a', 'c'], heldout=0.1)
def test_a_text_is_cut_in_its_order_and_each_split_has_its_share(
  texts, heldout
):
  distinct = list(dict.fromkeys(texts))
  total = sum(map(len, distinct))
  hypothesis.assume(total >= 3)
  found, where = _cut(texts, heldout)
  assert sum(where == splits.COPY) == len(texts) - len(distinct)
  joined = {split: ''.join(parts) for split, parts in found.items()}
  assert ''.join(joined.values()) == ''.join(distinct)  # Ordered as `SPLITS`.
  share = max(1, int(heldout * total))
  assert len(joined['validation']) == len(joined['test']) == share
  assert joined['train']


def test_what_is_too_short_to_cut():
  with pytest.raises(ValueError, match='2 characters cannot be cut'):
    _cut(['a', 'b', 'a'], 0.1)


@pytest.mark.parametrize(
  ('documents', 'tokens', 'serves'),
  [
    ([480, 15, 5], [98, 1, 1], True),
    ([479, 15, 5], [98, 1, 1], False),  # Few.
    ([480, 15, 5], [96, 2, 2], True),
    ([480, 15, 5], [960, 30, 10], False),  # Far too much for validation.
    ([480, 15, 5], [985, 11, 4], False),  # Far too little for the test.
    ([9999, 1, 0], [100, 1, 0], False),
    ([480, 15, 5], [8, 1, 91], False),  # A long document is in the test.
  ],
)
def test_where_hashes_serve(documents, tokens, serves):
  counts = np.array([documents, tokens]).T
  assert splits.hash_serves(counts, 0.01) is serves
