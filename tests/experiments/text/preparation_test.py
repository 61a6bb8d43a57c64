"""Preparation from generated files to what is read back."""

import gzip
import json
import os
import pathlib
import resource
import shutil
import signal
import tempfile
import time

import numpy as np
import pytest
import tensorflow_datasets as tfds
import zstandard

from experiments.engine import locks
from experiments.text import (
  builder,
  documents,
  loading,
  preparation,
  splits,
)
from tests.experiments.text import workers

_END_OF_TEXT = 256
_HELDOUT = 0.2


def _texts(rng, number):
  """Documents of 1 to 900 bytes."""
  return [
    bytes(rng.integers(97, 123, rng.integers(1, 900), np.uint8)).decode() + ' é'
    for _ in range(number)
  ]


def _write_files(folder):
  """Writes a file of every kind; returns the documents, in order."""
  folder.mkdir()
  rng = np.random.default_rng(0)
  written = {name: _texts(rng, 60) for name in ('a.jsonl', 'b.jsonl.zst')}
  for name, texts in written.items():
    lines = ''.join(json.dumps({'text': t}) + '\n' for t in texts).encode()
    if name.endswith('.zst'):
      lines = zstandard.compress(lines)
    (folder / name).write_bytes(lines)
  (folder / 'c.txt').write_text(' '.join(_texts(rng, 5000)))
  with_txt = [
    d
    for b in documents.blocks(str(folder / 'c.txt'))
    for d in documents.documents(b)
  ]
  return [*written['a.jsonl'], *written['b.jsonl.zst'], *with_txt]


def _prepare(folder, data_dir, num_workers=1, **kwargs):
  return preparation.prepare(
    str(folder / '*'),
    str(data_dir),
    tokenizer_name='byte',
    heldout=_HELDOUT,
    num_workers=num_workers,
    **kwargs,
  )


def _contents(data_dir):
  return {
    str(p.relative_to(data_dir)): p.read_bytes()
    for p in data_dir.rglob('*')
    if p.is_file()
  }


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
  root = tmp_path_factory.mktemp('text')
  texts = _write_files(root / 'raw')
  return root, texts, _prepare(root / 'raw', root / 'data')


@pytest.fixture
def in_process():
  with workers.in_thread():
    yield


def _split_of(text):
  rule = splits.by_hash(_HELDOUT)
  ((split, _),) = splits.parts(text, splits.place_of(text), rule)
  return split


def _read_all(text):
  """Returns the texts of the splits, joined by end-of-text."""
  streams = [text.streams[split] for split in splits.SPLITS]
  tokens = [stream.read([0], len(stream))[0, 1:] for stream in streams]
  return [
    ''.join('|' if t == _END_OF_TEXT else chr(t) for t in row) for row in tokens
  ]


def _expected(texts, split):
  tokens = [_END_OF_TEXT]
  for text in texts:
    if _split_of(text) == split:
      tokens += [*text.encode(), _END_OF_TEXT]
  return tokens


@pytest.mark.parametrize('split', splits.SPLITS)
def test_stream_is_the_documents_joined(split, prepared):
  _, texts, text = prepared
  expected = _expected(texts, split)
  stream = text.streams[split]
  assert len(stream) == len(expected) > 1
  np.testing.assert_array_equal(stream.read([0], len(stream))[0], expected)
  number = sum(_split_of(t) == split for t in texts)
  assert text.metadata['num_documents'][split] == number


def test_tfds_alone_reads_training_sequences(prepared):
  _, texts, text = prepared
  expected = _expected(texts, 'train')
  source = tfds.builder_from_directory(text.folder).as_data_source('train')
  for i in (0, 7, len(source) - 1):
    record = source[i]['tokens']
    part = expected[512 * i : 512 * i + 513]
    assert record.dtype == np.uint16
    assert record.tolist() == part + [_END_OF_TEXT] * (513 - len(part))
  assert 512 * (len(source) - 1) < len(expected) - 1 <= 512 * len(source)


def test_several_shards_are_one_stream(
  prepared, tmp_path, monkeypatch, in_process
):
  root, texts, text = prepared
  monkeypatch.setattr(builder, '_RECORDS_PER_SHARD', 20)
  sharded = _prepare(root / 'raw', tmp_path / 'data')
  shards = list(pathlib.Path(sharded.folder).glob('*train.array_record*'))
  assert len(shards) > 3
  for split in splits.SPLITS:
    np.testing.assert_array_equal(
      sharded.streams[split].read([0], len(sharded.streams[split]))[0],
      _expected(texts, split),
    )
  assert sharded.metadata == text.metadata


def test_number_of_workers_does_not_show(prepared, tmp_path):
  root, _, _ = prepared
  _prepare(root / 'raw', tmp_path, num_workers=3)
  assert _contents(tmp_path) == _contents(root / 'data')


def test_prepared_is_left_alone_and_another_text_is_refused(prepared, tmp_path):
  root, _, text = prepared
  before = _contents(root / 'data')
  (root / 'data' / '.pieces-byte').mkdir()  # As a kill leaves it.
  (root / 'data' / '.pieces-byte' / 'half').touch()
  assert _prepare(root / 'raw', root / 'data').metadata == text.metadata
  (tmp_path / 'other.txt').write_text('word ' * 1000)
  with pytest.raises(ValueError, match='holds tokens of other files'):
    _prepare(tmp_path, root / 'data')
  assert _contents(root / 'data') == before


def test_a_file_that_was_changed_since_is_told(
  tmp_path, in_process, capsys, monkeypatch
):
  path = tmp_path / 'raw' / 'a.txt'
  path.parent.mkdir()
  path.write_text('one ' * 1000)
  temporary = tmp_path / 'temporary'
  temporary.mkdir()
  monkeypatch.setattr(tempfile, 'tempdir', str(temporary))
  _prepare(path.parent, tmp_path / 'data')
  assert not list(temporary.iterdir())
  path.write_text('two ' * 1000)
  later = time.time() + 60  # Clocks of file systems are coarse.
  assert 'was changed' not in capsys.readouterr().err
  os.utime(path, (later, later))
  _prepare(path.parent, tmp_path / 'data')
  assert 'a.txt was changed after that: to prepare' in capsys.readouterr().err


def test_fingerprint_tells_where_splits_end(tmp_path, in_process):
  """The tokens of all splits one after another are the same twice."""
  texts = sorted(map(str, range(10, 20)), key=splits.place_of, reverse=True)
  lines = [json.dumps({'text': text}) for text in texts]
  (tmp_path / 'raw.jsonl').write_text('\n'.join(lines))
  joined, fingerprints = set(), set()
  for heldout in (0.2, 0.3):
    text = preparation.prepare(
      str(tmp_path / 'raw.jsonl'),
      str(tmp_path / str(heldout)),
      tokenizer_name='byte',
      heldout=heldout,
    )
    joined.add(''.join(_read_all(text)))
    fingerprints.add(text.metadata['fingerprint'])
  assert joined == {''.join(t + '|' for t in texts)} and len(fingerprints) == 2


def test_pieces_of_another_key_are_not_used(tmp_path, in_process):
  lines = [json.dumps({'text': f'a{i}', 'b': f'b{i}'}) for i in range(9)]
  (tmp_path / 'a.jsonl').write_text('\n'.join(lines))
  (tmp_path / 'b.jsonl').write_text('bad')
  args = (str(tmp_path / '*.jsonl'), str(tmp_path / 'data'), 'byte')
  with pytest.raises(ValueError, match=r'b\.jsonl, line 1'):
    preparation.prepare(*args)
  (tmp_path / 'b.jsonl').unlink()
  assert 'a' not in ''.join(_read_all(preparation.prepare(*args, key='b')))


@pytest.mark.parametrize(
  ('limit', 'folder'), [(9_000, '.pieces-byte'), (150_000, 'text_tokens')]
)
def test_no_space_left_is_one_error_and_can_go_on(
  limit, folder, tmp_path, in_process
):
  """A limit on the size of files fails writes as a full disk does."""
  raw, data_dir = tmp_path / 'raw', tmp_path / 'data'
  raw.mkdir()
  rng = np.random.default_rng(2)
  texts = [_texts(rng, 60) for _ in range(20)]
  for i, part in enumerate(texts):
    lines = [json.dumps({'text': text}) for text in part]
    (raw / f'{i:02d}.jsonl').write_text('\n'.join(lines))
  old = resource.getrlimit(resource.RLIMIT_FSIZE)
  handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  try:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    with pytest.raises(OSError, match=f'Cannot write {data_dir}/{folder}'):
      _prepare(raw, data_dir)
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    signal.signal(signal.SIGXFSZ, handler)
  stream = _prepare(raw, data_dir).streams['train']
  np.testing.assert_array_equal(
    stream.read([0], len(stream))[0],
    _expected([t for part in texts for t in part], 'train'),
  )


def test_pieces_of_a_stopped_preparation_are_used(
  prepared, tmp_path, in_process
):
  """A bad last file stops it; what is done by then is not done again."""
  root, _, _ = prepared
  raw, data_dir = tmp_path / 'raw', tmp_path / 'data'
  _write_files(raw)
  (raw / 'd.jsonl').write_text('{"text": "a"}\nbad\n')
  with pytest.raises(ValueError, match=r'd\.jsonl, line 2: not JSON'):
    _prepare(raw, data_dir)
  with pytest.raises(OSError, match='no prepared text'):
    loading.load(str(data_dir))
  pieces = sorted(
    data_dir.glob('.pieces-byte/*/*.npz'), key=lambda p: p.stat().st_size
  )
  assert len(pieces) == 3
  # As a kill leaves them: a piece and a dataset half written.
  (pieces[0].parent / '.000000.npz.half').write_bytes(b'PK')
  half = data_dir / 'text_tokens' / 'byte' / 'incomplete.HALF_1.0.0'
  half.mkdir(parents=True)
  (half / 'text_tokens-train.array_record-00000-of-00001').write_bytes(b'x')
  # A mark, to be seen again if a piece is used.
  with np.load(pieces[-1]) as piece:
    arrays = dict(piece)
  marked = arrays['train']
  marked[:] = 7
  np.savez(pieces[-1], **arrays)
  (raw / 'd.jsonl').unlink()
  text = _prepare(raw, data_dir)
  stream = text.streams['train']
  assert np.sum(stream.read([0], len(stream))[0] == 7) == len(marked)
  assert _contents(data_dir).keys() == _contents(root / 'data').keys()


def test_fingerprint_changes_with_a_letter(tmp_path, in_process):
  raw = tmp_path / 'raw'
  raw.mkdir()
  texts = [_texts(np.random.default_rng(i), 40) for i in range(2)]
  found = set()
  for letter in 'aab':
    texts[1][-1] = letter
    for i, part in enumerate(texts):
      lines = [json.dumps({'text': text}) for text in part]
      (raw / f'{i}.jsonl').write_text('\n'.join(lines))
    data_dir = tmp_path / f'data{len(found)}'
    shutil.rmtree(data_dir, ignore_errors=True)
    found.add(_prepare(raw, data_dir).metadata['fingerprint'])
  assert len(found) == 2


def test_a_changed_file_is_read_again(tmp_path, in_process):
  raw, data_dir = tmp_path / 'raw', tmp_path / 'data'
  raw.mkdir()
  texts = _texts(np.random.default_rng(1), 100)
  lines = [json.dumps({'text': t}) + '\n' for t in texts]
  (raw / 'a.jsonl').write_text(''.join(lines))
  (raw / 'b.jsonl').write_text('bad')
  with pytest.raises(ValueError, match=r'b\.jsonl, line 1'):
    _prepare(raw, data_dir)
  (raw / 'a.jsonl').write_text(''.join(reversed(lines)))
  (raw / 'b.jsonl').unlink()
  stream = _prepare(raw, data_dir).streams['train']
  np.testing.assert_array_equal(
    stream.read([0], len(stream))[0], _expected(texts[::-1], 'train')
  )


@pytest.mark.parametrize(
  ('contents', 'kwargs', 'message'),
  [
    ('{"text": "ab"}', {}, '2 characters cannot be cut'),
    ('\n\n', {}, r'no text in any of the files\.'),
    ('{"txt": "a"}', {}, '1 records have no "text", .* --key'),
    ('{"text": "a"}', {'heldout': 0.5}, 'heldout'),
    ('{"text": "a"}', {'num_workers': -1}, 'num_workers'),
    ('{"text": "a"}', {'tokenizer_name': 'words'}, 'byte, gpt2'),
  ],
)
def test_what_cannot_be_prepared(
  contents, kwargs, message, tmp_path, in_process
):
  (tmp_path / 'a.jsonl').write_text(contents)
  kwargs = {'tokenizer_name': 'byte', 'num_workers': 1, **kwargs}
  data_dir = tmp_path / 'data'
  with pytest.raises(ValueError, match=message):
    preparation.prepare(str(tmp_path / '*.jsonl'), str(data_dir), **kwargs)
  assert not (data_dir / 'text_tokens').exists()
  (tmp_path / 'a.txt').write_text('text')
  with pytest.raises(ValueError, match=r'--key=b is for \.jsonl'):
    preparation.prepare(str(tmp_path / '*.txt'), str(data_dir), key='b')


def test_two_at_once_are_refused(tmp_path):
  raw, data_dir = tmp_path / 'raw', tmp_path / 'data'
  raw.mkdir()
  (raw / 'a.txt').write_text('text')
  with (
    locks.locked(str(data_dir)),
    pytest.raises(OSError, match='Another process is using'),
  ):
    _prepare(raw, data_dir)


def test_compressed_nothing_is_no_text(tmp_path):
  (tmp_path / 'empty.txt.gz').write_bytes(gzip.compress(b''))
  with pytest.raises(ValueError, match='There is no text'):
    preparation.prepare(str(tmp_path / '*.gz'), str(tmp_path / 'data'), 'byte')


def test_texts_lie_on_a_disk(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  message = 'gs://b/text must be a folder on a disk'
  with pytest.raises(ValueError, match=message):
    loading.load('gs://b/text')
  with pytest.raises(ValueError, match=message):
    preparation.prepare('*.txt', 'gs://b/text', 'byte')
  assert not list(tmp_path.iterdir())
