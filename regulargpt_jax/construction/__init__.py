"""RegularGPT built by hand for an automaton (Chi et al., 2023, section 7.2).

A row of stages: `minimization` makes the table small, `codes` writes its maps
as vectors, `schedule` says which sublayer composes what, `heads` fetches the
two maps, `lemma` multiplies them, `compiler` puts it all together.
"""

from regulargpt_jax.construction.compiler import compile_automaton
from regulargpt_jax.construction.lemma import compose, get_w1, get_w2

__all__ = ['compile_automaton', 'compose', 'get_w1', 'get_w2']
