"""Tests of reading labelled strings from files, and of their task."""

import collections
import os

import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np
import pytest

from tasks.strings import reading, strings_task
from tests import refusals
from tests.tasks import checks, damage

# The same strings in every format.
MLREGTEST = 'ab\tTRUE\nb\tFALSE\naab\tTRUE\nba\tFALSE\n'
ABBADINGO = '4 2\n1 2 a b\n0 1 b\n1 3 a a b\n0 2 b a\n'
TOKENS, LABELS = 'a b\nb\na a b\nb a\n', '1\n0\n1\n0\n'


def write(folder, name, content):
  path = folder / name
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  return path


def _files(folder):
  write(folder, 'labels.txt', LABELS)
  return [
    write(folder, 'a.txt', MLREGTEST),
    write(folder, 'a.tsv', MLREGTEST.replace('\n', '\r\n')),
    write(folder, 'bom.txt', '\ufeff' + MLREGTEST),
    write(
      folder,
      'spaced.txt',
      MLREGTEST.replace('ab', 'a b')
      .replace('aa b', 'a a b')
      .replace('ba', 'b a'),
    ),
    write(folder, 'a.abbadingo', ABBADINGO),
    write(folder, 'main.tok', TOKENS),
  ]


class TestReading:
  def test_a_format_is_read(self, tmp_path):
    for path in _files(tmp_path):
      found = reading.read(path)
      assert list(map(list, found.strings)) == [
        ['a', 'b'],
        ['b'],
        ['a', 'a', 'b'],
        ['b', 'a'],
      ], path
      assert strings_task.alphabet_of(found) == ['a', 'b']
      labels = strings_task.labels_of(found)
      assert labels == ['FALSE', 'TRUE']
      groups = strings_task.to_groups(found, ['a', 'b'], labels)
      assert {n: g.answers.tolist() for n, g in groups.items()} == {
        1: [0],
        2: [1, 0],
        3: [1],
      }
      assert groups[2].tokens.tolist() == [[0, 1], [1, 0]]

  def test_symbols_of_more_than_a_character(self, tmp_path):
    path = write(tmp_path, 'a.txt', 'up down\tyes\nup\tno\n')
    found = reading.read(path)
    assert list(map(list, found.strings)) == [['up', 'down'], ['up']]
    assert strings_task.alphabet_of(found) == ['down', 'up']
    assert strings_task.labels_of(found) == ['FALSE', 'TRUE']

  def test_more_labels_than_two_are_more_classes(self, tmp_path):
    found = reading.read(write(tmp_path, 'a.txt', 'a\t10\nb\t9\nab\t2\n'))
    labels = strings_task.labels_of(found)
    assert labels == ['2', '9', '10']
    groups = strings_task.to_groups(found, 'ab', labels)
    assert groups[1].answers.tolist() == [2, 1]

  def test_empty_strings_are_left_out(self, tmp_path):
    found = reading.read(write(tmp_path, 'a.txt', '\tTRUE\na\tFALSE\n'))
    assert found.labels == ['FALSE']
    assert found.lines == [2]
    assert '1 empty string is left out' in found.notes[0]
    write(tmp_path, 'labels.txt', '1\n0\n1\n')
    found = reading.read(write(tmp_path, 'main.tok', 'a\n\nb a\n'))
    assert found.labels == ['1', '1']
    found = reading.read(write(tmp_path, 'b', '2 2\n1 0\n0 1 7\n'))
    assert found.strings == [('7',)]

  def test_the_checksum_is_of_all_that_is_read(self, tmp_path):
    _files(tmp_path)
    before = reading.read(tmp_path / 'main.tok').checksum
    write(tmp_path, 'labels.txt', LABELS[::-1].strip() + '\n')
    assert reading.read(tmp_path / 'main.tok').checksum != before


_BAD = {
  'empty': ('', 'It is empty'),
  'lines.txt': ('abab\n', "line 1: expected a string, a tabulator and.*'abab'"),
  'three.txt': ('a\tTRUE\nb\tTRUE\tx\n', 'line 2: expected a string, a tabul'),
  'no_label.txt': ('a\tTRUE\nb\t\n', 'line 2: expected a string'),
  'gap.txt': ('a\tTRUE\n\nb\tTRUE\n', "line 2: .*got ''"),
  'none.txt': ('\tTRUE\n', 'no string of one symbol or more'),
  'binary.txt': (b'a\tTRUE\n\xff\tTRUE\n', 'line 2: it is not text in UTF-8'),
  'zero.txt': ('a\tTRUE\nb\0\tTRUE\n', 'line 2: .*zero byte'),
  'few': ('3 2\n1 1 a\n', 'line 1: it says 3 strings, but 1 lines follow'),
  'length': ('1 2\n1 2 a\n', 'line 2: expected a label, a length'),
  'word': ('1 2\n1 x a\n', 'line 2: expected a label, a length'),
  'unknown': ('1 2\n-1 1 a\n', 'line 2: its label is -1'),
  'symbols': ('2 1\n1 1 a\n0 1 b\n', 'line 3: this is the symbol 2, but line'),
  'main.tok': ('a\nb\n', 'It has 2 lines, but .*labels.txt 1'),
}


class TestBadInput:
  @pytest.mark.parametrize('name', _BAD)
  def test_a_bad_file_is_one_line(self, name, tmp_path):
    content, problem = _BAD[name]
    write(tmp_path, 'labels.txt', '1\n')
    with refusals.one_line(problem) as error:
      reading.read(write(tmp_path, name, content))
    assert str(error.value).startswith(f'{tmp_path / name}: ')

  def test_unreadable_files(self, tmp_path):
    write(tmp_path, 'x.tok', 'a\n')
    os.mkfifo(tmp_path / 'pipe')  # Nobody writes: it would be waited for.
    for name in ('absent.txt', '', 'x.tok', 'pipe'):
      with pytest.raises(ValueError, match='Cannot read') as error:
        reading.read(tmp_path / name)
      assert str(tmp_path) in str(error.value)

  def test_large_files_are_refused(self, tmp_path):
    path = tmp_path / 'a.txt'
    with path.open('wb') as file:
      file.truncate(10**12)  # It has a hole, and takes no room.
    with pytest.raises(ValueError, match='larger than 64 MB'):
      reading.read(path)

  def test_other_symbols_and_labels_are_named_with_their_line(self, tmp_path):
    found = reading.read(write(tmp_path, 'a.txt', 'ab\tTRUE\naabc\tFALSE\n'))
    with pytest.raises(ValueError, match="line 2: the symbol 'c' is not in"):
      strings_task.to_groups(found, 'ab', strings_task.LABELS)
    with pytest.raises(ValueError, match="line 1: the label 'TRUE' is none of"):
      strings_task.to_groups(found, 'abc', ['x', 'y', 'z'])

  def test_one_label_is_nothing_to_learn(self, tmp_path):
    for label in ('TRUE', 'x'):
      found = reading.read(write(tmp_path, 'a.txt', f'a\t{label}\n'))
      with pytest.raises(ValueError, match='nothing to learn'):
        strings_task.labels_of(found)

  @pytest.mark.parametrize(
    ('labels', 'names'),
    [
      ('+-', ['FALSE', 'TRUE']),
      (('True', 'FALSE', 'true'), ['FALSE', 'TRUE']),
      ('-0+', ['+', '-', '0']),
      (('no', '0', 'yes'), ['0', 'no', 'yes']),
      (('no', '0'), ['0', 'no']),
      (('yes', 'maybe'), ['maybe', 'yes']),
    ],
  )
  def test_each_label_is_a_class(self, labels, names, tmp_path):
    text = ''.join(f'{"a" * (i + 1)}\t{x}\n' for i, x in enumerate(labels))
    found = reading.read(write(tmp_path, 'a.txt', text))
    classes = strings_task.labels_of(found)
    assert sorted(classes) == sorted(names)
    groups = strings_task.to_groups(found, 'a', classes)
    for i, label in enumerate(labels):
      known = {'+': 'TRUE', '-': 'FALSE'} if len(labels) == 2 else {}
      name = known.get(label, label)
      if name not in classes:
        name = name.upper()
      assert classes[groups[i + 1].answers[0]] == name

  def test_two_labels_are_not_one_of_two_classes(self, tmp_path):
    found = reading.read(write(tmp_path, 'a.txt', 'a\t-\nb\t0\nab\t+\n'))
    with pytest.raises(ValueError, match='- and 0 would both mean FALSE'):
      strings_task.to_groups(found, 'ab', strings_task.LABELS)

  @pytest.mark.parametrize(
    'text',
    [
      'ab\t1\na\t1\nab\t0\nab\t0\nab\t1\n',
      'a b\t1\na\t1\na b\t0\na b\t0\na b\t1\n',
    ],
  )
  def test_contradictions_are_said(self, text, tmp_path):
    (note,) = reading.read(write(tmp_path, 'a.txt', text)).notes
    assert '1 of 2 distinct strings have several labels' in note
    assert 'lines 1 and 3' in note

  @hypothesis.given(
    st.sampled_from(['a.txt', 'a.abbadingo', 'main.tok', 'labels.txt']),
    st.sampled_from(damage.KINDS),
    st.data(),
  )
  @hypothesis.settings(max_examples=300)
  def test_damaged_files_are_read_or_refused_in_one_line(
    self, tmp_path_factory, name, kind, data
  ):
    folder = tmp_path_factory.getbasetemp()
    _files(folder)
    content = damage.damaged((folder / name).read_bytes(), kind, data)
    write(folder, name, content)
    path = folder / ('main.tok' if name == 'labels.txt' else name)
    try:
      found = reading.read(path)
      labels = strings_task.labels_of(found)
    except ValueError as error:
      assert '\n' not in str(error)
      assert len(str(error)) < 500
    else:
      alphabet = strings_task.alphabet_of(found)
      groups = strings_task.to_groups(found, alphabet, labels)
      assert sum(len(g.answers) for g in groups.values()) == len(found.labels)


def _task(groups):
  return strings_task.StringsTask('ab', strings_task.LABELS, lambda: groups)


class TestTask:
  def test_strings_are_drawn_as_often_as_they_are_there(self):
    strings = [[0, 1], [0, 1], [1, 1]]
    task = _task(
      {2: strings_task.Group(np.array(strings), np.array([1, 0, 0]))}
    )
    drawn = task.draw(np.random.default_rng(0), 3000, 2)
    outcomes = [
      (*tokens, answer)
      for tokens, answer in zip(
        drawn.tokens.tolist(), drawn.answers.tolist(), strict=True
      )
    ]
    expected = {(0, 1, 1): 1 / 3, (0, 1, 0): 1 / 3, (1, 1, 0): 1 / 3}
    checks.assert_fits(outcomes, expected)
    assert collections.Counter(outcomes).keys() == expected.keys()

  def test_it_is_a_task_of_the_benchmark(self):
    task = _task({2: strings_task.Group(np.array([[0, 1]]), np.array([1]))})
    batch = task.sample_batch(jax.random.key(0), 3, 2)
    assert batch['input'].argmax(-1).tolist() == [[0, 1]] * 3
    assert batch['output'].argmax(-1).tolist() == [1] * 3

  def test_other_lengths_are_refused(self):
    task = _task({2: strings_task.Group(np.array([[0, 1]]), np.array([1]))})
    with pytest.raises(ValueError, match=r'no string of 3 symbols; .* 2 to 2'):
      task.draw(np.random.default_rng(0), 1, 3)
