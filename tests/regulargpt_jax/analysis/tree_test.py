import functools
import itertools

from hypothesis import given
from hypothesis import strategies as st
import jax
import numpy as np

from regulargpt_jax import config as config_lib
from regulargpt_jax import depth, model
from regulargpt_jax.analysis import tree
from tests.tasks import automata

_lengths = st.integers(1, 70)
_chunk_sizes = st.integers(2, 5)


@given(_lengths, _chunk_sizes)
def test_spans_of_children_make_up_that_of_the_node(length, chunk_size):
  below = np.stack([np.arange(length), np.arange(length) + 1], axis=-1)
  for span_nx2 in tree.spans(length, chunk_size):
    children = tree.chunks(below[None], chunk_size, -1)[0]
    for (first, end), parts in zip(span_nx2, children, strict=True):
      present = [part for part in parts.tolist() if part[0] >= 0]
      assert present[0][0] == first
      assert present[-1][1] == end
      for part, following in itertools.pairwise(present):
        assert part[1] == following[0]
    below = span_nx2
  assert below.tolist() == [[0, length]]


@given(st.lists(_lengths, min_size=1, max_size=4), _chunk_sizes)
def test_used_nodes_are_those_of_the_string_alone(lengths, chunk_size):
  """Padding adds nodes that no answer uses, and no others."""
  width = max(lengths)
  tokens = np.array([[-1] * (width - n) + [0] * n for n in lengths])
  used = tree.used(tokens, chunk_size)
  for row, length in enumerate(lengths):
    expected = [len(span) for span in tree.spans(length, chunk_size)]
    found = [int(mask[row].sum()) for mask in used]
    assert found[: len(expected)] == expected
    assert not any(found[len(expected) :])
    assert all(mask[row, -n:].all() for mask, n in zip(used, expected))  # noqa: B905


@given(automata.automata(), st.integers(0, 2**32 - 1), _lengths, _chunk_sizes)
def test_true_maps_are_the_symbols_read_one_by_one(
  automaton, seed, length, chunk_size
):
  rng = np.random.default_rng(seed)
  tokens = rng.integers(0, 3, (1, length))
  tokens[:, : rng.integers(0, length)] = -1
  maps = tree.true_maps(automaton.transitions, tokens, chunk_size)
  for map_nxQ, span_nx2 in zip(
    maps, tree.spans(length, chunk_size), strict=True
  ):
    for found_Q, (first, end) in zip(map_nxQ[0], span_nx2, strict=True):
      symbols = [v for v in tokens[0, first:end] if v >= 0]
      expected_Q = [automata.run(automaton, symbols, q) for q in range(5)]
      assert found_Q.tolist() == expected_Q


@functools.cache
def _model():
  config = config_lib.make_config(
    'benchmark', vocab_size=3, output_size=2, embedding_dim=8, num_heads=2
  )
  init = jax.jit(model.RegularGPT(config).init)
  params = init(jax.random.key(0), np.zeros((1, 1), int))
  # So that levels differ, and heads.
  noise = jax.random.normal(jax.random.key(1), (2, 2))
  params['params']['block_0']['position_bias'] = noise
  return config, params


def test_nodes_are_the_outputs_of_scan_where_spans_end():
  config, params = _model()
  tokens = np.random.default_rng(0).integers(0, 3, (2, 11))
  trace = tree.trace(config, params, tokens)
  scan = functools.partial(
    model.RegularGPT(config).apply, path='scan', mutable='intermediates'
  )
  logits, sown = jax.jit(scan)(params, tokens)
  sown = sown['intermediates']['block_0']
  assert len(trace.outputs) == depth.depth(11, 2)
  for level, span_nx2 in enumerate(tree.spans(11, 2)):
    last_n = span_nx2[:, 1] - 1
    for found, name in (
      (trace.outputs, 'output'),
      (trace.attention, 'attention_weights'),
    ):
      np.testing.assert_allclose(
        found[level], sown[name][0][level][:, last_n], atol=1e-5
      )
  np.testing.assert_allclose(trace.logits, logits[:, -1], atol=1e-5)
