import itertools

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from experiments.text import loading
from tests.experiments.text import streams


def _stream(num_tokens):
  """A stream whose token at position i is i."""
  return streams.make(np.arange(num_tokens))


@hypothesis.given(
  num_tokens=st.integers(2, 2000),
  length=st.integers(20, 700),
  batch_size=st.integers(1, 7),
  seed=st.integers(0, 2**40),
)
def test_every_token_exactly_once_an_epoch(
  num_tokens, length, batch_size, seed
):
  batches = loading.training_batches(
    _stream(num_tokens), length, batch_size, seed
  )
  num_windows = -(-(num_tokens - 1) // length)
  num_steps = -(-3 * num_windows // batch_size)
  rows = np.concatenate([batches[s] for s in range(num_steps)])
  assert rows.shape == (num_steps * batch_size, length + 1)
  for epoch in range(3):
    targets = rows[epoch * num_windows : (epoch + 1) * num_windows, 1:]
    targets = targets[targets >= 0]
    np.testing.assert_array_equal(np.sort(targets), np.arange(1, num_tokens))


@pytest.mark.parametrize('process_count', [1, 2, 4])
def test_processes_parts_join_to_the_batch(process_count):
  stream = _stream(5000)
  whole = loading.training_batches(stream, 16, 8, seed=3)
  parts = [
    loading.training_batches(stream, 16, 8, 3, i, process_count)
    for i in range(process_count)
  ]
  for step in (0, 1, 38, 39, 40, 500):  # An epoch ends in step 39.
    joined = np.concatenate([part[step] for part in parts])
    np.testing.assert_array_equal(joined, whole[step])


def test_processes_parts_of_an_epoch_are_disjoint():
  stream = _stream(16 * 64 + 1)
  rows = [
    np.concatenate([batches[step] for step in range(64 // 8)])
    for batches in (
      loading.training_batches(stream, 16, 8, 0, i, 4) for i in range(4)
    )
  ]
  targets = [set(r[:, 1:].ravel().tolist()) for r in rows]
  for one, other in itertools.combinations(targets, 2):
    assert not one & other
  assert set.union(*targets) == set(range(1, len(stream)))


def test_order_is_the_seeds_and_changes_with_the_epoch():
  def order(seed):
    batches = loading.training_batches(_stream(60 * 10 + 1), 10, 1, seed)
    first = [int(batches[s][0, 0]) for s in range(120)]
    return first[:60], first[60:]

  assert order(0) == order(0)
  orders = [*order(0), *order(1), *order(2)]
  for one, other in itertools.combinations(orders, 2):
    assert one != other
  assert all(sorted(o) == list(range(0, 600, 10)) for o in orders)
  assert sorted(orders[0]) != orders[0]


@pytest.mark.parametrize('killed_at', [1, 5, 17])
def test_same_order_after_a_kill(killed_at):
  def batches():
    return loading.training_batches(_stream(3000), 64, 6, seed=1)

  def stream_from(step):
    return loading.prefetched(batches(), step)

  undisturbed = [batches()[step] for step in range(30)]
  before = list(itertools.islice(stream_from(0), killed_at))
  after = list(itertools.islice(stream_from(killed_at), 30 - killed_at))
  np.testing.assert_array_equal(undisturbed, before + after)


@hypothesis.given(
  num_tokens=st.integers(100, 3000),
  max_length=st.integers(1, 99),
  num_sequences=st.integers(1, 40),
  data=st.data(),
)
def test_evaluation_ends_at_the_same_tokens_at_every_length(
  num_tokens, max_length, num_sequences, data
):
  num_sequences = min(num_sequences, num_tokens - max_length)
  stream = _stream(num_tokens)
  length = data.draw(st.integers(1, max_length))
  longest, shorter = (
    np.concatenate(
      list(loading.evaluation_batches(stream, t, max_length, num_sequences, 7))
    )
    for t in (max_length, length)
  )
  assert longest.shape == (num_sequences, max_length + 1)
  np.testing.assert_array_equal(shorter, longest[:, -length - 1 :])
  ends = longest[:, -1]
  np.testing.assert_array_equal(
    longest, ends[:, None] + np.arange(-max_length, 1)
  )
  # Spread over the whole stream.
  gaps = np.diff([max_length - 1, *ends, num_tokens])
  assert gaps.min() >= 1 or num_sequences == 1
  assert gaps.max() <= (num_tokens - max_length) / num_sequences + 2


def test_evaluation_ends_in_the_middle_of_equal_parts():
  (batch,) = loading.evaluation_batches(_stream(20), 2, 4, 2, 7)
  assert batch.tolist() == [[6, 7, 8], [14, 15, 16]]


def test_impossible_requests():
  stream = _stream(100)
  with pytest.raises(ValueError, match='the split has 100'):
    loading.evaluation_batches(stream, 8, 64, 37, 1)
  with pytest.raises(ValueError, match=r'1\.\.64, not 65'):
    loading.evaluation_batches(stream, 65, 64, 1, 1)
  with pytest.raises(ValueError, match='6 cannot be divided among 4'):
    loading.training_batches(stream, 8, 6, 0, 0, 4)
  with pytest.raises(ValueError, match='length must be positive, not 0'):
    loading.training_batches(stream, 0, 8, 0)
  with pytest.raises(ValueError, match='batch size must be positive, not 0'):
    loading.training_batches(stream, 8, 0, 0)


def test_nothing_prepared(tmp_path):
  with pytest.raises(OSError, match='holds no prepared text'):
    loading.load(str(tmp_path))
