import gzip
import json

import hypothesis
from hypothesis import strategies as st
import pytest
import zstandard

from experiments.text import documents

_WORDS = st.text(st.characters(exclude_categories=['Cs']), max_size=12)


_COMPRESS = {'.zst': zstandard.compress, '.gz': gzip.compress}


def _write(path, contents):
  """Writes bytes; compressed in two parts, as files that were joined."""
  if compress := _COMPRESS.get(path.suffix):
    third = len(contents) // 3
    contents = compress(contents[:third]) + compress(contents[third:])
  path.write_bytes(contents)
  return str(path)


def _read(path):
  return [d for b in documents.blocks(path) for d in documents.documents(b)]


@pytest.fixture
def small(monkeypatch):
  """Blocks and documents of a few bytes, read a few bytes at a time."""

  def shrink(block_bytes, chunk_bytes):
    monkeypatch.setattr(documents, '_BLOCK_BYTES', block_bytes)
    monkeypatch.setattr(documents, '_TXT_DOCUMENT_BYTES', block_bytes // 3 + 1)
    monkeypatch.setattr(documents, '_CHUNK_BYTES', chunk_bytes)
    monkeypatch.setattr(documents, '_ZSTD_CHUNK_BYTES', chunk_bytes)

  return shrink


_sizes = hypothesis.given(
  texts=st.lists(_WORDS, max_size=12),
  block_bytes=st.integers(1, 60),
  chunk_bytes=st.integers(1, 60),
)
_settings = hypothesis.settings(
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize('suffix', ['.jsonl', '.jsonl.zst', '.jsonl.gz'])
@_settings
@_sizes
def test_every_document_of_jsonl_once(
  suffix, small, tmp_path, texts, block_bytes, chunk_bytes
):
  small(block_bytes, chunk_bytes)
  lines = [json.dumps({'text': t, 'meta': {}}) for t in texts]
  contents = '\n'.join(lines).encode() + b'\n\n'
  path = _write(tmp_path / f'a{suffix}', contents)
  assert _read(path) == texts
  blocks = list(documents.blocks(path))
  assert b''.join(b.data for b in blocks) == contents
  for i, block in enumerate(blocks):
    before = b''.join(b.data for b in blocks[:i])
    assert (block.number, block.start) == (i, len(before))
    assert block.first_line == 1 + before.count(b'\n')
    assert len(block.data) >= block_bytes or block is blocks[-1]
    # As short as whole lines allow, so the same however the file is read.
    assert b'\n' not in block.data[block_bytes - 1 : -1]


@pytest.mark.parametrize('suffix', ['.txt', '.txt.zst', '.txt.gz'])
@_settings
@_sizes
@hypothesis.example(texts=['日本語' * 40], block_bytes=9, chunk_bytes=5)
@hypothesis.example(
  texts=['x', '\U0001f600' * 40], block_bytes=2, chunk_bytes=3
)
def test_txt_is_cut_at_blanks_or_between_characters(
  suffix, small, tmp_path, texts, block_bytes, chunk_bytes
):
  small(block_bytes, chunk_bytes)
  contents = ' '.join(texts)
  path = _write(tmp_path / f'a{suffix}', contents.encode())
  found = _read(path)
  assert ''.join(found) == contents
  most = 2 * (block_bytes // 3 + 1)  # Without a blank.
  for document in found:
    assert len(document.encode()) <= most + 3
  for block in documents.blocks(path):
    assert len(block.data) <= block_bytes + most // 2 + 3
    for document in list(documents.documents(block))[:-1]:
      assert document[-1] in ' \n' or len(document.encode()) >= most


def test_a_text_without_blanks_is_cut_wherever_it_is_read(small, tmp_path):
  path = _write(tmp_path / 'a.txt', b'ACGT' * 1000)
  found = []
  for chunk_bytes in (1, 7, 5000):
    small(200, chunk_bytes)
    found.append(_read(path))
  assert found[0] == found[1] == found[2]
  assert max(map(len, found[0])) == 134 and len(found[0]) > 20


def test_halves_of_surrogate_pairs_are_replaced(tmp_path):
  line = rb'{"text": "a\ud83d\ude00 \ud83d b"}'
  path = _write(tmp_path / 'a.jsonl', line)
  assert _read(path) == ['a\U0001f600 \ufffd b']


@pytest.mark.parametrize(
  ('line', 'message'),
  [
    (b'{"text": "a"', 'not JSON: .* at character 13'),
    (b'{"text": "a",}', 'not JSON: .* at character 1[34]'),
    (b'[' * 10**5, 'not JSON'),
    (b'{"text": 3}', '"text" must be a string or null, not 3'),
    (b'{"text": ["a"]}', r'"text" must be .*, not \["a"\]'),
    (b'["text"]', 'not an object'),
    (b'null', 'not an object'),
  ],
)
@pytest.mark.parametrize('number_before', [0, 7, 40])
def test_bad_line_is_named(line, message, number_before, small, tmp_path):
  small(100, 64)
  good = b'{"text": "good"}\n'
  contents = number_before * good + line + b'\n' + good
  path = _write(tmp_path / 'a.jsonl.zst', contents)
  where = rf'a\.jsonl\.zst, line {number_before + 1}: {message}'
  with pytest.raises(ValueError, match=where):
    _read(path)


@pytest.mark.parametrize('suffix', ['.jsonl', '.txt.gz', '.txt'])
@pytest.mark.parametrize('number_before', [0, 1, 30])
def test_what_is_not_utf8_is_found_in_the_file(
  number_before, suffix, small, tmp_path
):
  small(60, 7)
  good = b'{"text": "a good line"}\n'
  path = _write(
    tmp_path / f'a{suffix}',
    number_before * good + b'{"text": "\xe9"}\n' + good,
  )
  place = number_before * len(good) + 10
  message = (
    rf'a{suffix}, line {number_before + 1}: not UTF-8: byte {place} of the'
    ' text is 0xe9'
  )
  with pytest.raises(ValueError, match=message):
    _read(path)


@pytest.mark.parametrize('suffix', ['.jsonl', '.txt', '.txt.zst'])
def test_a_byte_order_mark_is_dropped(suffix, small, tmp_path):
  small(10, 4)
  line = '{"text": "a"}\n'
  path = _write(tmp_path / f'a{suffix}', ('\ufeff' + line * 3).encode())
  found = ''.join(_read(path))
  assert found == ('aaa' if suffix == '.jsonl' else line * 3)


def test_records_without_text_and_another_key(tmp_path):
  lines = b'{"text": null, "b": "c"}\n\n{"b": ""}\n{"text": "a"}\n{}\n'
  (block,) = documents.blocks(_write(tmp_path / 'a.jsonl', lines))
  assert list(documents.documents(block)) == ['', '', 'a', '']
  assert list(documents.documents(block, 'b')) == ['c', '', '', '']


@pytest.mark.parametrize('kept', [2, 30, -1])
@pytest.mark.parametrize('suffix', ['.zst', '.gz'])
def test_cut_short(suffix, kept, tmp_path):
  path = tmp_path / f'a.jsonl{suffix}'
  path.write_bytes(_COMPRESS[suffix](b'{"text": "a"}\n' * 1000)[:kept])
  with pytest.raises(ValueError, match=rf'a\.jsonl{suffix} is cut short'):
    _read(str(path))


@pytest.mark.parametrize('suffix', ['.zst', '.gz'])
def test_not_compressed_as_its_name_says(suffix, tmp_path):
  path = tmp_path / f'a.jsonl{suffix}'
  for contents in (b'{"text": "a"}\n', _COMPRESS[suffix](b'\n') + b'garbage'):
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=rf'a\.jsonl{suffix} is not '):
      _read(str(path))
  damaged = bytearray(_COMPRESS[suffix](b'{"text": "a"}\n' * 1000))
  damaged[6:9] = b'\xff' * 3  # A header of zstd; nothing to gzip.
  damaged[-8:] = bytes(8)  # A checksum of gzip.
  path.write_bytes(damaged)
  with pytest.raises(ValueError, match='or is damaged'):
    _read(str(path))


@pytest.mark.parametrize('suffix', ['.zst', '.gz'])
def test_a_small_file_cannot_fill_the_memory(suffix, tmp_path):
  """A hundred MiB in kilobytes, as one line of JSON and as text."""
  contents = _COMPRESS[suffix](b'a' * 2**20) * 100
  if suffix == '.zst':  # One frame, as small as it gets.
    contents = zstandard.compress(b'a' * (100 * 2**20))
    assert len(contents) < 2**14
  path = tmp_path / f'a{suffix}'
  path.write_bytes(contents)
  with path.open('rb') as file:
    steps = map(len, documents._READERS[suffix](str(path), file))
    assert max(steps) <= 2**25
  line, text = (tmp_path / f'a.{kind}{suffix}' for kind in ('jsonl', 'txt'))
  path.rename(line)
  with pytest.raises(ValueError, match='line 1: longer than 16,777,216 bytes'):
    _read(str(line))
  line.rename(text)
  assert len(next(documents.blocks(str(text))).data) <= 2**22 + 2**16 + 3


@pytest.mark.parametrize('chunk_bytes', [5, 1000])
def test_a_line_has_its_limit(chunk_bytes, small, tmp_path, monkeypatch):
  small(50, chunk_bytes)
  monkeypatch.setattr(documents, '_LINE_BYTES', 100)
  good = b'{"text": "good"}\n'
  longest = json.dumps({'text': 'a' * 87}).encode()
  path = _write(tmp_path / 'a.jsonl', good * 5 + longest + b'\n' + good)
  assert len(_read(path)) == 7
  path = _write(tmp_path / 'a.jsonl', good * 5 + longest * 2 + b'\n' + good)
  with pytest.raises(ValueError, match=r'a\.jsonl, line 6: longer than 100 b'):
    _read(path)


def test_a_file_is_found_by_its_name_whatever_that_is(tmp_path):
  path = str(tmp_path / 'a[1].txt')
  with open(path, 'w') as f:
    f.write('x')
  (tmp_path / 'a1.txt').write_text('x')
  assert documents.find_files(path) == [path]


def test_a_file_with_several_names_is_found_once(tmp_path, capsys):
  (tmp_path / 'b.txt').write_text('x')
  for name in ('a.txt', 'c.txt'):
    (tmp_path / name).symlink_to('b.txt')
  assert documents.find_files(f'{tmp_path}/*.txt') == [f'{tmp_path}/a.txt']
  assert '2 links to other files are left out' in capsys.readouterr().err


def test_empty_files_are_left_out_if_others_are_not(tmp_path, capsys):
  empty = [tmp_path / name for name in ('a.txt', 'b.jsonl')]
  for path in empty:
    path.touch()
  with pytest.raises(ValueError, match=r'All files that match .* are empty'):
    documents.find_files(f'{tmp_path}/*')
  (tmp_path / 'c.txt').write_text('x')
  assert documents.find_files(f'{tmp_path}/*') == [f'{tmp_path}/c.txt']
  assert f'left out: 2, first {empty[0]}' in capsys.readouterr().err


def test_find_files(tmp_path):
  for name in ('b.jsonl', 'a.txt', 'c.jsonl.zst', 'e.txt.gz', 'f.jsonl.gz'):
    (tmp_path / name).write_bytes(b'x')
  found = documents.find_files(str(tmp_path / '*'))
  assert found == sorted(str(p) for p in tmp_path.iterdir())
  with pytest.raises(ValueError, match=r'No file matches .*d\*'):
    documents.find_files(str(tmp_path / 'd*'))
  (tmp_path / 'd.txt').mkdir()
  with pytest.raises(ValueError, match=r'd\.txt is no file; narrow'):
    documents.find_files(str(tmp_path / 'd*'))
  (tmp_path / 'd.txt').rmdir()
  for name in ('d.csv', 'd.gz', 'd.csv.zst', 'd.txt.gz.gz'):
    (tmp_path / name).write_bytes(b'x')
    with pytest.raises(ValueError, match=rf'{name}: can read \.jsonl and'):
      documents.find_files(str(tmp_path / name))
