"""Modular Arithmetic, without brackets."""

import jax
import jax.numpy as jnp
import numpy as np

from tasks import composition, random_symbols, task
from tasks.regular import regular_task

_MODULUS = 5
_PLUS, _MINUS, _TIMES = 5, 6, 7
_NUM_OPERATORS = 3


class ModularArithmetic(regular_task.RegularTask):
  """What is the value, modulo 5, of a sum and product of digits?

  Symbols 0 to 4 are digits, 5 '+', 6 '-', 7 '*', and 8 a blank that is never
  sampled. Products bind before sums. Digits and operators alternate, so a
  string has an odd length: an even one is lowered by one.

  Examples:
    2 + 3 * 4 = 14 -> 4
    1 - 3 = -2 -> 3
  """

  input_size = _MODULUS + 4
  input_symbols = tuple('01234+-*_')
  output_size = _MODULUS
  takes_all_strings = False

  def __init__(self, leading_plus: bool = False):
    """Initializes.

    Args:
      leading_plus: Whether to put a '+' in front, which makes every pair an
        operator and its digit (as in the RegularGPT authors' runs).
    """
    self._leading_plus = leading_plus

  @property
  def machine(self):
    """See base class; the state is the sum of finished terms, and the term.

    A digit multiplies the term; '+' and '-' add the term to the sum and begin
    the next with 1 or -1, which a first digit without '+' finds there too.
    Strings that are no expressions have a value here that means nothing.
    """
    total, term = np.divmod(np.arange(_MODULUS**2), _MODULUS)

    def state(total, term):
      return total % _MODULUS * _MODULUS + term % _MODULUS

    after = [
      *(state(total, term * digit) for digit in range(_MODULUS)),
      state(total + term, 1),
      state(total + term, -1),
      *[state(total, term)] * 2,  # '*' and the blank.
    ]
    return regular_task.make_machine(
      np.stack(after, -1),
      start=state(0, 0 if self._leading_plus else 1),
      outputs=(total + term) % _MODULUS,
    )

  def input_length(self, length):
    """See base class."""
    return length - (length + 1) % 2 + self._leading_plus

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class; digits and operators are uniform."""
    digit_rng, operator_rng = jax.random.split(rng)
    digits = random_symbols.uniform_symbols(
      digit_rng, batch_size, width, _MODULUS
    )
    operators = _PLUS + random_symbols.uniform_symbols(
      operator_rng, batch_size, width, _NUM_OPERATORS
    )
    # Digits stand at even places, counted from either end.
    place_Wx1 = jnp.arange(width)[:, None]
    symbols = jnp.where(place_Wx1 % 2 == 0, digits, operators)
    num_symbols = self.input_length(length)
    if self._leading_plus:
      symbols = jnp.where(place_Wx1 == num_symbols - 1, _PLUS, symbols)
    return task.right_align(symbols, num_symbols)

  def solve(self, tokens):
    """See base class.

    Reading an operator and its digit maps (sum of finished terms, current term)
    affinely, so the string is a composition of maps, computed as a tree.
    """
    before = jnp.pad(
      tokens[:, :-1], ((0, 0), (1, 0)), constant_values=task.NO_SYMBOL
    )
    is_digit = (tokens >= 0) & (tokens < _MODULUS)
    digit = jnp.where(is_digit, tokens, 0)
    starts_term = is_digit & (before != _TIMES)
    sign = jnp.where(before == _MINUS, -1, 1)
    # term <- scale * term + shift; total <- total + carry * term + gain.
    maps = {
      'scale': jnp.where(starts_term, 0, jnp.where(is_digit, digit, 1)),
      'shift': jnp.where(starts_term, sign * digit, 0),
      'carry': starts_term.astype(jnp.int32),
      'gain': jnp.zeros_like(tokens),
    }

    def compose(first, second):
      composed = {
        'scale': first['scale'] * second['scale'],
        'shift': second['scale'] * first['shift'] + second['shift'],
        'carry': first['carry'] + second['carry'] * first['scale'],
        'gain': (
          first['gain'] + second['carry'] * first['shift'] + second['gain']
        ),
      }
      return jax.tree.map(lambda x: x % _MODULUS, composed)

    identity = {'scale': 1, 'shift': 0, 'carry': 0, 'gain': 0}
    whole = composition.compose_all(compose, maps, identity)
    return (whole['shift'] + whole['gain']) % _MODULUS
