import json

import hypothesis
from hypothesis import strategies as st
import pytest
import zstandard

from experiments.text import documents

_WORDS = st.text(st.characters(exclude_categories=['Cs']), max_size=12)


def _write(path, contents):
  """Writes bytes; a .zst file in several frames, as files that were joined."""
  if path.name.endswith('.zst'):
    third = len(contents) // 3
    parts = contents[:third], contents[third:]
    contents = b''.join(zstandard.compress(part) for part in parts)
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

  return shrink


_sizes = hypothesis.given(
  texts=st.lists(_WORDS, max_size=12),
  block_bytes=st.integers(1, 60),
  chunk_bytes=st.integers(1, 60),
)
_settings = hypothesis.settings(
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize('suffix', ['.jsonl', '.jsonl.zst'])
@_settings
@_sizes
def test_every_document_of_jsonl_once(
  suffix, small, tmp_path, texts, block_bytes, chunk_bytes
):
  small(block_bytes, chunk_bytes)
  lines = [json.dumps({'text': t, 'meta': {}}) for t in texts]
  contents = '\n'.join(lines).encode() + b'\n\n'
  path = _write(tmp_path / f'a{suffix}', contents)
  assert _read(path) == [t for t in texts if t]
  blocks = list(documents.blocks(path))
  assert b''.join(b.data for b in blocks) == contents
  for i, block in enumerate(blocks):
    assert block.number == i
    before = b''.join(b.data for b in blocks[:i])
    assert block.first_line == 1 + before.count(b'\n')
    assert len(block.data) >= block_bytes or block is blocks[-1]
    # As short as whole lines allow, so the same however the file is read.
    assert b'\n' not in block.data[block_bytes - 1 : -1]


@_settings
@_sizes
def test_txt_is_cut_at_spaces_and_joins_to_the_whole(
  small, tmp_path, texts, block_bytes, chunk_bytes
):
  small(block_bytes, chunk_bytes)
  contents = ' '.join(texts)
  found = _read(_write(tmp_path / 'a.txt', contents.encode()))
  assert ''.join(found) == contents
  assert all(d[-1] in ' \n' for d in found[:-1])


def test_halves_of_surrogate_pairs_are_replaced(tmp_path):
  line = rb'{"text": "a\ud83d\ude00 \ud83d b"}'
  path = _write(tmp_path / 'a.jsonl', line)
  assert _read(path) == ['a\U0001f600 \ufffd b']


@pytest.mark.parametrize(
  ('line', 'message'),
  [
    (b'{"text": "a"', 'not JSON'),
    (b'{"text": "\xff"}', 'not JSON'),
    (b'[' * 10**5, 'not JSON'),
    (b'{"txt": "a"}', 'string "text"'),
    (b'{"text": 3}', 'string "text"'),
    (b'["text"]', 'string "text"'),
  ],
)
@pytest.mark.parametrize('number_before', [0, 7, 40])
def test_bad_line_is_named(line, message, number_before, small, tmp_path):
  small(100, 64)
  good = b'{"text": "good"}\n'
  contents = number_before * good + line + b'\n' + good
  path = _write(tmp_path / 'a.jsonl.zst', contents)
  where = rf'a\.jsonl\.zst, line {number_before + 1}: .*{message}'
  with pytest.raises(ValueError, match=where):
    _read(path)


def test_txt_that_is_not_utf8(small, tmp_path):
  small(20, 7)
  path = _write(tmp_path / 'a.txt', b'a word\n' * 9 + b'\xe9\n')
  with pytest.raises(ValueError, match=r'a\.txt, line 10: '):
    _read(path)


@pytest.mark.parametrize('kept', [2, 30, -1])
def test_zst_cut_short(kept, tmp_path):
  path = tmp_path / 'a.jsonl.zst'
  path.write_bytes(zstandard.compress(b'{"text": "a"}\n' * 1000)[:kept])
  with pytest.raises(ValueError, match=r'a\.jsonl\.zst is cut short'):
    _read(str(path))


def test_not_zst(tmp_path):
  path = tmp_path / 'a.jsonl.zst'
  path.write_bytes(b'{"text": "a"}\n')
  with pytest.raises(ValueError, match=r'a\.jsonl\.zst is not zstd'):
    _read(str(path))


def test_find_files(tmp_path):
  for name in ('b.jsonl', 'a.txt', 'c.jsonl.zst'):
    (tmp_path / name).write_bytes(b'x')
  found = documents.find_files(str(tmp_path / '*'))
  assert found == sorted(str(p) for p in tmp_path.iterdir())
  with pytest.raises(ValueError, match=r'No file matches .*d\*'):
    documents.find_files(str(tmp_path / 'd*'))
  (tmp_path / 'd.jsonl').touch()
  with pytest.raises(ValueError, match=r'd\.jsonl is empty'):
    documents.find_files(str(tmp_path / 'd*'))
  (tmp_path / 'd.csv').write_bytes(b'x')
  with pytest.raises(ValueError, match=r'd\.csv: can read \.jsonl\.zst'):
    documents.find_files(str(tmp_path / '*.csv'))
