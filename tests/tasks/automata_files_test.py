"""Tests of reading automata from files."""

import json
import os
import re

import hypothesis
from hypothesis import strategies as st
import pytest

from tasks.automata import description, reading
from tasks.automata import fields as fields_lib
from tasks.regular import automaton_task
from tests import refusals
from tests.tasks import automata, damage


class TestFormats:
  @pytest.mark.parametrize('name', automata.FILES)
  # By its name, by what it looks like, as Windows writes it.
  @pytest.mark.parametrize('change', ['none', 'no_name', 'windows'])
  def test_a_format_is_read(self, name, change, tmp_path):
    text = automata.FILES[name]
    if change == 'windows':
      text = '\ufeff' + text.replace('\n', '\r\n')
    found, notes = automata.read_text(
      tmp_path, 'a' if change == 'no_name' else name, text
    )
    assert found['alphabet'] == ['a', 'b']
    assert automata.language(found) == automata.language(automata.FIELDS)
    assert len(found['states']) == 2
    has_weights = name == 'weighted.att'
    assert [n.split(': ')[1] for n in notes] == (
      ['Its weights are left out.'] * has_weights
    )
    if name not in ('a.att', 'weighted.att'):
      assert found['states'] == (
        ['odd', 'even'] if name == 'hand.gv' else ['even', 'odd']
      )

  @pytest.mark.parametrize(
    ('name', 'text'),
    [
      ('a.json', automata.JSON.replace(', "b": "odd"}', '}')),
      ('a.att', automata.ATT.replace('o\to\tb\tb\n', '')),
      ('a.dot', automata.DOT.replace('s1 -> s1 [label="b"];', '')),
      (
        'a.jff',
        re.sub('<transition><from>1</from><to>1.*\n', '', automata.JFF),
      ),
    ],
  )
  def test_what_is_missing_goes_to_a_sink(self, name, text, tmp_path):
    found, notes = automata.read_text(tmp_path, name, text)
    assert len(found['states']) == 3
    assert len(notes) == 1
    assert (
      "1 missing transition leads to a sink, the new state 'sink'" in notes[0]
    )
    automaton = fields_lib.to_automaton(found)
    assert automaton.transitions[2].tolist() == [2, 2]
    assert not automaton.accepting[2]
    task = automaton_task.AutomatonTask(automaton, target='state')
    assert task.output_size == 3

  @pytest.mark.parametrize(
    ('name', 'text', 'choice'),
    [
      (
        'a.att',
        automata.ATT + 'e\to\tb\tb\n',
        "state 'e' has a choice for 'b'",
      ),
      (
        'b.att',
        automata.ATT.replace('\no\n', '\no\te\t<eps>\t<eps>\no\n'),
        'epsilon',
      ),
      (
        'a.dot',
        automata.DOT.replace(
          '__start0 -> s0', '__start0 -> s1; __start1 -> s0'
        ),
        '2 states are the start',
      ),
      (
        'b.gv',
        automata.BY_HAND.replace('[label=a]', '[label="a, ε,b"]'),
        'epsilon',
      ),
      (
        'a.jff',
        automata.JFF.replace('<to>1</to><read>b', '<to>1</to><read>ba'),
        None,
      ),
      ('b.jff', automata.JFF.replace('<read>b</read>', '<read/>'), 'epsilon'),
      (
        'c.jff',
        automata.JFF.replace('<final/>', '<final/><initial/>'),
        'the start',
      ),
    ],
  )
  def test_choices_are_determinized(self, name, text, choice, tmp_path):
    found, notes = automata.read_text(tmp_path, name, text)
    if choice is not None:
      assert 'determinized and minimised' in notes[-1]
      assert choice in notes[-1]
      assert found == fields_lib.minimized(found)

  def test_a_label_of_jflap_is_a_string(self, tmp_path):
    text = automata.JFF.replace('<to>1</to><read>a', '<to>1</to><read>aab')
    text = re.sub('<transition><from>1</from>.*\n', '', text)
    found, _ = automata.read_text(tmp_path, 'a.jff', text)
    automaton = fields_lib.to_automaton(found)
    accepted = [
      s
      for s in ('aab', 'baab', 'a', 'aa', 'aaba')
      if automata.accepts(automaton, ['ab'.index(c) for c in s])
    ]
    assert accepted == ['aab', 'baab']

  def test_machines_of_more_answers_are_tasks_of_more_classes(self, tmp_path):
    lines = ['digraph m {', '__start0 -> s0;']
    lines += [f's{i} [label="q{i}|{i * 5}", shape=record];' for i in range(3)]
    for i in range(3):
      lines += [
        f's{i} -> s{i} [label=x];',
        f's{i} -> s{(i + 1) % 3} [label=y];',
      ]
    text = '\n'.join([*lines, '}'])
    found, notes = automata.read_text(tmp_path, 'm.dot', text)
    assert not notes
    assert found['outputs'] == {'q0': '0', 'q1': '5', 'q2': '10'}
    automaton = fields_lib.to_automaton(found)
    assert automaton_task.AutomatonTask(automaton).output_size == 3
    assert automaton.outputs.tolist() == [0, 1, 2]
    found, notes = automata.read_text(
      tmp_path, 'm.dot', text.replace('s2 -> s2 [label=x];', '')
    )
    assert found['outputs']['sink'] == 'none'
    assert "whose output is 'none'" in notes[0]
    assert fields_lib.to_automaton(found).outputs.tolist() == [0, 1, 2, 3]
    jff = automata.JFF.replace('>fa<', '>moore<')
    jff = jff.replace('<x>1.0</x>', '<output>low</output>')
    jff = jff.replace('<final/>', '<output>high</output>')
    found, notes = automata.read_text(tmp_path, 'm.jff', jff)
    assert found['accepting'] == ['even']
    assert "'high' is read as rejecting, 'low' as accepting" in notes[0]

  @pytest.mark.parametrize(
    ('outputs', 'accepting'),
    [
      # What is known says what the other means; else they are in order.
      (('0', 'no'), ['odd']),
      (('yes', '1'), ['even']),
      (('9', 'none'), ['even']),
      (('yes', 'zero'), ['even']),
      (('a', 'b'), ['odd']),
      (('1', '0'), ['even']),
    ],
  )
  def test_two_outputs_accept_or_reject(self, outputs, accepting, tmp_path):
    says = {
      **automata.FIELDS,
      'outputs': dict(zip(('even', 'odd'), outputs, strict=True)),
    }
    del says['accepting']
    found, _ = automata.read_text(tmp_path, 'a.json', json.dumps(says))
    assert found['accepting'] == accepting

  def test_symbols_are_any_characters_but_space(self, tmp_path):
    symbols = ['ǔ', '\u2028', '\x85', '\xa0', '#', '"']
    lines = [f'{i % 2}\t{1 - i % 2}\t{s}\t{s}' for i, s in enumerate(symbols)]
    found, _ = automata.read_text(tmp_path, 'a.att', '\n'.join([*lines, '1']))
    assert sorted(found['alphabet']) == sorted(symbols)

  def test_states_and_symbols_are_in_the_order_of_numbers(self, tmp_path):
    found, _ = automata.read_text(
      tmp_path, 'a.att', '10 9 2 2\n9 10 10 10\n9\n'
    )
    assert found['states'][:2] == ['9', '10']
    assert found['start'] == '10'
    assert found['alphabet'] == ['2', '10']

  def test_minimizing_keeps_names(self, tmp_path):
    text = (
      automata.ATT.replace('o\te', 'o\tf')
      + 'f\to\ta\ta\nf\te\tb\tb\nz\tz\ta\ta\n'
    )
    found, _ = automata.read_text(tmp_path, 'a.att', text)
    assert len(found['states']) == 5  # With a sink, for z.
    small = fields_lib.minimized(found)
    assert small['states'] == ['e', 'o']
    assert automata.language(small) == automata.language(found)


_BAD = {
  'empty.json': ('', 'It is empty'),
  'half.json': ('{"alphabet": [', 'not valid JSON.*line 1 column'),
  'list.json': ('[1, 2]', 'one JSON object'),
  'none.json': ('{}', "field 'alphabet' is missing"),
  'deep.json': ('[' * 100_000, 'nested too deeply'),
  'binary': (b'a b\n\xff\xfe', 'line 2: it is not text in UTF-8'),
  'zero': ('a\n\0', 'line 2: .*zero byte'),
  'fst': (b'\xd6\xfd\xb2\x7e\0', 'fstprint'),
  'two.att': ('0 1 a b\n1\n', "line 1: input 'a' and output 'b' differ"),
  'digits.att': ('0 1 0 1\n0 1 1 1\n1\n', "line 1: input '0' and output '1'"),
  'six.att': ('0 1 a a\n0 1 a a 1 1\n', 'line 2: expected `from to input'),
  'weight.att': ('0 1 a a x\n', "line 1: the weight 'x'"),
  'final.att': ('0\n', 'no transition'),
  'graph.dot': ('graph { a -- b }', 'line 1: expected `digraph`'),
  'dash.dot': ('digraph {\na -- b }', "line 2: expected '->'"),
  'open.dot': ('digraph {\na -> b', 'line 2: expected a node'),
  'quote.dot': ('digraph {\n\n"a -> b }', "line 3: unexpected '\"'"),
  'comment.dot': ('digraph { /* ', "line 1: unexpected '/'"),
  'html.dot': ('digraph { a [label=<<b>]', "'<' is never closed"),
  'start.dot': ('digraph { a -> b [label=x] }', 'No state is the start'),
  'label.dot': ('digraph { __start0 -> a;\n a -> a }', 'line 2: .*no label'),
  'rejects.dot': (
    'digraph { __start0 -> a; a -> a [label="x/0"] }',
    'No state is accepting.*Mealy',
  ),
  'after.dot': (automata.DOT + 'x', 'nothing after the graph'),
  'chosen.dot': (
    'digraph { __start0 -> a; a [label="a|x"]; b [label="b|y"];'
    ' c [label="c|z"]; a -> b [label=x]; a -> c [label=x]; }',
    'nondeterministic',
  ),
  'half.jff': (automata.JFF[:200], r'line \d+: it is not valid XML'),
  'html.jff': ('<html></html>', 'Expected the element <structure>'),
  'pda.jff': (automata.JFF.replace('>fa<', '>pda<'), "type is 'pda'"),
  'state.jff': (
    automata.JFF.replace('<to>1', '<to>7'),
    r"line 5: .*unknown state '7'",
  ),
  'start.jff': (
    automata.JFF.replace('<initial/>', ''),
    'No state is the start',
  ),
  'doctype.jff': (
    '<!DOCTYPE structure [\n<!ENTITY a "aaaa">]><structure>&a;</structure>',
    'line 1: a document type',
  ),
}


class TestBadInput:
  @pytest.mark.parametrize('name', _BAD)
  def test_a_bad_file_is_one_line(self, name, tmp_path):
    text, problem = _BAD[name]
    with refusals.one_line(problem) as error:
      automata.read_text(tmp_path, name, text)
    assert str(error.value).startswith(f'{tmp_path / name}: ')

  def test_unreadable_files(self, tmp_path):
    os.mkfifo(tmp_path / 'pipe.att')
    for path in (tmp_path / 'absent.json', tmp_path, tmp_path / 'pipe.att'):
      with pytest.raises(ValueError, match='Cannot read') as error:
        reading.read(path)
      assert str(path) in str(error.value)

  def test_large_files_are_refused(self, tmp_path):
    path = tmp_path / 'a.att'
    with path.open('wb') as file:
      file.truncate(10**12)  # It has a hole, and takes no room.
    with pytest.raises(ValueError, match='larger than 64 MB'):
      reading.read(path)

  @pytest.mark.parametrize('name', ['a.json', 'a.att', 'a.dot', 'a.jff'])
  def test_large_automata_are_refused(self, name, tmp_path, monkeypatch):
    monkeypatch.setattr(description, 'MAX_STATES', 1)
    with pytest.raises(ValueError, match='more than 1 states'):
      automata.read_text(tmp_path, name, automata.FILES[name])
    monkeypatch.setattr(description, 'MAX_STATES', 2)
    monkeypatch.setattr(description, 'MAX_TRANSITIONS', 3)
    with pytest.raises(ValueError, match='more than 3 transitions'):
      automata.read_text(tmp_path, name, automata.FILES[name])

  def test_exponential_ones_are_refused(self, tmp_path):
    lines = ['0 0 a a', '0 0 b b', '0 1 b b']
    lines += [f'{i} {i + 1} {s} {s}' for i in range(1, 30) for s in 'ab']
    with pytest.raises(ValueError, match='more than 20,000 states'):
      automata.read_text(tmp_path, 'a.att', '\n'.join([*lines, '30']))

  @hypothesis.given(
    st.sampled_from(sorted(automata.FILES)),
    st.sampled_from(damage.KINDS),
    st.data(),
  )
  @hypothesis.settings(max_examples=300)
  def test_damaged_files_are_read_or_refused_in_one_line(
    self, tmp_path_factory, name, kind, data
  ):
    content = damage.damaged(automata.FILES[name].encode(), kind, data)
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    try:
      found, _ = reading.read(path)
    except ValueError as error:
      assert str(path) in str(error)
      assert '\n' not in str(error)
    else:
      fields_lib.to_automaton(found)
