"""Which part of a text is for training, for validation, for the test.

Where documents are many, the hash of each says its split, whatever others there
are. Where they are few, the hashes say their order, and each split gets its
share of them: the bounds between the splits move, little where documents are
added. A text that is no documents is cut, in its own order.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import hashlib

import numpy as np

SPLITS = ('train', 'validation', 'test')
# So many documents are expected in a split that is held out, or they are few.
_MANY = 5
# Fewer documents than splits are no documents.
_MIN_DOCUMENTS = len(SPLITS)


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
  'rank': 'documents are few: each split gets its share of them, by their hash',
  'cut': 'the text is cut: its beginning, what follows, and its end',
}


def by_hash(heldout: float) -> Rule:
  """Returns the rule for many documents.

  Args:
    heldout: Fraction of the documents in the validation split, and in the test
      split.
  """
  return Rule('hash', (heldout, 2 * heldout))


def are_few(num_documents: Sequence[int], heldout: float) -> bool:
  """Returns whether documents are too few for the rule of `by_hash`.

  Args:
    num_documents: In each of `SPLITS`, by that rule.
    heldout: See `by_hash`.
  """
  return heldout * sum(num_documents) < _MANY or not all(num_documents)


def of_few(
  places: np.ndarray, lengths: np.ndarray, heldout: float, is_txt: bool
) -> Rule:
  """Returns the rule for few documents.

  Args:
    places: See `place_of`; [D].
    lengths: Of the documents, in characters; [D].
    heldout: Fraction in the validation split, and in the test split.
    is_txt: Whether they are the parts of one text.

  Raises:
    ValueError: If there are fewer characters than splits.
  """
  places = np.unique(places)  # Copies of one document are all in one split.
  if is_txt or len(places) < _MIN_DOCUMENTS:
    number = int(lengths.sum())
    if number < len(SPLITS):
      raise ValueError(
        f'A text of {number} characters cannot be cut into'
        f' {", ".join(SPLITS)}; give more.'
      )
    share = max(1, int(heldout * number))
    return Rule('cut', (share, 2 * share))
  share = max(1, int(heldout * len(places)))
  return Rule('rank', (float(places[share]), float(places[2 * share])))


def place_of(document: str) -> float:
  """Returns a document's hash, from 0 to 1."""
  digest = hashlib.blake2b(document.encode(), digest_size=8).digest()
  return int.from_bytes(digest, 'big') / 2**64


def parts(
  document: str, place: float, before_end: int, rule: Rule
) -> Iterator[tuple[str, str]]:
  """Yields the parts of a document, each with its split.

  Args:
    document: The document.
    place: See `place_of`.
    before_end: Characters from its beginning to the end of the text.
    rule: Of the text.
  """
  test, validation = rule.bounds
  if rule.kind != 'cut':
    held_out = 'validation' if place < validation else 'train'
    yield 'test' if place < test else held_out, document
    return
  cuts = [0, before_end - validation, before_end - test, len(document)]
  cuts = np.clip(cuts, 0, len(document)).tolist()
  for split, start, stop in zip(SPLITS, cuts[:-1], cuts[1:], strict=True):
    if start < stop:
      yield split, document[start:stop]
