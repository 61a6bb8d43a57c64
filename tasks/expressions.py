"""Arithmetic expressions with brackets, modulo 5.

An expression of length 1 is a digit d, of length 2 it is -d, of length 3 (d),
of length 4 (-d). A longer one is a left expression, an operator and a right
expression in brackets. Letters: B batch, W padded width, S stack height.
"""

import jax
import jax.numpy as jnp

from tasks import task

MODULUS = 5
# Digits are symbols 0 to 4.
PLUS, MINUS, TIMES, OPEN, CLOSE = 5, 6, 7, 8, 9


def _max_depth(width: int) -> int:
  """Returns how deep brackets nest in an expression of at most that length."""
  return max(1, (width + 1) // 4)


def _read(stack_SxB: jax.Array, level_B: jax.Array) -> jax.Array:
  """Returns each string's stack entry at its level, [B]."""
  return jnp.take_along_axis(stack_SxB, level_B[None], axis=0, mode='clip')[0]


def _write(
  stack_SxB: jax.Array, level_B: jax.Array, entry_B: jax.Array
) -> jax.Array:
  """Returns the stacks with an entry set; levels outside are ignored."""
  level_Sx1 = jnp.arange(stack_SxB.shape[0])[:, None]
  return jnp.where(level_Sx1 == level_B, entry_B, stack_SxB)


def sample(
  rng: jax.Array,
  batch_size: int,
  length: int | jax.Array,
  width: int,
  num_operators: int,
) -> jax.Array:
  """Returns random expressions, right-aligned, int32 [B, W].

  A left expression's length is uniform in 1 to length - 4, the right one takes
  the rest; digits and operators are uniform. The grammar is expanded from left
  to right, one symbol at a step, with a stack of what is still to come: the
  length of a right expression, or 0 for a closing bracket.

  Args:
    rng: The only source of randomness.
    batch_size: B.
    length: Of every expression; at least 1, may be traced.
    width: W, at least `length`.
    num_operators: 2 for + and -, 3 for * too.
  """
  # A place is a digit, an operator or an opening bracket (where a length is
  # drawn), so one random word a place is enough. Lengths are so far below 2^32
  # that the remainder's bias, at most length / 2^32, is out of sight.
  words_WxB = jax.random.bits(rng, (width, batch_size), jnp.uint32)

  def emit(state, place_and_word):
    current, stack, depth = state
    place, word = place_and_word
    current = jnp.where(place == length - 1, length, current)

    def draw(num_choices):
      choices = jnp.asarray(num_choices, jnp.uint32)
      return (word % choices).astype(jnp.int32)

    is_between = current == 0
    level = jnp.where(is_between, depth - 1, depth)
    pending = _read(stack, level)
    is_close = is_between & (pending == 0)
    is_open = current >= 3
    has_operator = current >= 5
    left = 1 + draw(jnp.maximum(current - 4, 1))
    symbol = jnp.where(pending > 0, PLUS + draw(num_operators), CLOSE)
    symbol = jnp.where(current == 1, draw(MODULUS), symbol)
    symbol = jnp.where(current == 2, MINUS, symbol)
    symbol = jnp.where(is_open, OPEN, symbol)
    # Writes above the top of the stack do no harm: nothing reads them.
    stack = _write(stack, level, jnp.where(has_operator, current - 3 - left, 0))
    inside = jnp.where(has_operator, left, current - 2)
    after = jnp.where(is_between, pending, current - 1)
    current = jnp.where(is_open, inside, after)
    depth = depth + is_open - is_close
    started = place < length
    state = (
      jnp.where(started, current, 0),
      stack,
      jnp.where(started, depth, 0),
    )
    return state, jnp.where(started, symbol, task.NO_SYMBOL)

  zeros_B = jnp.zeros((batch_size,), jnp.int32)
  stack_SxB = jnp.zeros((_max_depth(width), batch_size), jnp.int32)
  _, symbols_WxB = jax.lax.scan(
    emit,
    (zeros_B, stack_SxB, zeros_B),
    (jnp.arange(width)[::-1], words_WxB[::-1]),
  )
  return symbols_WxB.T


def evaluate(tokens_BxW: jax.Array) -> jax.Array:
  """Returns the values, modulo 5, of right-aligned expressions, int32 [B].

  One scan from left to right keeps the value and the operator of the bracket
  being read; a stack keeps those of the brackets around it.
  """
  before = jnp.pad(
    tokens_BxW[:, :-1], ((0, 0), (1, 0)), constant_values=task.NO_SYMBOL
  )
  is_digit = (tokens_BxW >= 0) & (tokens_BxW < MODULUS)
  ends_operand = ((before >= 0) & (before < MODULUS)) | (before == CLOSE)
  # A sign belongs to the digit after it; it is not an operator.
  is_sign = (tokens_BxW == MINUS) & ~ends_operand
  is_negative = jnp.pad(is_sign[:, :-1], ((0, 0), (1, 0))) & is_digit
  tokens = jnp.where(is_negative, -tokens_BxW % MODULUS, tokens_BxW)
  tokens = jnp.where(is_sign, task.NO_SYMBOL, tokens)

  def read(state, token):
    value, operator, stack, depth = state
    is_open, is_close = token == OPEN, token == CLOSE
    is_operator = (token >= PLUS) & (token <= TIMES)
    is_operand = is_close | ((token >= 0) & (token < MODULUS))
    level = jnp.where(is_close, depth - 1, depth)
    around = _read(stack, level)
    # Read only if a bracket opens here: else it lies above the top.
    stack = _write(stack, level, value + MODULUS * operator)
    operand = jnp.where(is_close, value, token)
    left = jnp.where(is_close, around % MODULUS, value)
    operator = jnp.where(is_close, around // MODULUS, operator)
    result = jnp.where(operator == MINUS, left - operand, left + operand)
    result = jnp.where(operator == TIMES, left * operand, result)
    value = jnp.where(is_operand, result % MODULUS, value)
    value = jnp.where(is_open, 0, value)
    operator = jnp.where(is_operator, token, operator)
    operator = jnp.where(is_open, PLUS, operator)
    return (value, operator, stack, depth + is_open - is_close), None

  batch_size, width = tokens.shape
  zeros_B = jnp.zeros((batch_size,), jnp.int32)
  stack_SxB = jnp.zeros((_max_depth(width), batch_size), jnp.int32)
  (value_B, *_), _ = jax.lax.scan(
    read, (zeros_B, zeros_B + PLUS, stack_SxB, zeros_B), tokens.T
  )
  return value_B
