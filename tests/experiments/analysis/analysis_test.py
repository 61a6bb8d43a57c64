"""Analyses of models: of compiled ones the true answer is known."""

import json
import re

import numpy as np
import pytest

from experiments.analysis import analyses, extraction, outputs, subject
from experiments.engine import estimates
from experiments.engine import workdir as workdir_lib
from experiments.formal import compiled, config, run
from regulargpt_jax.analysis import extraction as extraction_lib
from tasks.automata import fields, reading

_STRINGS = {'num_strings': 8, 'length': 21}
_SIZES = {**_STRINGS, 'max_clusters': 40}
_TINY = {
  'embedding_dim': 8,
  'num_heads': 2,
  'sequence_length': 5,
  'batch_size': 4,
  'training_steps': 1,
  'max_range_test_length': 3,
  'range_test_batch_size': 2,
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp('analysis')


@pytest.fixture(scope='module')
def cycle(folder):
  return _compiled(folder / 'cycle', task='cycle_navigation')


@pytest.fixture(scope='module')
def regex(folder):
  return _compiled(folder / 'regex', regex='(01|10)*', chunk_size=3)


def _compiled(workdir, **settings):
  compiled.compile_task(config.Experiment(**settings), str(workdir), 'one_hot')
  return workdir


@pytest.fixture(scope='module')
def untrained(folder):
  workdir = folder / 'untrained'
  experiment = config.Experiment(task='cycle_navigation', **_TINY)
  run.train_and_evaluate(experiment, str(workdir))
  return workdir


def _subject(workdir):
  return subject.load(str(workdir), run.load_experiment(str(workdir)))


def _results(workdir, name):
  results = json.loads((workdir / f'{name}.json').read_text())
  assert (workdir / f'{name}.png').stat().st_size > 10_000
  return results, np.load(workdir / f'{name}.npz')


@pytest.mark.parametrize(
  'name', ['cycle', pytest.param('regex', marks=pytest.mark.slow)]
)
def test_clusters_of_a_compiled_model_are_the_true_maps(name, request, capsys):
  workdir = request.getfixturevalue(name)
  analyses.analyze(str(workdir), 'clusters', None, **_SIZES)
  results, arrays = _results(workdir, 'clusters')
  machine = _subject(workdir).machine
  occurring = {tuple(row) for row in arrays['maps'].tolist()}
  assert results['num_clusters'] == len(occurring)
  assert results['num_true_transitions'] == len(occurring)
  assert results['adjusted_rand_index'] == 1.0
  assert occurring <= _reachable_maps(machine.transitions)
  if name == 'cycle':
    assert len(occurring) == 5
  assert 'adjusted Rand index' in capsys.readouterr().out
  # What is saved of each output belongs together.
  pairs = set(zip(arrays['cluster'], arrays['true_transition'], strict=True))
  assert len(pairs) == len(occurring)


# PARITY, with each state twice, one of them never reached.
_NOT_MINIMAL = {
  'alphabet': ['0', '1'],
  'states': ['a', 'b', 'c', 'd', 'lost'],
  'start': 'a',
  'accepting': ['b', 'd'],
  'transitions': {
    'a': {'0': 'c', '1': 'b'},
    'b': {'0': 'd', '1': 'a'},
    'c': {'0': 'a', '1': 'd'},
    'd': {'0': 'd', '1': 'c'},
    'lost': {'0': 'lost', '1': 'a'},
  },
}


@pytest.fixture(scope='module')
def not_minimal(folder):
  return _compiled(folder / 'not_minimal', automaton=_NOT_MINIMAL)


def test_a_model_is_compared_with_the_smallest_automaton(not_minimal):
  assert len(_subject(not_minimal).machine.outputs) == 2
  analyses.analyze(str(not_minimal), 'clusters', None, **_SIZES)
  results, _ = _results(not_minimal, 'clusters')
  assert results['num_true_transitions'] == results['num_clusters'] == 2
  assert results['adjusted_rand_index'] == 1.0
  analyses.analyze(str(not_minimal), 'attention', '0110100', **_SIZES)
  results, _ = _results(not_minimal, 'attention')
  assert 'every node is its true transition' in results['verdict']


def _reachable_maps(transitions):
  """Returns all maps that strings of one symbol or more have."""
  symbols = [tuple(column) for column in transitions.T.tolist()]
  found = list(dict.fromkeys(symbols))
  for one in found:  # Grows while new maps are met.
    for symbol in symbols:
      both = tuple(symbol[q] for q in one)
      if both not in found:
        found.append(both)
  return set(found)


def test_the_receptive_field_of_a_compiled_model_covers_all(cycle):
  analyses.analyze(str(cycle), 'receptive_field', None, **_STRINGS)
  results, arrays = _results(cycle, 'receptive_field')
  assert results['share_of_positions_seen'] == 1.0
  share_BxT = arrays['cumulative']
  assert share_BxT.shape == (8, 21)
  np.testing.assert_allclose(share_BxT[:, -1], 1.0, atol=1e-5)
  assert (np.diff(share_BxT) > 0).all()
  for name, share in (('half', 0.5), ('nine_tenths', 0.9)):
    number = results[f'positions_for_{name}']
    before, after = share_BxT.mean(0)[number - 2 : number]
    assert before < share <= after


def test_attention_of_a_compiled_model(cycle):
  analyses.analyze(str(cycle), 'attention', '++0-+', **_SIZES)
  results, arrays = _results(cycle, 'attention')
  assert results['answer'] == results['right_answer'] == 2
  assert results['first_wrong'] is None
  assert 'every node is its true transition' in results['verdict']
  # Each head looks at one of the two positions, as r says.
  looks_at = np.eye(2)[np.asarray(results['r']).argmax(-1)]
  np.testing.assert_array_equal(arrays['weights_1'][0], looks_at)
  assert sorted(looks_at.argmax(-1)) == [0, 1]


def test_a_picture_that_fails_leaves_nothing(cycle, tmp_path, monkeypatch):
  def fail(figure):
    raise ValueError('no picture')

  monkeypatch.setattr(outputs.pictures, 'png', fail)
  with pytest.raises(ValueError, match='no picture'):
    outputs.save(_subject(cycle), str(tmp_path), 'name', {}, {}, figure=None)
  assert not list(tmp_path.iterdir())


def test_attention_draws_dollars(folder):
  automaton = json.loads(json.dumps(_NOT_MINIMAL).replace('"1"', '"$_$"'))
  workdir = _compiled(folder / 'dollars', automaton=automaton)
  analyses.analyze(str(workdir), 'attention', '0 $_$ 0 $_$ 0', **_SIZES)
  _results(workdir, 'attention')


def test_pictures_of_long_strings_can_be_read(cycle, monkeypatch):
  figures = []
  monkeypatch.setattr(outputs, 'save', lambda *args: figures.append(args[-1]))
  analyses.analyze(str(cycle), 'attention', '+-' * 64, **_SIZES)
  (figure,) = figures
  assert figure.get_figwidth() < 18
  panels = [ax for ax in figure.axes if ax.get_label() != '<colorbar>']
  assert all(ax.get_title() for ax in panels)
  bars = [ax for ax in figure.axes if ax.get_label() == '<colorbar>']
  assert len(bars) == 2
  assert all(ax.get_ylabel() for ax in bars)
  r_panel, _, tree_panel = panels
  low, high = r_panel.images[0].get_clim()
  assert high - low == 20
  assert 'the last 64 of 128 symbols' in tree_panel.get_title()
  drawn = [text.get_text() for text in tree_panel.texts]
  assert ''.join(drawn[:64]) == '+-' * 32
  assert 'pad' not in drawn
  assert tree_panel.get_xlim()[0] > 63


def test_levels_differ_without_colour(cycle, monkeypatch):
  figures = []
  monkeypatch.setattr(outputs, 'save', lambda *args: figures.append(args[-1]))
  analyses.analyze(str(cycle), 'clusters', None, **_SIZES)
  marks = figures[0].axes[0].collections
  shapes = {mark.get_paths()[0].vertices.tobytes() for mark in marks}
  assert len(shapes) == len(marks) == 5


def test_attention_knows_maps_that_only_its_own_length_has(folder):
  """Strings of even length have no node of an odd number of symbols."""
  workdir = _compiled(folder / 'aa', task='aa')
  analyses.analyze(str(workdir), 'attention', 'aaa', **{**_SIZES, 'length': 16})
  results, _ = _results(workdir, 'attention')
  assert 'every node is its true transition' in results['verdict']


@pytest.mark.slow
def test_attention_of_an_untrained_model_says_where_it_goes_wrong(untrained):
  strings = [s * 7 for s in ('+', '-', '0')]
  verdicts = []
  for string in strings:
    analyses.analyze(str(untrained), 'attention', string, **_SIZES)
    results, _ = _results(untrained, 'attention')
    is_right = results['answer'] == results['right_answer']
    assert results['verdict'].startswith('Right' if is_right else 'Wrong')
    verdicts.append(results['first_wrong'])
  assert any(verdicts)


_EXTRACTION = {**_SIZES, 'max_test_length': 12}


@pytest.mark.parametrize(
  'name', [pytest.param('cycle', marks=pytest.mark.slow), 'regex']
)
def test_extraction_gives_a_compiled_task_back(name, request, capsys):
  workdir = request.getfixturevalue(name)
  extraction.extract(str(workdir), **_EXTRACTION)
  results = json.loads((workdir / 'extraction.json').read_text())
  assert results['is_equivalent_to_task']
  assert results['agreement_with_model'] == 1.0
  task = _subject(workdir).task
  machine = task.machine
  printed = capsys.readouterr().out
  for ending in ('json', 'dot', 'att'):
    path = workdir / f'automaton.{ending}'
    if name == 'cycle' and ending == 'att':
      assert 'no machines of more than two answers' in printed
      assert not path.exists()
      continue
    found = fields.to_automaton(reading.read(path).fields)
    order = [found.alphabet.index(symbol) for symbol in task.input_symbols]
    assert (
      extraction_lib.shortest_difference(
        (found.transitions[:, order], found.start, found.outputs), machine
      )
      is None
    )
    if name == 'cycle':
      # Its states are the answers: training on them asks the same question.
      np.testing.assert_array_equal(found.outputs, np.arange(5))
  assert (workdir / 'automaton.dot').read_text() in printed


def test_one_true_transition_has_no_rand_index(zeros, capsys):
  analyses.analyze(str(zeros), 'clusters', None, **_SIZES)
  results, _ = _results(zeros, 'clusters')
  assert results['num_true_transitions'] == 1
  assert results['explained_variance'] == [0.0, 0.0]
  assert results['adjusted_rand_index'] is None
  assert 'needs two true transitions' in capsys.readouterr().out


@pytest.fixture(scope='module')
def zeros(folder):
  return _compiled(folder / 'zeros', task_params={'probability': 0.0})


def test_extraction_names_the_symbols_that_it_left_out(zeros, capsys):
  extraction.extract(str(zeros), **_EXTRACTION)
  results = json.loads((zeros / 'extraction.json').read_text())
  assert results['symbols_left_out'] == ['1']
  assert results['is_equivalent_to_task'] is None
  table = capsys.readouterr().out
  assert re.search(r'symbols left out.* 1$', table, re.MULTILINE)
  assert re.search(r'equivalent to the .* only on 0$', table, re.MULTILINE)


def test_extraction_writes_symbols_as_they_are(folder):
  symbols = ['é', '"\\']
  text = json.dumps(_NOT_MINIMAL)
  for digit, symbol in zip('01', symbols, strict=True):
    text = text.replace(f'"{digit}"', json.dumps(symbol))
  workdir = _compiled(folder / 'symbols', automaton=json.loads(text))
  extraction.extract(str(workdir), **_EXTRACTION)
  read = reading.read(workdir / 'automaton.json').fields
  assert read['alphabet'] == symbols
  assert '"é"' in (workdir / 'automaton.json').read_text()
  dot = (workdir / 'automaton.dot').read_text()
  assert '[label="é"]' in dot
  assert r'[label="\"\\"]' in dot


def test_extraction_of_an_untrained_model_fails(untrained):
  with pytest.raises(ValueError, match='do not compose'):
    extraction.extract(str(untrained), **_EXTRACTION)
  assert not (untrained / 'automaton.json').exists()


@pytest.mark.parametrize(
  ('name', 'string', 'sizes', 'message'),
  [
    ('clusters', '01', {}, 'is for --analysis=attention'),
    ('attention', None, {}, 'is for --analysis=attention'),
    ('attention', '+x-', {}, "'x' at position 1"),
    ('attention', '+', {}, '2 to 128 symbols'),
    ('clusters', None, {'length': 4}, 'too short'),
    ('clusters', None, {'num_strings': 0}, 'num_strings'),
    ('clusters', None, {'max_clusters': 1}, 'max_clusters'),
    ('receptive_field', None, {}, 'max_clusters is not for'),
    (
      'receptive_field',
      None,
      {'length': 1, 'max_clusters': None},
      'at least 2',
    ),
  ],
)
def test_bad_arguments_are_explained(cycle, name, string, sizes, message):
  with pytest.raises(ValueError, match=message):
    analyses.analyze(str(cycle), name, string, **{**_SIZES, **sizes})


def test_attention_needs_one_block_a_level(regex):
  with pytest.raises(ValueError, match='thickness 1'):
    analyses.analyze(str(regex), 'attention', '0110', **_SIZES)


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'architecture': 'rnn'}, 'needs regular_gpt'),
    ({'task': 'reverse_string'}, 'a single output'),
  ],
)
def test_other_models_are_refused(fields, message, tmp_path):
  """Before their parameters are read, so none are here."""
  fields = {
    **fields,
    'architecture_params': {'hidden_size': 4} if 'rnn' in str(fields) else {},
  }
  experiment = config.Experiment(**_TINY, **fields)
  workdir_lib.claim(experiment, str(tmp_path))
  with pytest.raises(ValueError, match=message):
    analyses.analyze(str(tmp_path), 'clusters', None, **_SIZES)


@pytest.mark.slow
def test_a_trained_model_is_read_exactly(folder):
  """PARITY is two clusters (Figure 4), and comes back as its automaton."""
  workdir = folder / 'trained'
  run.train_and_evaluate(config.Experiment(), str(workdir))
  analyses.analyze(
    str(workdir), 'clusters', None, num_strings=128, length=500, max_clusters=64
  )
  results, _ = _results(workdir, 'clusters')
  assert results['num_clusters'] == 2
  assert results['adjusted_rand_index'] == 1.0
  extraction.extract(str(workdir), **_EXTRACTION)
  results = json.loads((workdir / 'extraction.json').read_text())
  assert results['is_equivalent_to_task']


@pytest.mark.parametrize('sizes', [{'num_strings': 2**30}, {'length': 2**24}])
def test_more_strings_than_fit_are_refused(cycle, sizes, monkeypatch):
  """Before one is sampled."""
  monkeypatch.setattr(estimates, 'host_memory', lambda: 2**30)
  sizes = _STRINGS | sizes
  for name, string in (
    ('clusters', None),
    ('receptive_field', None),
    ('attention', '-0+'),
  ):
    with pytest.raises(ValueError, match='strings of up to'):
      analyses.analyze(str(cycle), name, string, **sizes)
  with pytest.raises(ValueError, match='strings of up to'):
    extraction.extract(str(cycle), **_EXTRACTION | {'num_strings': 2**30})
