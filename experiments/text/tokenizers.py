"""Text to tokens and back.

Every vocabulary here fits into 16 bits, which is how tokens are stored.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
import hashlib
import os
import tempfile

import numpy as np

TOKEN_DTYPE = np.uint16
# How the end of a document reads in decoded text, as in GPT-2's vocabulary.
END_OF_TEXT = '<|endoftext|>'
_NUM_BYTES = 256

_GPT2_URL = 'https://openaipublic.blob.core.windows.net/gpt-2/encodings/main/'
# Names and SHA-256 of the files that tiktoken's own `gpt2` reads.
_GPT2_FILES = {
  'vocab.bpe': (
    '1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5'
  ),
  'encoder.json': (
    '196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783'
  ),
}


@dataclasses.dataclass(frozen=True)
class Tokenizer:
  """A way to write text as tokens.

  Attributes:
    name: Its key in `TOKENIZERS`, stored with the data.
    vocab_size: Tokens are 0..vocab_size - 1.
    end_of_text: The token that follows every document; `encode` never
      returns it.
    encode: Any valid text to tokens, `TOKEN_DTYPE` [N].
    decode: Tokens to text; `decode(encode(text)) == text`. Bytes that are not
      valid UTF-8, as a model may write them, become U+FFFD.
  """

  name: str
  vocab_size: int
  end_of_text: int
  encode: Callable[[str], np.ndarray]
  decode: Callable[[Sequence[int]], str]


def _make_byte(vocabulary_dir: str) -> Tokenizer:
  """The 256 bytes of UTF-8 and end-of-text."""
  if vocabulary_dir:
    raise ValueError('vocabulary_dir is for gpt2, not for byte.')
  pieces = [bytes([b]) for b in range(_NUM_BYTES)] + [END_OF_TEXT.encode()]

  def encode(text):
    return np.frombuffer(text.encode(), np.uint8).astype(TOKEN_DTYPE)

  def decode(tokens):
    return b''.join(pieces[t] for t in tokens).decode(errors='replace')

  return Tokenizer('byte', len(pieces), _NUM_BYTES, encode, decode)


def _make_gpt2(vocabulary_dir: str) -> Tokenizer:
  """GPT-2's byte pairs (Radford et al., 2019), computed by tiktoken."""
  import tiktoken  # Imported here: `byte` works without it.
  from tiktoken import load
  from tiktoken_ext import openai_public

  if vocabulary_dir:
    paths = {
      name: os.path.join(os.path.abspath(vocabulary_dir), name)
      for name in _GPT2_FILES
    }
    ranks = load.data_gym_to_mergeable_bpe_ranks(
      vocab_bpe_file=paths['vocab.bpe'],
      encoder_json_file=paths['encoder.json'],
      vocab_bpe_hash=_GPT2_FILES['vocab.bpe'],
      encoder_json_hash=_GPT2_FILES['encoder.json'],
    )
    encoding = tiktoken.Encoding(
      'gpt2',
      explicit_n_vocab=len(ranks) + 1,
      pat_str=openai_public.r50k_pat_str,
      mergeable_ranks=ranks,
      special_tokens={END_OF_TEXT: len(ranks)},
    )
  else:
    try:
      encoding = tiktoken.get_encoding('gpt2')
    except OSError as error:  # Those of `requests` too.
      raise OSError(
        "Cannot get GPT-2's vocabulary: it is not in tiktoken's cache folder"
        f' {_cache_dir()}, and no download works ({type(error).__name__}).'
        ' Give --vocabulary_dir, a folder with vocab.bpe and encoder.json, or'
        ' use --tokenizer=byte.'
      ) from error

  def encode(text):
    # What looks like a special token is text too.
    tokens = encoding.encode_to_numpy(text, disallowed_special=())
    return tokens.astype(TOKEN_DTYPE)

  def decode(tokens):
    return encoding.decode([int(t) for t in tokens])

  return Tokenizer('gpt2', encoding.n_vocab, encoding.eot_token, encode, decode)


TOKENIZERS = {'byte': _make_byte, 'gpt2': _make_gpt2}


@functools.cache
def make_tokenizer(name: str, vocabulary_dir: str = '') -> Tokenizer:
  """Returns a tokenizer.

  Args:
    name: A key of `TOKENIZERS`.
    vocabulary_dir: A folder with GPT-2's vocab.bpe and encoder.json; '' for
      tiktoken's cache folder, which is filled from the internet if need be.

  Raises:
    ValueError: If there is no such tokenizer, or a file is not GPT-2's.
    OSError: If the vocabulary cannot be had.
  """
  if name not in TOKENIZERS:
    raise ValueError(
      f'Unknown tokenizer {name!r}; one of {", ".join(sorted(TOKENIZERS))}.'
    )
  return TOKENIZERS[name](vocabulary_dir)


def default_name(vocabulary_dir: str = '') -> str:
  """Returns 'gpt2' where its vocabulary is on this machine, else 'byte'.

  Who names a folder means GPT-2: that it has the files is seen later.
  """
  if vocabulary_dir:
    return 'gpt2'
  paths = [
    os.path.join(
      _cache_dir(), hashlib.sha1((_GPT2_URL + name).encode()).hexdigest()
    )
    for name in _GPT2_FILES
  ]
  return 'gpt2' if all(os.path.exists(path) for path in paths) else 'byte'


def _cache_dir() -> str:
  """Where tiktoken keeps what it downloads, under the SHA-1 of its address."""
  for variable in ('TIKTOKEN_CACHE_DIR', 'DATA_GYM_CACHE_DIR'):
    if variable in os.environ:
      return os.environ[variable]
  return os.path.join(tempfile.gettempdir(), 'data-gym-cache')
