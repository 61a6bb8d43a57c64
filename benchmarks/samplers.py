"""Samplers against plain Python, and against a training step.

python -m benchmarks.samplers
"""

from collections.abc import Callable
import functools
import itertools
import random
import re

from absl import flags
import jax

from benchmarks import timing
from experiments.engine import selection
from experiments.formal import config, registries

_LENGTHS = flags.DEFINE_list('lengths', ['40', '500'], 'Lengths of strings.')
_BATCH_SIZE = flags.DEFINE_integer('batch_size', 128, 'Strings per batch.')
_TASKS = flags.DEFINE_list(
  'tasks', None, 'Tasks to time; by default all with a plain sampler here.'
)
# Batches drawn by one call of the compiled program, as in a training loop.
_BATCHES_PER_CALL = 20


def _bits(length):
  return [random.randrange(2) for _ in range(length)]


def _digits_and_operators(length):
  symbols = [
    random.randrange(5) if i % 2 == 0 else random.randrange(5, 8)
    for i in range(length - (length + 1) % 2)
  ]
  text = ''.join('01234+-*'[s] for s in symbols)
  return symbols, eval(text) % 5


def _cycle(length):
  steps = [random.randrange(3) for _ in range(length)]
  return steps, (sum(steps) - length) % 5


def _parity(length):
  bits = _bits(length)
  return bits, sum(bits) % 2


def _even_pairs(length):
  bits = _bits(length)
  return bits, sum(a != b for a, b in itertools.pairwise(bits)) % 2


_S3 = list(itertools.permutations(range(3)))


def _words(length):
  word = [random.randrange(6) for _ in range(length)]
  things = (0, 1, 2)
  for symbol in word:
    things = tuple(_S3[symbol][place] for place in things)
  return word, _S3.index(things)


def _reverse(length):
  bits = _bits(length)
  return bits, bits[::-1]


def _duplicate(length):
  bits = _bits(length)
  return bits, bits + bits


def _odds_first(length):
  bits = _bits(length)
  return bits, bits[1::2] + bits[0::2]


def _sort(length):
  symbols = [random.randrange(5) for _ in range(length)]
  return symbols, sorted(symbols)


def _missing(length):
  half = _bits(max(1, length // 2))
  place = random.randrange(2 * len(half))
  symbols = half + half
  answer, symbols[place] = symbols[place], 2
  return symbols, answer


def _expression(length, operators='+-*'):
  if length == 1:
    return str(random.randrange(5))
  if length == 2:
    return '-' + _expression(1)
  if length == 3:
    return '(' + _expression(1) + ')'
  if length == 4:
    return '(' + _expression(2) + ')'
  left = random.randint(1, length - 4)
  right = length - 3 - left
  return (
    '('
    + _expression(left, operators)
    + random.choice(operators)
    + _expression(right, operators)
    + ')'
  )


def _brackets(length):
  text = _expression(length)
  return list(text), _value(text)


def _value(text):
  """Evaluates brackets with a stack (`eval` cannot nest so deep)."""
  stack = [[0, '+', 1]]
  total, operator, sign = 0, '+', 1

  def apply(total, operator, value):
    if operator == '+':
      return (total + value) % 5
    if operator == '-':
      return (total - value) % 5
    return total * value % 5

  previous = '('
  for symbol in text:
    if symbol == '(':
      stack.append([total, operator, sign])
      total, operator, sign = 0, '+', 1
    elif symbol == ')':
      value = total
      total, operator, sign = stack.pop()
      total, operator, sign = apply(total, operator, sign * value), '+', 1
    elif symbol.isdigit():
      total = apply(total, operator, sign * int(symbol))
      operator, sign = '+', 1
    elif symbol == '-' and previous in '(+-*':
      sign = -1
    else:
      operator = symbol
    previous = symbol
  return total % 5


def _equation(length):
  if length < 3:
    return [0] * length, 0
  text = list(_expression(length - 2, '+-'))
  places = [i for i, symbol in enumerate(text) if symbol.isdigit()]
  value = _value(text)
  place = random.choice(places)
  answer, text[place] = text[place], 'x'
  return [*text, '=', value], answer


def _stack(length):
  size = random.randint(1, max(1, length - 1))
  stack = _bits(size)
  actions = [random.randrange(2, 5) for _ in range(length - size)]
  symbols = stack + actions
  stack = list(stack)
  for action in actions:
    if action == 2:
      if stack:
        stack.pop()
    else:
      stack.append(action - 3)
  return symbols, (stack[::-1] + [2] + [0] * length)[: length + 1]


def _numbers(length, operator):
  first = random.randint(1, length - 2)
  n = random.randrange(1, 2**first)
  m = random.randrange(1, 2 ** (length - 1 - first))
  symbols = [
    *map(int, reversed(format(n, f'0{first}b'))),
    2,
    *map(int, reversed(format(m, f'0{length - 1 - first}b'))),
  ]
  return symbols, list(map(int, reversed(format(operator(n, m), 'b'))))


def _square_root(length):
  n = random.randrange(1, 2**length)
  root = 0
  for bit in reversed(range((length + 1) // 2)):
    if (root | 1 << bit) ** 2 <= n:
      root |= 1 << bit
  return list(map(int, format(n, f'0{length}b'))), root


def _member(accepts: Callable[[list[int]], bool], positive):
  """Half positives, half uniform strings rejected if they are in."""

  def sample(length):
    if random.randrange(2):
      return positive(length), 1
    for _ in range(100):
      bits = _bits(length)
      if not accepts(bits):
        return bits, 0
    return bits, 1

  return sample


def _depth_at_most(depth):
  def accepts(bits):
    level = 0
    for bit in bits:
      level += 1 - 2 * bit
      if not 0 <= level <= depth:
        return False
    return level == 0

  return accepts


def _dyck(depth):
  def positive(length):
    def inner(size, levels):
      symbols = []
      while levels and len(symbols) < size:
        left = size - len(symbols) - 2
        wanted = int(random.gauss(0.75 * left, 0.075 * left)) // 2 * 2
        symbols += [0, *inner(max(0, min(wanted, left)), levels - 1), 1]
      return symbols

    return inner(length // 2 * 2, depth)

  return _member(_depth_at_most(depth), positive)


def _rejecting(accepts):
  def positive(length):
    for _ in range(100):
      bits = _bits(length)
      if accepts(bits):
        break
    return bits

  return _member(accepts, positive)


def _no_000(bits):
  return '000' not in ''.join(map(str, bits))


def _no_000_positive(length):
  bits = []
  while len(bits) < length:
    bit = random.randrange(2)
    if bit or bits[-2:] != [0, 0]:
      bits.append(bit)
  return bits


def _runs(length):
  """Runs of random symbols, an odd run of 1s followed by an even one of 0s."""
  bits, was_odd = [], False
  while len(bits) < length:
    bit = random.randrange(2)
    size = random.randint(0, length - len(bits))
    if bit == 0 and was_odd:
      size -= size % 2
    bits += [bit] * size
    was_odd = bit == 1 and size % 2 == 1
  return bits


def _four_runs(length):
  bits = []
  for bit in (0, 1, 0):
    bits += [bit] * random.randint(0, length - len(bits))
  return bits + [1] * (length - len(bits))


def _matching(regex, positive):
  pattern = re.compile(regex)
  return _member(
    lambda bits: pattern.fullmatch(''.join(map(str, bits))) is not None,
    positive,
  )


def _repeated(*symbols):
  return lambda length: (list(symbols) * length)[:length]


def _multiple_of(number):
  return lambda length: ([0] * length, int(length % number == 0))


_PYTHON = {
  'even_pairs': _even_pairs,
  'modular_arithmetic': _digits_and_operators,
  'parity_check': _parity,
  'cycle_navigation': _cycle,
  'word_problem': _words,
  **{f'd_{n}': _dyck(n) for n in (1, 2, 3, 4, 12)},
  'tomita_1': _matching('0*', _repeated(0)),
  'tomita_2': _matching('(10)*', _repeated(1, 0)),
  'tomita_3': _matching('(?!.*(?<!1)1(11)*0(00)*(?!0)).*', _runs),
  'tomita_7': _matching('0*1*0*1*', _four_runs),
  'aa': _multiple_of(2),
  'aaaa': _multiple_of(4),
  'abab': _matching('(0101)*', _repeated(0, 1)),
  'tomita_4': _member(_no_000, _no_000_positive),
  'tomita_5': _rejecting(lambda b: sum(b) % 2 == 0 and len(b) % 2 == 0),
  'tomita_6': _rejecting(lambda b: (2 * sum(b) - len(b)) % 3 == 0),
  'modular_arithmetic_brackets': _brackets,
  'reverse_string': _reverse,
  'solve_equation': _equation,
  'stack_manipulation': _stack,
  'duplicate_string': _duplicate,
  'missing_duplicate_string': _missing,
  'odds_first': _odds_first,
  'binary_addition': functools.partial(_numbers, operator=lambda n, m: n + m),
  'binary_multiplication': functools.partial(
    _numbers, operator=lambda n, m: n * m
  ),
  'compute_sqrt': _square_root,
  'bucket_sort': _sort,
}


def _on_device(task, length):
  """Returns a call that draws many batches, as the training loop does."""
  width = task.input_length(length)

  @jax.jit
  def draw(seed):
    def body(key, _):
      key, rng = jax.random.split(key)
      tokens = task.sample_tokens(rng, _BATCH_SIZE.value, length, width)
      # Something that depends on all of it, so that nothing is left out.
      return key, (tokens.sum(), task.solve(tokens).sum())

    key = jax.random.key(seed)
    return jax.lax.scan(body, key, length=_BATCHES_PER_CALL)[1]

  return functools.partial(draw, 0)


def _step_seconds():
  """Returns the seconds of RegularGPT's training step at D = 256, T = 40."""
  experiment = config.Experiment(embedding_dim=256)
  step_fn, arguments = timing.training_step(experiment, 40)
  step, _ = timing.compiled('a training step', step_fn, *arguments)
  (seconds,) = timing.interleaved([functools.partial(step, *arguments)])
  return seconds


def main():
  """Prints the tables."""
  step_s = _step_seconds()
  for length in map(int, _LENGTHS.value):
    rows = []
    for name in selection.chosen('task', _TASKS.value, _PYTHON):
      task = registries.TASK_BUILDERS[name]()

      def sample_in_python(python=_PYTHON[name], length=length):
        return [python(length) for _ in range(_BATCH_SIZE.value)]

      seconds, python_s = timing.interleaved(
        [_on_device(task, length), sample_in_python], rounds=3
      )
      ours = seconds / _BATCHES_PER_CALL
      rows.append(
        [
          name,
          f'{_BATCH_SIZE.value / ours:,.0f}',
          f'{_BATCH_SIZE.value / python_s:,.0f}',
          f'{python_s / ours:.0f}',
          f'{100 * ours / step_s:.1f}%' if length == 40 else '-',
        ]
      )
    timing.print_table(
      f'Sampling and solving, T = {length}, batch {_BATCH_SIZE.value}',
      ['task', 'strings/s', 'Python strings/s', 'ratio', 'of a step'],
      rows,
    )


if __name__ == '__main__':
  timing.run(main)
