"""Finite automata, and the tasks they define.

An automaton is read from JSON or from a regular expression. Its states or
its language are a task: strings are sampled exactly uniformly, by counting
paths, and labels are a composition of maps in logarithmic depth.

Letters: B batch, W padded width, Q states, V symbols, S states of a walk.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import json
import os
import re

import jax
import jax.numpy as jnp
import numpy as np

from tasks import composition, task

# Probabilities of a walk are whole multiples of 2^-31.
_PROBABILITY_BITS = 31


@dataclasses.dataclass(frozen=True, eq=False)
class Automaton:
  """A complete deterministic automaton, as plain arrays.

  Attributes:
    alphabet: The V symbols; symbol v is the token v.
    transitions: Next state by state and symbol, int32 [Q, V].
    start: The state before the first symbol.
    accepting: Whether a string that ends in the state is in the language,
      bool [Q].

  Raises:
    ValueError: If a symbol is repeated, or shapes or states don't fit.
  """

  alphabet: Sequence[str]
  transitions: np.ndarray
  start: int
  accepting: np.ndarray

  def __post_init__(self):
    alphabet = tuple(self.alphabet)
    transitions = np.asarray(self.transitions, np.int32)
    accepting = np.asarray(self.accepting, bool)
    _check_distinct('symbol', alphabet)
    if transitions.ndim != 2 or transitions.shape[1] != len(alphabet):
      raise ValueError(
        f'transitions must have shape [states, {len(alphabet)}], got'
        f' {list(transitions.shape)}.'
      )
    num_states = transitions.shape[0]
    if accepting.shape != (num_states,):
      raise ValueError(
        f'accepting must have shape [{num_states}], got'
        f' {list(accepting.shape)}.'
      )
    for state in (self.start, *transitions.flat):
      if not 0 <= state < num_states:
        raise ValueError(f'State {state} is not in [0, {num_states}).')
    object.__setattr__(self, 'alphabet', alphabet)
    object.__setattr__(self, 'transitions', transitions)
    object.__setattr__(self, 'accepting', accepting)


def _check_distinct(kind: str, names: Sequence[str]) -> None:
  if not names:
    raise ValueError(f'There must be at least one {kind}.')
  for i, name in enumerate(names):
    if name in names[:i]:
      raise ValueError(f'Duplicate {kind} {name!r}.')


# Reading an automaton.

_JSON_FIELDS = ('alphabet', 'states', 'start', 'accepting', 'transitions')


def from_json(source: str | os.PathLike | Mapping) -> Automaton:
  """Returns the automaton that a JSON file describes.

  The file holds one object: {"alphabet": [symbol, ...], "states": [state,
  ...], "start": state, "accepting": [state, ...], "transitions": {state:
  {symbol: state, ...}, ...}}. Symbols and states are strings, and are numbered
  in the order of their lists.

  Args:
    source: The file's path, or its content, already parsed.

  Raises:
    ValueError: If the file can't be read or isn't such an object, or if the
      automaton isn't complete.
  """
  if isinstance(source, Mapping):
    return _from_fields(source)
  try:
    with open(source, encoding='utf-8') as file:
      fields = json.load(file, object_pairs_hook=_distinct_keys)
    if not isinstance(fields, dict):
      raise ValueError('expected one JSON object, {"alphabet": ...}.')
    return _from_fields(fields)
  except OSError as error:
    raise ValueError(f'Cannot read {source}: {error.strerror}.') from error
  except UnicodeDecodeError as error:
    raise ValueError(f'{source} is not text in UTF-8.') from error
  except json.JSONDecodeError as error:
    raise ValueError(f'{source} is not valid JSON: {error}.') from error
  except ValueError as error:
    raise ValueError(f'{source}: {error}') from error


def _distinct_keys(pairs):
  """Builds a JSON object; by default the last of equal keys would win."""
  keys = [key for key, _ in pairs]
  if keys:
    _check_distinct('key', keys)
  return dict(pairs)


def _from_fields(fields: Mapping) -> Automaton:
  """Returns the automaton of a parsed JSON object."""
  for name in _JSON_FIELDS:
    if name not in fields:
      raise ValueError(f'The field {name!r} is missing.')
  for name in fields:
    if name not in _JSON_FIELDS:
      raise ValueError(
        f'Unknown field {name!r}; the fields are {", ".join(_JSON_FIELDS)}.'
      )
  for name in ('alphabet', 'states', 'accepting'):
    names = fields[name]
    if not isinstance(names, Sequence) or isinstance(names, str):
      raise ValueError(f'{name} must be a list of strings, got {names!r}.')
    for item in names:
      if not isinstance(item, str) or not item:
        raise ValueError(f'{name} must be a list of strings, it has {item!r}.')
  alphabet, states = fields['alphabet'], fields['states']
  _check_distinct('symbol', alphabet)
  _check_distinct('state', states)
  state_number = {state: i for i, state in enumerate(states)}

  def number(state, where):
    if not isinstance(state, str) or state not in state_number:
      raise ValueError(f'Unknown state {state!r} in {where}.')
    return state_number[state]

  table = fields['transitions']
  if not isinstance(table, Mapping):
    raise ValueError(f'transitions must be an object, got {table!r}.')
  for state, row in table.items():
    number(state, 'transitions')
    if not isinstance(row, Mapping):
      raise ValueError(f'transitions of {state!r} must be an object.')
    for symbol in row:
      if symbol not in alphabet:
        raise ValueError(
          f'Symbol {symbol!r} in the transitions of state {state!r} is not in'
          f' the alphabet {", ".join(alphabet)}.'
        )
  transitions = np.zeros((len(states), len(alphabet)), np.int32)
  for q, state in enumerate(states):
    for v, symbol in enumerate(alphabet):
      if symbol not in table.get(state, {}):
        raise ValueError(
          f'State {state!r} has no transition for symbol {symbol!r}.'
        )
      transitions[q, v] = number(
        table[state][symbol], f'the transitions of state {state!r}'
      )
  accepting = np.zeros(len(states), bool)
  accepting[[number(state, 'accepting') for state in fields['accepting']]] = 1
  return Automaton(
    alphabet, transitions, number(fields['start'], 'start'), accepting
  )


def from_regex(regex: str, alphabet: Sequence[str]) -> Automaton:
  """Returns the minimal complete automaton of a regular expression.

  The syntax, a part of automata-lib's: `|` union, `&` intersection, `^`
  shuffle, `*`, `+`, `?`, `{n}`, `{m,n}`, `.` any symbol, `[ab]` one of these,
  `[^ab]` any other, `()` the empty string or a group. States are numbered
  breadth first from the start, which is 0, in the order of the alphabet.

  Args:
    regex: The expression.
    alphabet: Its symbols, single characters.

  Raises:
    ValueError: If the expression doesn't parse or has symbols outside the
      alphabet, if the alphabet has a symbol that the syntax reserves, or if
      there is nothing to learn (see `check_learnable`).
  """
  _check_distinct('symbol', alphabet)
  for symbol in alphabet:
    if len(symbol) != 1 or symbol in _RESERVED:
      raise ValueError(
        f'Symbol {symbol!r} cannot stand in a regex: symbols are single'
        f' characters other than {" ".join(_RESERVED.split())}; give the'
        ' automaton as JSON.'
      )
  _check_regex(regex, alphabet)
  # Imported here, as no task of the benchmark itself needs it.
  from automata.base import exceptions
  from automata.fa import dfa, nfa

  try:
    parsed = nfa.NFA.from_regex(regex, input_symbols=set(alphabet))
  except (exceptions.AutomatonException, exceptions.RegexException) as error:
    raise ValueError(f'Regex {regex!r} does not parse: {error}') from error
  minimal = dfa.DFA.from_nfa(parsed, minify=True).to_complete()

  order = [minimal.initial_state]
  for state in order:  # Grows while new states are met: breadth first.
    for symbol in alphabet:
      following = minimal.transitions[state][symbol]
      if following not in order:
        order.append(following)
  transitions = [
    [order.index(minimal.transitions[state][symbol]) for symbol in alphabet]
    for state in order
  ]
  accepting = [state in minimal.final_states for state in order]
  automaton = Automaton(alphabet, transitions, 0, accepting)
  check_learnable(automaton)
  return automaton


_RESERVED = '( ) [ ] { } | & ^ * + ? . \\ \t\n'
_BINARY = '|&^'
_REPETITION = re.compile(r'\{(\d+)\}|\{(\d*),(\d*)\}')
_CHARACTER_CLASS = re.compile(r'\[\^?([^]^]+)\]')


def _check_regex(regex: str, alphabet: Sequence[str]) -> None:
  """Raises a ValueError that says where an expression goes wrong."""

  def fail(position, problem):
    raise ValueError(
      f'Regex {regex!r} does not parse at position {position}: {problem}.'
    )

  def check_symbol(position, symbol):
    if symbol not in alphabet:
      raise ValueError(
        f'Regex {regex!r}, position {position}: symbol {symbol!r} is not in the'
        f' alphabet {", ".join(alphabet)}.'
      )

  open_groups = []
  # The operator that still wants an operand to its right, if there is one.
  waiting = None
  has_left = False  # Whether there is an operand for an operator to apply to.
  position = 0
  while position < len(regex):
    character, length = regex[position], 1
    if character == '(':
      open_groups.append(position)
      waiting, has_left = None, False
    elif character == ')':
      if not open_groups:
        fail(position, "')' closes nothing")
      if waiting is not None:
        fail(waiting, f'{regex[waiting]!r} has nothing to its right')
      open_groups.pop()
      has_left = True
    elif character in _BINARY:
      if not has_left:
        fail(position, f'{character!r} has nothing to its left')
      waiting, has_left = position, False
    elif character in '*+?{':
      if character == '{':
        match = _REPETITION.match(regex, position)
        if not match:
          fail(position, "'{' does not start a repetition like {2} or {1,3}")
        length = len(match.group())
        least, most = match.group(2), match.group(3)
        if least and most and int(least) > int(most):
          fail(position, f'{match.group()} has its bounds in the wrong order')
      if not has_left:
        fail(position, f'{character!r} has nothing to repeat')
    else:
      if character == '[':
        match = _CHARACTER_CLASS.match(regex, position)
        if not match:
          fail(position, "'[' does not start a list of symbols like [ab]")
        length = len(match.group())
        for i in range(*match.span(1)):
          check_symbol(i, regex[i])
      elif character in ']}':
        fail(position, f'{character!r} closes nothing')
      elif character != '.':
        check_symbol(position, character)
      waiting, has_left = None, True
    position += length
  if open_groups:
    fail(open_groups[-1], "'(' is never closed")
  if waiting is not None:
    fail(waiting, f'{regex[waiting]!r} has nothing to its right')


def check_learnable(automaton: Automaton) -> None:
  """Raises a ValueError if all strings have one answer.

  That is, if the language has no string of one symbol or more, or all of them.
  """
  reached = set(automaton.transitions[automaton.start].tolist())
  while True:
    more = reached.union(*(automaton.transitions[q].tolist() for q in reached))
    if more == reached:
      break
    reached = more
  answers = {bool(automaton.accepting[q]) for q in reached}
  if len(answers) == 1:
    which = 'every' if answers.pop() else 'no'
    raise ValueError(
      f'There is nothing to learn: the language has {which} string of one'
      ' symbol or more.'
    )


# Running an automaton.


def final_states(automaton: Automaton, tokens: jax.Array) -> jax.Array:
  """Returns the state after each string, by maps composed as a tree.

  Args:
    automaton: With Q states.
    tokens: Right-aligned strings, int32 [B, W].

  Returns:
    States, int32 [B].
  """
  num_states = len(automaton.accepting)
  # Maps are most of the memory that long strings need.
  dtype = np.int8 if num_states <= 128 else np.int32
  identity_Q = np.arange(num_states, dtype=dtype)
  # Row 0 is for `NO_SYMBOL`, -1.
  map_of_token = jnp.asarray(
    np.concatenate([identity_Q[None], automaton.transitions.T.astype(dtype)])
  )

  def compose(first, second):
    return jnp.take_along_axis(second, first.astype(jnp.int32), axis=-1)

  whole_BxQ = composition.compose_all(
    compose, map_of_token[tokens - task.NO_SYMBOL], identity_Q
  )
  return whole_BxQ[:, automaton.start].astype(jnp.int32)


# Sampling strings.


def random_walk(
  rng: jax.Array,
  thresholds_WxSxU: jax.Array,
  transitions_SxV: jax.Array,
  start_B: jax.Array,
  length: int | jax.Array,
) -> jax.Array:
  """Returns the symbols of random walks, right-aligned, int32 [B, W].

  Args:
    rng: The only source of randomness.
    thresholds_WxSxU: Probability, in units of 2^-31, that the symbol is v or
      one before it, for v < U = V - 1; by the symbols still to come after it
      and by the state before it. uint32.
    transitions_SxV: Next state.
    start_B: First state of each walk.
    length: Symbols of each walk, may be traced.
  """
  width, batch_size = thresholds_WxSxU.shape[0], start_B.shape[0]
  bits_WxB = jax.random.bits(rng, (width, batch_size), jnp.uint32)
  draws_WxB = bits_WxB >> (32 - _PROBABILITY_BITS)
  transitions_SxV = jnp.asarray(transitions_SxV)

  def step(state_B, inputs):
    draw_B, thresholds_SxU, is_inside = inputs
    is_later_BxU = draw_B[:, None] >= thresholds_SxU[state_B]
    symbol_B = is_later_BxU.sum(-1, dtype=jnp.int32)
    next_B = transitions_SxV[state_B, symbol_B]
    return jnp.where(is_inside, next_B, state_B), symbol_B

  # From the string's start, which is `length - 1` places from its end.
  is_inside_W = jnp.arange(width) < length
  _, symbols_WxB = jax.lax.scan(
    step,
    start_B,
    (draws_WxB, jnp.asarray(thresholds_WxSxU), is_inside_W),
    reverse=True,
  )
  return task.right_align(symbols_WxB, length)


def to_thresholds(probabilities: np.ndarray) -> np.ndarray:
  """Returns `random_walk`'s thresholds, [..., V - 1].

  Args:
    probabilities: Of the symbols, [..., V]; proportional ones do, and rows of
      zeros, which stand for what never happens.
  """
  cumulative = np.cumsum(probabilities, axis=-1)
  # Exactly 1 from the last possible symbol on: impossible ones never come.
  total = np.where(cumulative[..., -1:] > 0, cumulative[..., -1:], 1.0)
  scaled = cumulative[..., :-1] / total * 2.0**_PROBABILITY_BITS
  return np.rint(scaled).astype(np.uint32)


@functools.lru_cache(maxsize=128)
def uniform_walk(
  automaton: Automaton, width: int
) -> tuple[np.ndarray, np.ndarray]:
  """Counts paths, so that walks are uniform over each class of strings.

  A symbol's probability is the number of ways to go on after it over the
  number of ways to go on before it. Numbers of ways are logarithms in double
  precision: 2^10000 overflows, and scaled numbers underflow.

  Returns:
    Thresholds for `random_walk`, [W, 2 Q, V - 1], of walks to strings outside
    of the language (states 0 to Q - 1), and in it (states Q to 2 Q - 1).
    Whether there is such a string, by class and length, bool [2, W + 1].
  """
  is_end_2xQ = np.stack([~automaton.accepting, automaton.accepting])
  num_states = is_end_2xQ.shape[1]
  with np.errstate(divide='ignore', invalid='ignore'):
    ways = [np.log(is_end_2xQ.astype(np.float64))]
    for _ in range(width):
      after_2xQxV = ways[-1][:, automaton.transitions]
      ways.append(np.logaddexp.reduce(after_2xQxV, axis=-1))
    ways = np.stack(ways)
    after_Wx2xQxV = ways[:-1][:, :, automaton.transitions]
    probabilities = np.exp(after_Wx2xQxV - ways[1:, :, :, None])
  # No way to go on: minus infinity less itself.
  probabilities = np.nan_to_num(probabilities, nan=0.0)
  thresholds = to_thresholds(probabilities).reshape(width, 2 * num_states, -1)
  return thresholds, np.isfinite(ways[:, :, automaton.start]).T


class AutomatonTask(task.TokenTask):
  """Is a string in an automaton's language, or which state does it reach?

  Membership answers 1 if it is in the language, else 0. Half of a batch (the
  rows of even index) is uniform over the strings of its length in the language,
  half uniform over those outside; a length that has one of them only fills the
  whole batch with it. The state's answer is its number, and strings are
  uniform over all.

  Examples, for the automaton of (ab)*:
    a b a b -> 1
    a b b -> 0
  """

  def __init__(self, automaton: Automaton, target: str = 'membership'):
    """Initializes.

    Args:
      automaton: What to learn.
      target: 'membership' or 'state'.

    Raises:
      ValueError: If the target is another, or if it is 'membership' and there
        is nothing to learn.
    """
    if target not in ('membership', 'state'):
      raise ValueError(
        f"target must be 'membership' or 'state', got {target!r}."
      )
    if target == 'membership':
      check_learnable(automaton)
    self.automaton = automaton
    self._target = target

  @property
  def input_size(self) -> int:
    """See base class."""
    return len(self.automaton.alphabet)

  @property
  def output_size(self) -> int:
    """See base class."""
    if self._target == 'membership':
      return 2
    return len(self.automaton.accepting)

  @property
  def input_symbols(self) -> Sequence[str]:
    """See base class."""
    return self.automaton.alphabet

  def wanted_classes(
    self, batch_size: int, length: int | jax.Array, width: int
  ) -> jax.Array:
    """Returns which strings of a batch are in the language, bool [B]."""
    _, exists = uniform_walk(self.automaton, width)
    has_negatives, has_positives = jnp.asarray(exists)[:, length]
    is_even = jnp.arange(batch_size) % 2 == 0
    return jnp.where(has_negatives, is_even, True) & has_positives

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class."""
    if self._target == 'state':
      return task.uniform_tokens(
        rng, batch_size, length, width, self.input_size
      )
    automaton = self.automaton
    num_states = len(automaton.accepting)
    thresholds, _ = uniform_walk(automaton, width)
    transitions = np.concatenate(
      [automaton.transitions, automaton.transitions + num_states]
    )
    wanted_B = self.wanted_classes(batch_size, length, width)
    start_B = automaton.start + num_states * wanted_B
    return random_walk(rng, thresholds, transitions, start_B, length)

  def solve(self, tokens):
    """See base class."""
    states_B = final_states(self.automaton, tokens)
    if self._target == 'state':
      return states_B
    return jnp.asarray(self.automaton.accepting, jnp.int32)[states_B]
