"""What is stored of a prepared text, damaged, changed, or of a stranger."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

from experiments.text import builder, loading, preparation, splits
from tests.experiments.text import workers


def _prepare(data_dir):
  with workers.in_thread():
    return preparation.prepare(
      str(data_dir.parent / '*.jsonl'), str(data_dir), 'byte', heldout=0.2
    )


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
  root = tmp_path_factory.mktemp('text')
  letters = np.random.default_rng(0).integers(97, 123, (60, 900), np.uint8)
  lines = [json.dumps({'text': bytes(row).decode()}) for row in letters]
  (root / 'raw.jsonl').write_text('\n'.join(lines))
  return root / 'data', _prepare(root / 'data')


def test_another_tokenizer_is_refused(prepared, tmp_path):
  data_dir, text = prepared
  assert loading.load(str(data_dir), 'byte').metadata == text.metadata
  with pytest.raises(ValueError, match='holds tokens of byte, not of gpt2'):
    loading.load(str(data_dir), 'gpt2')
  for name in ('byte', 'gpt2'):
    pathlib.Path(builder.folder(str(tmp_path), name)).mkdir(parents=True)
  with pytest.raises(ValueError, match='say which'):
    loading.load(str(tmp_path))


def test_damaged_tokens_are_an_error(prepared, tmp_path):
  data_dir, _ = prepared
  shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
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
  data_dir, _ = prepared
  shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
  path = pathlib.Path(builder.folder(str(tmp_path), 'byte'), name)
  path.unlink()
  if contents is not None:
    path.write_bytes(contents)
  with pytest.raises(OSError, match='text_tokens'):
    loading.load(str(tmp_path))


def _change(data_dir, name, change):
  """Changes a description of a dataset."""
  path = pathlib.Path(builder.folder(str(data_dir), 'byte'), name)
  contents = json.loads(path.read_text())
  change(contents)
  path.write_text(json.dumps(contents))


_CODE = 'code_of_a_stranger'


@pytest.mark.parametrize(
  ('name', 'change'),
  [
    ('features.json', lambda x: x.update(pythonClassName=f'{_CODE}.A')),
    ('features.json', lambda x: x.update(python_class_name=f'{_CODE}.A')),
    ('features.json', lambda x: x.update(type=f'{_CODE}.A')),
    (
      'features.json',
      lambda x: x['featuresDict']['features']['tokens'].update(
        pythonClassName=f'{_CODE}.A'
      ),
    ),
    ('dataset_info.json', lambda x: x.update(moduleName=_CODE)),
    (
      'dataset_info.json',
      lambda x: x.update(features={'pythonClassName': f'{_CODE}.A'}),
    ),
  ],
)
def test_no_code_that_a_folder_names_is_run(
  name, change, prepared, tmp_path, monkeypatch
):
  data_dir, text = prepared
  shutil.copytree(data_dir, tmp_path / 'data')
  _change(tmp_path / 'data', name, change)
  (tmp_path / f'{_CODE}.py').write_text('')
  monkeypatch.syspath_prepend(tmp_path)
  if name == 'features.json':
    with pytest.raises(OSError, match=r'features\.json is not as prepare_text'):
      loading.load(str(tmp_path / 'data'))
  else:
    assert loading.load(str(tmp_path / 'data')).metadata == text.metadata
  assert _CODE not in sys.modules


def test_a_prepared_text_is_left_alone(prepared):
  data_dir, text = prepared
  assert loading.load(str(data_dir)).metadata == text.metadata
  assert _prepare(data_dir).metadata == text.metadata


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    (lambda x: x.pop('key'), 'has no key'),
    (lambda x: x.update(splits='rank'), "its splits are 'rank'"),
  ],
)
def test_other_metadata_are_an_error(change, message, prepared, tmp_path):
  data_dir, _ = prepared
  shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
  _change(tmp_path, 'metadata.json', change)
  with pytest.raises(OSError, match=message):
    loading.load(str(tmp_path))


@pytest.mark.parametrize('number', [10**9, 1, -1, None, '18001', 1.5, 10**30])
@pytest.mark.parametrize('split', splits.SPLITS)
def test_counts_that_do_not_fit_are_an_error(split, number, prepared, tmp_path):
  data_dir, _ = prepared
  shutil.copytree(data_dir, tmp_path, dirs_exist_ok=True)
  _change(
    tmp_path, 'metadata.json', lambda x: x['num_tokens'].update({split: number})
  )
  with pytest.raises(OSError, match='records are not of'):
    loading.load(str(tmp_path))
