"""Whatever a file or a flag holds, it is read or refused in one line."""

import json

import hypothesis
from hypothesis import strategies as st
import pytest

from experiments.engine import clock, json_reading, metrics
from tests import refusals

_DEEP = '[' * 100_000 + ']' * 100_000
_BAD = {
  _DEEP: 'nested more than 64 deep',
  '{"a":' * 65 + '1' + '}' * 65: 'nested more than 64 deep',
  '[1e5, ' + '9' * 400 + ']': 'the number 999999999999... has more than 18',
  '{"a": 1, "a": 2}': "the key 'a' is given twice",
  '"\\uD800"': 'half a surrogate pair',
  '{"a": [': 'not JSON: Expecting value: line 1',
  '': 'not JSON',
}


@pytest.mark.parametrize('text', _BAD, ids=range(len(_BAD)))
def test_bad_json_is_refused_in_one_line(text):
  with refusals.one_line(_BAD[text]) as error:
    json_reading.parse(text)
  assert len(str(error.value)) < 200


@hypothesis.given(
  st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 10**18, 10**18 - 1)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
  )
)
def test_what_json_writes_is_read(value):
  assert json_reading.parse(json.dumps(value)) == value
  assert json_reading.parse(json.dumps([value], ensure_ascii=False)) == [value]


def test_files(tmp_path):
  path = tmp_path / 'file.json'
  path.write_text('{"a": [NaN, "\\ud83d\\ude00"]}')
  assert json_reading.read(path)['a'][1] == '\U0001f600'
  path.write_bytes(b'\xff\xfe')
  with pytest.raises(ValueError, match='not text in UTF-8'):
    json_reading.read(path)
  with pytest.raises(OSError, match='No such file'):
    json_reading.read(f'{path}.json')
  with pytest.raises(ValueError, match='larger than'):
    json_reading.read('/dev/zero')


def test_what_is_kept_in_a_workdir_may_be_anything(tmp_path, capsys):
  for text in (_DEEP, '{"seconds": ' + '9' * 400 + '}', '[]'):
    (tmp_path / 'wall_time.json').write_text(text)
    assert clock.seconds(str(tmp_path)) == 0
    assert 'damaged' in capsys.readouterr().err
  lines = ['{"step": 1, "run": 0}', _DEEP, '{"step": ' + '9' * 5000 + '}']
  (tmp_path / 'metrics.jsonl').write_text('\n'.join(lines))
  assert metrics.read(str(tmp_path)) == [{'step': 1, 'run': 0}]
