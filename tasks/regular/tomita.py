"""The seven languages of Tomita (1982), over the symbols 0 and 1."""

import jax
import jax.numpy as jnp

from tasks import random_symbols
from tasks.automata import automaton as automaton_lib
from tasks.regular import language


def _automaton(transitions, accepting) -> automaton_lib.Automaton:
  """Returns an automaton from rows (next on 0, next on 1); it starts in 0."""
  is_accepting = [state in accepting for state in range(len(transitions))]
  return automaton_lib.Automaton('01', transitions, 0, is_accepting)


class Tomita1(language.Language):
  """Is a string in 0*?

  Answers 1 if it is, else 0. The textbook's language is 1*; the RegularGPT
  authors' is 0*. Half of their strings are of 0s, the others uniform over all,
  none rejected: at length 1 three quarters are in the language.

  Examples:
    0 0 0 -> 1
    0 1 0 -> 0
  """

  automaton = _automaton([(0, 1), (1, 1)], {0})

  def sample_tokens(self, rng, batch_size, length, width):
    """See base class."""
    if self.sampler == 'uniform':
      return super().sample_tokens(rng, batch_size, length, width)
    tokens = random_symbols.uniform_strings(
      rng, batch_size, length, width, self.input_size
    )
    return tokens.at[::2].min(0)  # Where there is no symbol, it stays so.


class Tomita2(language.Language):
  """Is a string in (10)*?

  Answers 1 if it is, else 0.

  Examples:
    1 0 1 0 -> 1
    0 1 -> 0
  """

  automaton = _automaton([(2, 1), (0, 2), (2, 2)], {0})


class Tomita3(language.Language):
  """Is no odd run of 1s directly followed by an odd run of 0s?

  Answers 1 if none is, else 0. Others mean "followed anywhere later" (Weiss et
  al., 2018; AALpy): then 1 0 0 1 1 0, too, would not be in the language.

  Examples:
    1 0 0 1 1 0 -> 1
    0 1 0 -> 0
  """

  automaton = _automaton(
    [
      (0, 1),  # After an even run of 1s, and any 0s behind it.
      (2, 0),  # In an odd run of 1s.
      (3, 4),  # In an odd run of 0s, behind an odd run of 1s.
      (2, 1),  # In an even run of 0s, behind an odd run of 1s.
      (4, 4),  # Dead.
    ],
    accepting={0, 1, 3},
  )

  def paper_positives(self, rng, batch_size, length, width):
    """Draws runs until a string is full.

    A run's symbol is tossed, so the same may come again, and its length is
    uniform from 0 to the room that is left. A run of 0s is even if the 1s
    before it are odd in number (counted since the last 0).
    """
    place_Wx1 = jnp.arange(width)[:, None]

    def is_any_left(carry):
      return jnp.any(carry['filled_B'] < length)

    def append_run(carry):
      symbol_rng, length_rng = jax.random.split(
        jax.random.fold_in(rng, carry['run'])
      )
      filled_B, ones_B = carry['filled_B'], carry['ones_B']
      symbol_B = random_symbols.uniform_bits(symbol_rng, batch_size, width=1)[0]
      must_be_even_B = (symbol_B == 0) & (ones_B % 2 == 1)
      step_B = jnp.where(must_be_even_B, 2, 1)
      most_B = (length - filled_B) // step_B
      run_B = step_B * jax.random.randint(
        length_rng, (batch_size,), 0, most_B + 1
      )
      # 1s behind a 0 start a new run; an empty run changes nothing.
      before_B = jnp.where(carry['ends_in_0_B'], 0, ones_B)
      is_new_B = run_B > 0
      is_here_WxB = (place_Wx1 >= filled_B) & (place_Wx1 < filled_B + run_B)
      return {
        'run': carry['run'] + 1,
        'filled_B': filled_B + run_B,
        'ones_B': jnp.where(
          is_new_B & (symbol_B == 1), before_B + run_B, ones_B
        ),
        'ends_in_0_B': jnp.where(is_new_B, symbol_B == 0, carry['ends_in_0_B']),
        'symbols_WxB': jnp.where(is_here_WxB, symbol_B, carry['symbols_WxB']),
      }

    zeros_B = jnp.zeros(batch_size, jnp.int32)
    start = {
      'run': jnp.zeros((), jnp.int32),
      'filled_B': zeros_B,
      'ones_B': zeros_B,
      'ends_in_0_B': zeros_B > 0,
      'symbols_WxB': jnp.zeros((width, batch_size), jnp.int32),
    }
    return jax.lax.while_loop(is_any_left, append_run, start)['symbols_WxB']


class Tomita4(language.Language):
  """Does a string not have three 0s in a row?

  Answers 1 if it does not, else 0.

  Examples:
    0 0 1 0 -> 1
    1 0 0 0 -> 0
  """

  # The state is the number of 0s just read.
  automaton = _automaton([(1, 0), (2, 0), (3, 0), (3, 3)], {0, 1, 2})

  def paper_positives(self, rng, batch_size, length, width):
    """Draws uniform symbols, a third 0 in a row being drawn again."""
    del length
    bits_WxB = random_symbols.uniform_bits(rng, batch_size, width)

    def step(num_zeros_B, bit_B):
      symbol_B = jnp.where(num_zeros_B == 2, 1, bit_B)
      return jnp.where(symbol_B == 0, num_zeros_B + 1, 0), symbol_B

    return jax.lax.scan(step, jnp.zeros(batch_size, jnp.int32), bits_WxB)[1]


class Tomita5(language.Language):
  """Are both the number of 0s and the number of 1s even?

  Answers 1 if they are, else 0.

  Examples:
    0 1 1 0 -> 1
    0 1 0 -> 0
  """

  # The state's bits are the parities of the two numbers.
  automaton = _automaton([(1, 2), (0, 3), (3, 0), (2, 1)], {0})


class Tomita6(language.Language):
  """Is the number of 1s less the number of 0s a multiple of 3?

  Answers 1 if it is, else 0.

  Examples:
    0 1 1 1 1 has four 1s less one 0, 3 -> 1
    0 1 1 has two 1s less one 0, 1 -> 0
  """

  automaton = _automaton([(2, 1), (0, 2), (1, 0)], {0})


class Tomita7(language.Language):
  """Is a string in 0*1*0*1*?

  Answers 1 if it is, else 0. At length 4 the RegularGPT authors have no
  negatives, though there is one.

  Examples:
    0 0 1 0 1 1 -> 1
    1 0 1 0 -> 0
  """

  automaton = _automaton([(0, 1), (2, 1), (2, 3), (4, 3), (4, 4)], {0, 1, 2, 3})

  def wanted_classes(self, batch_size, length, width):
    """See base class."""
    wanted_B = super().wanted_classes(batch_size, length, width)
    return wanted_B | ((self.sampler == 'paper') & (length == 4))

  def paper_positives(self, rng, batch_size, length, width):
    """Draws four runs, of uniform lengths; the last takes what is left."""
    place_Wx1 = jnp.arange(width)[:, None]
    end_B = jnp.zeros(batch_size, jnp.int32)
    run_WxB = jnp.zeros((width, batch_size), jnp.int32)
    for run_rng in jax.random.split(rng, 3):
      room_B = length - end_B
      end_B += jax.random.randint(run_rng, (batch_size,), 0, room_B + 1)
      run_WxB += place_Wx1 >= end_B
    return run_WxB % 2


BUILDERS = {
  'tomita_1': Tomita1,
  'tomita_2': Tomita2,
  'tomita_3': Tomita3,
  'tomita_4': Tomita4,
  'tomita_5': Tomita5,
  'tomita_6': Tomita6,
  'tomita_7': Tomita7,
}
