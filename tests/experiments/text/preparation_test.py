"""Preparation from generated files to what is read back."""

import itertools
import json
import pathlib
import resource
import shutil
import signal

import numpy as np
import pytest
import tensorflow_datasets as tfds
import zstandard

from experiments.engine import locks
from experiments.text import builder, documents, loading, preparation
from experiments.text import pieces as pieces_lib

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
  (folder / 'c.txt').write_text(' '.join(_texts(rng, 3000)))
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


def _expected(texts, split):
  tokens = [_END_OF_TEXT]
  for text in texts:
    if pieces_lib.split_of(text, _HELDOUT) == split:
      tokens += [*text.encode(), _END_OF_TEXT]
  return tokens


@pytest.mark.parametrize('split', pieces_lib.SPLITS)
def test_stream_is_the_documents_joined(split, prepared):
  _, texts, text = prepared
  expected = _expected(texts, split)
  stream = text.streams[split]
  assert len(stream) == len(expected) > 1
  np.testing.assert_array_equal(stream.read([0], len(stream))[0], expected)
  number = sum(pieces_lib.split_of(t, _HELDOUT) == split for t in texts)
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


def test_several_shards_are_one_stream(prepared, tmp_path, monkeypatch):
  root, texts, text = prepared
  monkeypatch.setattr(builder, '_RECORDS_PER_SHARD', 20)
  sharded = _prepare(root / 'raw', tmp_path / 'data')
  shards = list(pathlib.Path(sharded.folder).glob('*train.array_record*'))
  assert len(shards) > 3
  for split in pieces_lib.SPLITS:
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


def test_another_tokenizer_is_refused(prepared, tmp_path):
  root, _, text = prepared
  assert loading.load(str(root / 'data'), 'byte').metadata == text.metadata
  with pytest.raises(ValueError, match='holds tokens of byte, not of gpt2'):
    loading.load(str(root / 'data'), 'gpt2')
  for name in ('byte', 'gpt2'):
    pathlib.Path(builder.folder(str(tmp_path), name)).mkdir(parents=True)
  with pytest.raises(ValueError, match='say which'):
    loading.load(str(tmp_path))


def test_damaged_tokens_are_an_error(prepared, tmp_path):
  root, _, _ = prepared
  shutil.copytree(root / 'data', tmp_path, dirs_exist_ok=True)
  (shard,) = tmp_path.rglob('*train*')
  contents = bytearray(shard.read_bytes())
  contents[len(contents) // 4 : len(contents) // 2] = b'x' * 9
  shard.write_bytes(contents)
  stream = loading.load(str(tmp_path)).streams['train']
  with pytest.raises(OSError, match='Cannot read the tokens'):
    stream.read([0], len(stream))
  shard.unlink()
  with pytest.raises(OSError, match=r'train.* is missing'):
    loading.load(str(tmp_path))


@pytest.mark.parametrize('contents', [None, b'', b'{}', b'[]', b'{"', b'\xff'])
@pytest.mark.parametrize(
  'name', ['dataset_info.json', 'features.json', 'metadata.json']
)
def test_damaged_descriptions_are_an_error(name, contents, prepared, tmp_path):
  root, _, _ = prepared
  shutil.copytree(root / 'data', tmp_path, dirs_exist_ok=True)
  path = pathlib.Path(builder.folder(str(tmp_path), 'byte'), name)
  path.unlink()
  if contents is not None:
    path.write_bytes(contents)
  with pytest.raises(OSError, match='text_tokens'):
    loading.load(str(tmp_path))


@pytest.mark.parametrize('number', [10**9, 1, -1, None, '18001', 1.5, 10**30])
@pytest.mark.parametrize('split', pieces_lib.SPLITS)
def test_counts_that_do_not_fit_are_an_error(split, number, prepared, tmp_path):
  root, _, _ = prepared
  shutil.copytree(root / 'data', tmp_path, dirs_exist_ok=True)
  path = pathlib.Path(builder.folder(str(tmp_path), 'byte'), 'metadata.json')
  contents = json.loads(path.read_text())
  contents['num_tokens'][split] = number
  path.write_text(json.dumps(contents))
  with pytest.raises(OSError, match='records are not of'):
    loading.load(str(tmp_path))


def test_fingerprint_tells_where_splits_end(tmp_path):
  """The tokens of all splits one after another are the same twice."""
  heldouts = (0.2, 0.3)
  wanted = [
    ('train', 'train'),
    ('train', 'validation'),
    ('validation', 'validation'),
    ('test', 'test'),
  ]
  by_splits = {
    tuple(pieces_lib.split_of(t, h) for h in heldouts): t
    for t in map(str, range(10_000, 10_500))
  }
  lines = [json.dumps({'text': by_splits[splits]}) for splits in wanted]
  (tmp_path / 'raw.jsonl').write_text('\n'.join(lines))
  joined, fingerprints = set(), set()
  for heldout in heldouts:
    text = preparation.prepare(
      str(tmp_path / 'raw.jsonl'),
      str(tmp_path / str(heldout)),
      tokenizer_name='byte',
      heldout=heldout,
      num_workers=1,
    )
    streams = [text.streams[split] for split in pieces_lib.SPLITS]
    tokens = [stream.read([0], len(stream))[0, 1:] for stream in streams]
    joined.add(np.concatenate(tokens).tobytes())
    fingerprints.add(text.metadata['fingerprint'])
  assert len(joined) == 1 and len(fingerprints) == 2


@pytest.mark.parametrize(
  ('limit', 'folder'), [(9_000, '.pieces-byte'), (150_000, 'text_tokens')]
)
def test_no_space_left_is_one_error_and_can_go_on(limit, folder, tmp_path):
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


def test_pieces_of_a_stopped_preparation_are_used(prepared, tmp_path):
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


def test_fingerprint_changes_with_a_letter(tmp_path):
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


def test_a_changed_file_is_read_again(tmp_path):
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


def test_split_depends_on_the_text_alone_and_has_its_share():
  texts = [str(i) for i in range(20_000)]
  splits = [pieces_lib.split_of(t, 0.1) for t in texts]
  for split, share in (('train', 0.8), ('validation', 0.1), ('test', 0.1)):
    found = splits.count(split) / len(texts)
    error = np.sqrt(share * (1 - share) / len(texts))
    assert abs(found - share) < 4 * error
  larger = [pieces_lib.split_of(t, 0.2) for t in texts]
  for before, after in itertools.islice(zip(splits, larger, strict=True), 500):
    assert after == 'test' or before != 'test'


@pytest.mark.parametrize(
  ('contents', 'kwargs', 'message'),
  [
    ('{"text": "only one"}', {}, 'None of the 1 documents'),
    ('\n\n', {}, 'no text'),
    ('{"text": "a"}', {'heldout': 0.5}, 'heldout'),
    ('{"text": "a"}', {'num_workers': -1}, 'num_workers'),
    ('{"text": "a"}', {'tokenizer_name': 'words'}, 'byte, gpt2'),
  ],
)
def test_what_cannot_be_prepared(contents, kwargs, message, tmp_path):
  (tmp_path / 'a.jsonl').write_text(contents)
  kwargs = {'tokenizer_name': 'byte', 'num_workers': 1, **kwargs}
  data_dir = tmp_path / 'data'
  with pytest.raises(ValueError, match=message):
    preparation.prepare(str(tmp_path / '*.jsonl'), str(data_dir), **kwargs)
  assert not (data_dir / 'text_tokens').exists()


def test_two_at_once_are_refused(tmp_path):
  raw, data_dir = tmp_path / 'raw', tmp_path / 'data'
  raw.mkdir()
  (raw / 'a.txt').write_text('text')
  with (
    locks.locked(str(data_dir)),
    pytest.raises(OSError, match='Another process is using'),
  ):
    _prepare(raw, data_dir)
