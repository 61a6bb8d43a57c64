"""Tests of the benchmark's second group of regular languages."""

import functools
import inspect
import itertools
import math
import re

import jax
import numpy as np
import pytest
from scipy import stats

from tasks.regular import d_n, repetition, tomita
from tests import slow
from tests.tasks import checks

BUILDERS = d_n.BUILDERS | tomita.BUILDERS | repetition.BUILDERS
# All tests share one compiled program a language and sampler.
WIDTH, BATCH_SIZE = 50, 4096


def in_d_n(text, n):
  depth = 0
  for symbol in text:
    depth += 1 if symbol == '0' else -1
    if not 0 <= depth <= n:
      return False
  return depth == 0


def in_tomita_3(text):
  runs = [(key, len(list(run))) for key, run in itertools.groupby(text)]
  return not any(
    a == '1' and m % 2 and n % 2 for (a, m), (_, n) in itertools.pairwise(runs)
  )


DEFINITIONS = {
  **{f'd_{n}': functools.partial(in_d_n, n=n) for n in (1, 2, 3, 4, 12)},
  'tomita_1': lambda text: '1' not in text,
  'tomita_2': lambda text: re.fullmatch('(10)*', text),
  'tomita_3': in_tomita_3,
  'tomita_4': lambda text: '000' not in text,
  'tomita_5': lambda text: (
    text.count('0') % 2 == 0 and text.count('1') % 2 == 0
  ),
  'tomita_6': lambda text: (text.count('1') - text.count('0')) % 3 == 0,
  'tomita_7': lambda text: re.fullmatch('0*1*0*1*', text),
  'aa': lambda text: len(text) % 2 == 0,
  'aaaa': lambda text: len(text) % 4 == 0,
  'abab': lambda text: re.fullmatch('(0101)*', text),
}
UNARY = ('aa', 'aaaa')
# Positives that the authors drew in a way of their own. The samplers of the
# other languages do the same.
OWN_POSITIVES = (
  *('d_1', 'd_2', 'd_3', 'd_4', 'd_12'),
  *('tomita_3', 'tomita_4', 'tomita_7'),
)
PROGRAMS = [
  *((name, 'paper') for name in DEFINITIONS),
  *((name, 'uniform') for name in OWN_POSITIVES),
]


def texts_of(tokens):
  digits = np.ascontiguousarray(tokens, np.uint8) + ord('0')
  return digits.view(f'S{tokens.shape[1]}')[:, 0].astype(str)


@functools.cache
def all_texts(name, length):
  symbols = '0' if name in UNARY else '01'
  return [''.join(s) for s in itertools.product(symbols, repeat=length)]


@functools.cache
def make(name, sampler):
  return BUILDERS[name](sampler=sampler)


def sample(name, sampler, seed, length, width=WIDTH, batch_size=BATCH_SIZE):
  """Returns strings [B, length] and answers."""
  task = make(name, sampler)
  tokens = checks.sample(task, seed, length, width, batch_size)
  return checks.unpadded(tokens, length), checks.solve(task, tokens)


def test_all_are_there_and_need_no_arguments():
  assert sorted(BUILDERS) == sorted(DEFINITIONS)
  for builder in BUILDERS.values():
    task = builder()
    assert (task.input_size, task.output_size) == (2, 2)
    assert inspect.getdoc(task).count('->') == 2


@pytest.mark.parametrize('name', DEFINITIONS)
def test_membership_of_all_short_strings(name):
  task, width = make(name, 'paper'), 14
  texts = [
    text for length in range(1, width + 1) for text in all_texts(name, length)
  ]
  strings = [tuple(map(int, text)) for text in texts]
  answers = checks.solve(task, checks.right_aligned(strings, width))
  expected = [bool(DEFINITIONS[name](text)) for text in texts]
  np.testing.assert_array_equal(answers, expected)


# d_12 differs from d_4 only on strings longer than those above.
@pytest.mark.parametrize('n', [4, 12])
def test_depth_is_bounded(n):
  task = make(f'd_{n}', 'paper')
  depths = range(1, 15)
  strings = [[0] * depth + [1, 0] * 2 + [1] * depth for depth in depths]
  answers = checks.solve(task, checks.right_aligned(strings, 32))
  expected = [depth <= n for depth in depths]
  np.testing.assert_array_equal(answers, expected)


_LIKE_OTHERS = (
  *('d_1', 'd_2', 'd_3', 'd_4', 'tomita_1', 'tomita_2', 'tomita_4'),
  *('tomita_5', 'aa', 'abab'),
)


@pytest.mark.parametrize(
  ('name', 'sampler'),
  slow.unless(lambda name, sampler: name not in _LIKE_OTHERS, PROGRAMS),
)
def test_classes_are_balanced_at_every_length(name, sampler):
  for length in (*range(1, 9), 11, 12, 48, 49):
    tokens, answers = sample(name, sampler, length, length)
    assert set(np.unique(tokens)) <= {0, 1}
    expected = [
      bool(DEFINITIONS[name](t)) for t in texts_of(tokens[:256]).tolist()
    ]
    np.testing.assert_array_equal(answers[:256], expected)
    if length <= 12:
      classes = {bool(DEFINITIONS[name](t)) for t in all_texts(name, length)}
      share = 0.5 if len(classes) == 2 else float(classes.pop())
    elif name in UNARY or (length % 2 and name[0] == 'd'):
      share = float(bool(DEFINITIONS[name]('0' * length)))
    elif name in ('abab', 'tomita_2', 'tomita_5'):
      # Both numbers are even only in strings of an even length.
      share = 0.5 if length % (4 if name == 'abab' else 2) == 0 else 0.0
    else:
      share = 0.5
    atol = 0.0
    # Where the authors' classes are not as balanced as they could be.
    if (name, sampler, length) == ('tomita_7', 'paper', 4):
      share = 1.0
    if (name, sampler) == ('tomita_1', 'paper'):
      share, atol = 0.5 + 0.5 ** (length + 1), 0.02 * 0.5 ** (length / 2)
    np.testing.assert_allclose(np.mean(answers), share, rtol=0, atol=atol)
    assert 0 < share < 1 or len(set(answers)) == 1


@pytest.mark.parametrize(
  ('name', 'sampler'),
  slow.unless(
    lambda name, sampler: name not in _LIKE_OTHERS,
    [*((n, 'paper') for n in OWN_POSITIVES), PROGRAMS[-1]],
  ),
)
def test_strings_do_not_depend_on_the_width(name, sampler):
  for length in (1, 7, 12):
    wide, _ = sample(name, sampler, 3, length)
    narrow, _ = sample(name, sampler, 3, length, width=12)
    np.testing.assert_array_equal(narrow, wide)


def test_strings_do_not_depend_on_what_is_sampled_beside_them():
  # The one sampler with a loop that ends when all its strings are done.
  task = make('tomita_3', 'paper')
  keys = jax.random.split(jax.random.key(0), 4)

  def sample_one(key):
    return task.sample_tokens(key, 8, 20, 20)

  together = jax.jit(jax.vmap(sample_one))(keys)
  alone = [jax.jit(sample_one)(key) for key in keys]
  np.testing.assert_array_equal(together, alone)


# Probabilities of the authors' positives, from their description.


def d_n_probabilities(n, length):
  """Probability of each string, by recursion over the first inner string."""
  if n == 0 or length == 0:
    return {'': 1.0}
  most = length - 2
  result = {}
  for inner, p in inner_lengths(most).items():
    for first, q in d_n_probabilities(n - 1, inner).items():
      first = f'0{first}1'
      for rest, r in d_n_probabilities(n, length - len(first)).items():
        result[first + rest] = result.get(first + rest, 0.0) + p * q * r
  return result


def inner_lengths(most):
  if most == 0:
    return {0: 1.0}
  # Rounded down to even, at most `most`.
  cdf = stats.norm(0.75 * most, 0.075 * most).cdf
  result = {k: cdf(k + 2) - cdf(k) for k in range(0, most, 2)}
  result[most] = 1 - cdf(most)
  return result


def tomita_3_probabilities(length):
  """Follows all tosses; one that appends nothing changes nothing."""
  result = {}
  pending = {('', 0): 1.0}
  while pending:
    (text, ones), p = pending.popitem()
    room = length - len(text)
    if room == 0:
      result[text] = result.get(text, 0.0) + p
      continue
    moves = {'1': range(room + 1), '0': range(0, room + 1, 1 + ones % 2)}
    chance = {
      (symbol, count): 0.5 / len(counts)
      for symbol, counts in moves.items()
      for count in counts
    }
    moving = sum(q for (_, count), q in chance.items() if count)
    for (symbol, count), q in chance.items():
      if count:
        behind = text + symbol * count
        if symbol == '1':
          after = count + (0 if text.endswith('0') else ones)
        else:
          after = ones
        key = behind, after
        pending[key] = pending.get(key, 0.0) + p * q / moving
  return result


def tomita_4_probabilities(length):
  result = {}
  for text in all_texts('tomita_4', length):
    if '000' not in text:
      # Behind two 0s there is no choice.
      forced = sum(text[i : i + 2] == '00' for i in range(length - 2))
      result[text] = 0.5 ** (length - forced)
  return result


def tomita_7_probabilities(length):
  result = {}
  for first in range(length + 1):
    for second in range(length - first + 1):
      for third in range(length - first - second + 1):
        text = '0' * first + '1' * second + '0' * third
        text = text.ljust(length, '1')
        room = length - first
        p = 1 / ((length + 1) * (room + 1) * (room - second + 1))
        result[text] = result.get(text, 0.0) + p
  return result


PAPER = {
  **{
    f'd_{n}': functools.partial(d_n_probabilities, n) for n in (1, 2, 3, 4, 12)
  },
  'tomita_3': tomita_3_probabilities,
  'tomita_4': tomita_4_probabilities,
  'tomita_7': tomita_7_probabilities,
}


def positives_and_negatives(name, sampler, length):
  batches = [sample(name, sampler, seed, length) for seed in range(4)]
  tokens, answers = (np.concatenate(x) for x in zip(*batches, strict=True))
  texts = texts_of(tokens)
  return texts[answers == 1].tolist(), texts[answers == 0].tolist()


@pytest.mark.parametrize(
  'name', slow.unless(lambda name: name not in _LIKE_OTHERS, DEFINITIONS)
)
def test_paper_strings_are_as_the_authors_drew_them(name):
  for length in (7, 8) if name not in PAPER else (6, 7, 12):
    members, others = [], []
    for text in all_texts(name, length):
      (members if DEFINITIONS[name](text) else others).append(text)
    positives, negatives = positives_and_negatives(name, 'paper', length)
    if members:
      # Else, uniform strings that were rejected if not in the language, or the
      # one string that there is.
      probabilities = (
        PAPER[name](length) if name in PAPER else checks.uniform_over(members)
      )
      assert set(probabilities) <= set(members)
      checks.assert_fits(positives, probabilities)
    if others and length <= 8:
      checks.assert_fits(negatives, checks.uniform_over(others))


@pytest.mark.parametrize('name', OWN_POSITIVES)
def test_uniform_strings_are_uniform(name):
  length = 8
  classes = positives_and_negatives(name, 'uniform', length)
  for texts, answer in zip(classes, (True, False), strict=True):
    expected = [
      text
      for text in all_texts(name, length)
      if bool(DEFINITIONS[name](text)) == answer
    ]
    assert bool(texts) == bool(expected)
    if texts:
      checks.assert_fits(texts, checks.uniform_over(expected))


# D_1 has one string of a length.
@pytest.mark.parametrize('name', OWN_POSITIVES[1:])
def test_samplers_differ_where_the_authors_were_not_uniform(name):
  positives, _ = positives_and_negatives(name, 'uniform', 12)
  probabilities = PAPER[name](12)
  is_drawn_by_authors = set(positives) <= set(probabilities)
  assert (
    not is_drawn_by_authors or checks.p_value(positives, probabilities) < 1e-6
  )


@pytest.mark.parametrize(
  ('name', 'sampler'),
  [
    ('d_12', 'paper'),
    ('tomita_3', 'paper'),
    ('tomita_4', 'uniform'),
    ('tomita_5', 'uniform'),
  ],
)
def test_long_strings(name, sampler):
  for length in (500, 10_000):
    tokens, answers = sample(name, sampler, 0, length, 10_000, 16)
    assert np.mean(answers) == 0.5
    expected = [
      bool(DEFINITIONS[name](text)) for text in texts_of(tokens).tolist()
    ]
    np.testing.assert_array_equal(answers, expected)


def test_long_inner_strings_fill_three_quarters():
  # Longer than what the tests above can enumerate.
  tokens, answers = sample('d_12', 'paper', 0, WIDTH)
  ends = []
  for row in tokens[answers == 1]:
    depth = np.cumsum(1 - 2 * row)
    ends.append(np.argmax(depth == 0) + 1)
  expected = inner_lengths(WIDTH - 2)
  inner = [end - 2 for end in ends]
  mean = sum(k * p for k, p in expected.items())
  deviation = math.sqrt(sum((k - mean) ** 2 * p for k, p in expected.items()))
  assert abs(np.mean(inner) - mean) < 4 * deviation / math.sqrt(len(inner))
  assert abs(np.std(inner) / deviation - 1) < 0.15


def test_bad_arguments():
  for builder in BUILDERS.values():
    with pytest.raises(ValueError, match='paper, uniform, got'):
      builder(sampler='other')
  with pytest.raises(ValueError, match='from 1 to 10000, got 0'):
    d_n.DN(0)
