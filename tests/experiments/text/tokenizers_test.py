import os

import hypothesis
from hypothesis import strategies as st
import numpy as np
import pytest

from experiments.text import documents, tokenizers

# Text that UTF-8 can hold, with what looks like a special token.
_TEXTS = st.lists(
  st.sampled_from([tokenizers.END_OF_TEXT, '\n\n', ' the'])
  | st.text(st.characters(exclude_categories=['Cs']))
).map(''.join)


@pytest.fixture(params=sorted(tokenizers.TOKENIZERS))
def tokenizer(request):
  if request.param == 'gpt2' and tokenizers.default_name() != 'gpt2':
    pytest.skip("GPT-2's vocabulary is not on this machine")
  return tokenizers.make_tokenizer(request.param)


@hypothesis.settings(
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(text=_TEXTS)
def test_round_trip_in_vocabulary_without_end_of_text(tokenizer, text):
  tokens = tokenizer.encode(text)
  assert tokens.dtype == tokenizers.TOKEN_DTYPE
  assert (tokens < tokenizer.vocab_size).all()
  assert tokenizer.end_of_text not in tokens
  assert tokenizer.decode(tokens) == text


def test_end_of_text_is_read_between_documents(tokenizer):
  tokens = [*tokenizer.encode('a é'), tokenizer.end_of_text]
  assert tokenizer.decode([*tokens, *tokens]) == 2 * 'a é<|endoftext|>'


def test_tokens_fit_into_their_type(tokenizer):
  assert tokenizer.vocab_size - 1 <= np.iinfo(tokenizers.TOKEN_DTYPE).max
  assert 0 <= tokenizer.end_of_text < tokenizer.vocab_size


def test_bytes_are_utf8_and_halves_of_characters_decode():
  tokenizer = tokenizers.make_tokenizer('byte')
  assert tokenizer.encode('aé').tolist() == list('aé'.encode())
  assert tokenizer.decode(np.array([97, 0xC3])) == 'a\ufffd'


def test_gpt2_is_openais():
  if tokenizers.default_name() != 'gpt2':
    pytest.skip("GPT-2's vocabulary is not on this machine")
  tokenizer = tokenizers.make_tokenizer('gpt2')
  assert (tokenizer.vocab_size, tokenizer.end_of_text) == (50257, 50256)
  assert tokenizer.encode('Hello world').tolist() == [15496, 995]


def test_default_is_byte_without_a_vocabulary(tmp_path, monkeypatch):
  # Asked for, it must be there.
  assert tokenizers.default_name(str(tmp_path)) == 'gpt2'
  monkeypatch.setenv('TIKTOKEN_CACHE_DIR', str(tmp_path))
  assert tokenizers.default_name() == 'byte'


def test_what_is_not_gpt2s_vocabulary_is_refused(tmp_path, monkeypatch):
  monkeypatch.setenv('TIKTOKEN_CACHE_DIR', str(tmp_path / 'cache'))
  with pytest.raises(OSError, match=r'vocab\.bpe'):
    tokenizers.make_tokenizer('gpt2', str(tmp_path))
  (tmp_path / 'vocab.bpe').write_text('#version: 0.2\na b\n')
  (tmp_path / 'encoder.json').write_text('{}')
  with pytest.raises(ValueError, match=r'vocab\.bpe'):
    tokenizers.make_tokenizer('gpt2', str(tmp_path))


def test_unknown_tokenizer():
  with pytest.raises(ValueError, match='byte, gpt2'):
    tokenizers.make_tokenizer('word')


@pytest.mark.skipif(
  'TEXT_CORPUS' not in os.environ, reason='TEXT_CORPUS names no file'
)
def test_round_trip_on_a_corpus(tokenizer):
  number = 0
  for block in documents.blocks(os.environ['TEXT_CORPUS']):
    for document in documents.documents(block):
      assert tokenizer.decode(tokenizer.encode(document)) == document
      number += 1
  assert number
