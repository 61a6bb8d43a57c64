"""Which part of a text is for training, for validation, for the test.

Where documents are many, the hash of each says its split, whatever others there
are. Where they are few, or so unlike in length that the splits would be far
from what was asked for, the text is cut, in its own order.
"""

from collections.abc import Iterator
import dataclasses
import hashlib

import numpy as np

SPLITS = ('train', 'validation', 'test')
# So many documents are expected in a split that is held out, or they are few.
_MANY = 5
# So many times what was asked for, or so small a part of it, is far from it.
_FAR = 2
COPY = -1  # In place of where a document is.


@dataclasses.dataclass(frozen=True)
class Rule:
  """How a text is split.

  Attributes:
    kind: A key of `RULES`.
    bounds: Of the test and the validation split, both from below: hashes of
      documents, from 0 to 1, or characters, counted from the end of the text.
  """

  kind: str
  bounds: tuple[float, float]


# What a person is told of them.
RULES = {
  'hash': 'the hash of a document says its split',
  'cut': 'the text is cut: its beginning, what follows, and its end',
}


def by_hash(heldout: float) -> Rule:
  """Returns the rule for many documents.

  Args:
    heldout: Fraction of the text in the validation split, and in the test
      split.
  """
  return Rule('hash', (heldout, 2 * heldout))


def hash_serves(counts: np.ndarray, heldout: float) -> bool:
  """Returns whether the rule of `by_hash` gives about what was asked for.

  Args:
    counts: Of documents and of tokens, in each of `SPLITS`, by that rule;
      [3, 2].
    heldout: See `by_hash`.
  """
  num_documents, num_tokens = counts.sum(0)
  shares = counts[1:, 1] / num_tokens
  return bool(
    heldout * num_documents >= _MANY
    and (heldout / _FAR <= shares).all()
    and (shares <= heldout * _FAR).all()
  )


def by_cut(
  places: np.ndarray, lengths: np.ndarray, heldout: float
) -> tuple[Rule, np.ndarray]:
  """Returns the rule for other documents, and where each of them is.

  Args:
    places: See `place_of`; [D].
    lengths: Of the documents, in characters; [D].
    heldout: Fraction in the validation split, and in the test split.

  Returns:
    The rule, and the characters from each document's beginning to the end of
    the text [D]. A document that was there before is `COPY` and counts nothing:
    it would be in two splits.

  Raises:
    ValueError: If there are fewer characters than splits.
  """
  is_new = np.zeros(len(places), bool)
  is_new[np.unique(places, return_index=True)[1]] = True
  before_end = np.cumsum((lengths * is_new)[::-1])[::-1]
  number = int(before_end[0])
  if number < len(SPLITS):
    raise ValueError(
      f'A text of {number} characters cannot be cut into {", ".join(SPLITS)};'
      ' give more.'
    )
  share = max(1, int(heldout * number))
  rule = Rule('cut', (share, 2 * share))
  return rule, np.where(is_new, before_end, COPY)


def place_of(document: str) -> float:
  """Returns a document's hash, from 0 to 1."""
  digest = hashlib.blake2b(document.encode(), digest_size=8).digest()
  return int.from_bytes(digest, 'big') / 2**64


def parts(document: str, where: float, rule: Rule) -> Iterator[tuple[str, str]]:
  """Yields the parts of a document, each with its split.

  Args:
    document: The document.
    where: It is: its `place_of`, or, for a cut, what `by_cut` returned.
    rule: Of the text.
  """
  test, validation = rule.bounds
  if rule.kind == 'hash':
    held_out = 'validation' if where < validation else 'train'
    yield 'test' if where < test else held_out, document
  elif where != COPY:
    cuts = [0, where - validation, where - test, len(document)]
    cuts = np.clip(cuts, 0, len(document)).tolist()
    for split, start, stop in zip(SPLITS, cuts[:-1], cuts[1:], strict=True):
      if start < stop:
        yield split, document[start:stop]
