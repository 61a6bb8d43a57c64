"""Texts of few documents, from files to what is read back."""

import gzip
import json

import numpy as np
import pytest

from experiments.text import documents, pieces, preparation, splits
from tests.experiments.text import workers


@pytest.fixture(autouse=True)
def in_process():
  with workers.in_thread():
    yield


@pytest.fixture
def small(monkeypatch):
  """Blocks of 4,000 bytes, and texts as documents of 1,000."""
  monkeypatch.setattr(documents, '_BLOCK_BYTES', 4000)
  monkeypatch.setattr(documents, '_TXT_DOCUMENT_BYTES', 1000)


def _letters(number):
  """Returns letters, other ones for every number."""
  rng = np.random.default_rng(number)
  return bytes(rng.integers(97, 123, number, np.uint8)).decode()


def _prepare(folder, **kwargs):
  """Prepares files; returns the text, and all that is in each split."""
  text = preparation.prepare(
    str(folder / 'a*'), str(folder / 'data'), 'byte', **kwargs
  )
  parts = []
  for split in splits.SPLITS:
    stream = text.streams[split]
    tokens = stream.read([0], len(stream))[0]
    parts.append(bytes(tokens[tokens < 256].tolist()).decode())
  return text, parts


@pytest.mark.parametrize('suffix', ['.txt', '.jsonl'])
def test_one_text_is_cut_in_three(suffix, tmp_path, small):
  contents = _letters(20_000)
  lines = contents if suffix == '.txt' else json.dumps({'text': contents})
  (tmp_path / f'a{suffix}').write_text('\ufeff' + lines)
  text, parts = _prepare(tmp_path, heldout=0.1)
  assert ''.join(parts) == contents
  assert [len(part) for part in parts] == [16_000, 2000, 2000]
  assert text.metadata['splits'] == 'cut'


@pytest.mark.parametrize('sizes', [(100, 20_000, 900), (7000, 6999)])
def test_a_few_texts_are_cut_as_one_and_copies_left_out(sizes, tmp_path, small):
  contents = [_letters(size) for size in sizes]
  for i, part in enumerate([*contents, *contents]):
    (tmp_path / f'a{i}.txt').write_text(part)
  text, parts = _prepare(tmp_path, heldout=0.05)
  assert ''.join(parts) == ''.join(contents)
  share = sum(sizes) // 20
  assert [len(part) for part in parts[1:]] == [share, share]
  assert text.metadata['num_copies'] >= len(sizes)


def test_few_records_are_cut_and_those_without_text_skipped(tmp_path):
  texts = [_letters(500 + i) for i in range(60)]
  lines = [json.dumps({'body': text}) for text in texts]
  lines[7:7] = ['{"body": null}', '{"text": "a"}', lines[2]]
  with gzip.open(tmp_path / 'a.jsonl.gz', 'wt') as f:
    f.write('\n'.join(lines))
  text, parts = _prepare(tmp_path, key='body')
  assert ''.join(parts) == ''.join(texts)
  assert text.metadata['num_skipped'] == 2
  _, *rows, how, copies, skipped = preparation.summary(text).splitlines()
  assert [row.split()[0] for row in rows] == list(splits.SPLITS)
  shares = [float(row.split()[-1].removesuffix('%')) for row in rows]
  assert shares == pytest.approx([98, 1, 1], abs=0.1)
  assert how.startswith('splits: the text is cut')
  assert copies == 'left out: 1 documents that are copies of others'
  assert skipped == 'skipped: 2 records have no "body", or an empty one'
  assert _prepare(tmp_path, key='body')[0].metadata == text.metadata
  with pytest.raises(ValueError, match='or of another --heldout or --key'):
    _prepare(tmp_path)


def test_pieces_of_a_cut_depend_on_the_other_files(tmp_path):
  """One is written anew after a kill, and the bounds are the same."""
  paths = [str(tmp_path / name) for name in ('a.txt', 'b.txt')]
  source = pieces.Source(paths, ('byte', ''), documents.KEY, 0.1)
  (tmp_path / 'a.txt').write_text('a' * 100)
  found = []
  for later in ('b' * 11, 'c' * 15):
    (tmp_path / 'b.txt').write_text(later)
    made, rule = pieces.make_pieces(source, str(tmp_path / 'work'), 1)
    assert rule.bounds == (11, 22)
    found.append(
      [
        bytes(tokens[:-1].tolist()).decode()
        for tokens in pieces.read(made, 'validation')
      ]
    )
  assert found == [['a' * 11, ''], ['a' * 7, 'c' * 4]]
