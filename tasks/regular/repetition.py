"""Repetitions of one string: (aa)*, (aaaa)* and (abab)*.

A length has at most one positive, which either sampler draws.
"""

from tasks.automata import automaton as automaton_lib
from tasks.regular import language, regular_task


def _repetition(repeated: str, alphabet: str) -> automaton_lib.Automaton:
  """Returns the automaton of (repeated)*: the state is the place in it."""
  dead = len(repeated)
  transitions = [
    [
      (place + 1) % len(repeated) if symbol == expected else dead
      for symbol in alphabet
    ]
    for place, expected in enumerate(repeated)
  ]
  accepting = [place == 0 for place in range(dead + 1)]
  return automaton_lib.Automaton(
    alphabet, [*transitions, [dead] * len(alphabet)], 0, accepting
  )


def _machine_with_b(repeated: str) -> regular_task.MooreMachine:
  """Returns the machine that knows the symbol b too, which is never sampled."""
  a = _repetition(repeated, 'ab')
  return regular_task.make_machine(a.transitions, a.start, a.outputs)


class AA(language.Language):
  """Is the length of a string of a's even?

  The language (aa)*. Answers 1 if it is, else 0. Symbol 0 is a; there is a
  symbol 1 too, which is never sampled. The RegularGPT authors' classes are the
  other way around.

  Examples:
    a a a a -> 1
    a a a -> 0
  """

  input_size = 2
  takes_all_strings = False
  automaton = _repetition('aa', 'a')
  machine = _machine_with_b('aa')


class AAAA(language.Language):
  """Is the length of a string of a's a multiple of 4?

  The language (aaaa)*. Answers 1 if it is, else 0. Symbol 0 is a; there is a
  symbol 1 too, which is never sampled. The RegularGPT authors' classes are the
  other way around.

  Examples:
    a a a a -> 1
    a a -> 0
  """

  input_size = 2
  takes_all_strings = False
  automaton = _repetition('aaaa', 'a')
  machine = _machine_with_b('aaaa')


class ABAB(language.Language):
  """Is a string in (abab)*?

  Answers 1 if it is, else 0. Symbol 0 is a, 1 is b.

  Examples:
    a b a b -> 1
    a b -> 0
  """

  automaton = _repetition('abab', 'ab')


BUILDERS = {'aa': AA, 'aaaa': AAAA, 'abab': ABAB}
