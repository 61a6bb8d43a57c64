import itertools

from hypothesis import given, settings
import numpy as np
import pytest

from regulargpt_jax import construction
from regulargpt_jax.analysis import clusters, extraction, tree
from tests.tasks import automata


def _machine(automaton):
  return automaton.transitions, automaton.start, automaton.accepting


def _compose(gpt, params, tokens):
  trace = tree.trace(gpt, params, tokens)
  outputs = np.concatenate([x.reshape(-1, x.shape[-1]) for x in trace.outputs])
  found = clusters.find(outputs, 64)
  composition = extraction.compose(
    gpt, params, found, np.arange(gpt.vocab_size), max_clusters=64
  )
  return composition, trace


@settings(max_examples=4)
@given(automata.automata(num_states=3, num_symbols=2))
def test_extracting_a_compiled_automaton_gives_it_back(automaton):
  gpt, params = construction.compile_automaton(*_machine(automaton))
  tokens = np.random.default_rng(0).integers(0, 2, (16, 9))
  composition, trace = _compose(gpt, params, tokens)
  machine = extraction.machine(composition)
  assert extraction.shortest_difference(machine, _machine(automaton)) is None
  labels = [clusters.nearest(composition.centers, x) for x in trace.outputs]
  share = extraction.share_composed(composition, tokens, labels, 2)
  assert share == 1.0
  # The clusters are maps: as many as products of the symbols', at most.
  assert len(composition.centers) <= 3**3


def test_chunks_of_three_and_what_does_not_compose():
  gpt, params = construction.compile_automaton(
    [(1, 0), (2, 1), (0, 2)], 0, chunk_size=3
  )
  tokens = np.random.default_rng(0).integers(0, 2, (16, 20))
  composition, trace = _compose(gpt, params, tokens)
  assert len(composition.centers) == 3
  labels = [clusters.nearest(composition.centers, x) for x in trace.outputs]
  assert extraction.share_composed(composition, tokens, labels, 3) == 1.0
  labels[1] = (labels[1] + 1) % 3  # One level, and what is made of it.
  share = extraction.share_composed(composition, tokens, labels, 3)
  assert share < 1.0
  unused = [np.full_like(label, -1) for label in labels]
  unused[0] = labels[0]
  assert extraction.share_composed(composition, tokens, unused, 3) == 1.0


def test_more_maps_than_clusters_is_an_error():
  gpt, params = construction.compile_automaton(
    [(1, 0), (2, 1), (3, 2), (0, 3)], 0
  )
  found = clusters.Clusters(np.zeros((1, gpt.embedding_dim)), 0.1, 1.0, {}, {})
  with pytest.raises(ValueError, match='do not compose'):
    extraction.compose(gpt, params, found, np.arange(2), max_clusters=3)


@given(
  automata.automata(num_states=3, num_symbols=2),
  automata.automata(num_states=2, num_symbols=2),
)
def test_shortest_difference_is_that_of_trying_all_strings(one, other):
  found = extraction.shortest_difference(_machine(one), _machine(other))
  # Two machines of Q and P states that differ do so within Q P symbols.
  for length in range(1, 7):
    for string in itertools.product(range(2), repeat=length):
      if automata.accepts(one, string) != automata.accepts(other, string):
        assert len(found) == length
        assert automata.accepts(one, found) != automata.accepts(other, found)
        return
  assert found is None
