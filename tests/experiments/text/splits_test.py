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
    ((split, part),) = splits.parts(text, splits.place_of(text), 0, rule)
    assert part == text
    found.append(split)
  return found


def _rule(texts, heldout, is_txt=False):
  places = np.array([splits.place_of(t) for t in texts])
  lengths = np.array([len(t) for t in texts])
  return splits.of_few(places, lengths, heldout, is_txt)


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
  number=st.integers(3, 90),
  heldout=st.floats(1e-6, 0.499),
  copies=st.booleans(),
)
def test_each_split_gets_its_share_of_few(number, heldout, copies):
  texts = [f'document {i}' for i in range(number)]
  rule = _rule(texts * 2 if copies else texts, heldout)
  found = _split(texts, rule)
  share = max(1, int(heldout * number))
  assert rule.kind == 'rank'
  assert found.count('test') == found.count('validation') == share
  assert found == _split(texts, _rule(texts[::-1], heldout))
  # As many documents have it.
  order = {'test': 0, 'validation': 1, 'train': 2}
  ranks = [
    order[found[i]] for i in np.argsort(list(map(splits.place_of, texts)))
  ]
  assert ranks == sorted(ranks)


def test_a_document_more_moves_two_others_at_most():
  texts = [f'document {i}' for i in range(60)]
  before = _split(texts, _rule(texts, 0.05))
  after = _split(texts, _rule([*texts, 'one more'], 0.05))
  assert sum(a != b for a, b in zip(before, after, strict=True)) <= 2


@hypothesis.given(
  lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12),
  heldout=st.floats(1e-6, 0.499),
)
def test_a_text_is_cut_in_its_order(lengths, heldout):
  total = sum(lengths)
  hypothesis.assume(total >= 3)
  text = ''.join(chr(97 + i % 26) for i in range(total))
  stops = np.cumsum(lengths).tolist()
  documents = [text[b - n : b] for b, n in zip(stops, lengths, strict=True)]
  rule = _rule(documents, heldout, is_txt=True)
  joined = dict.fromkeys(splits.SPLITS, '')
  for document, stop in zip(documents, stops, strict=True):
    before_end = total - stop + len(document)
    for split, part in splits.parts(document, 0.5, before_end, rule):
      joined[split] += part
  assert ''.join(joined.values()) == text  # In the order of `SPLITS`.
  share = max(1, int(heldout * total))
  assert len(joined['validation']) == len(joined['test']) == share


def test_what_is_few():
  assert not splits.are_few([480, 15, 5], 0.01)
  assert splits.are_few([479, 15, 5], 0.01)
  assert splits.are_few([9999, 1, 0], 0.01)
  assert _rule(['ab', 'c'], 0.1).kind == _rule(['ab'] * 9, 0.1).kind == 'cut'
  with pytest.raises(ValueError, match='2 characters cannot be cut'):
    _rule(['a', 'b'], 0.1)
