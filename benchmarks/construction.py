"""A compiled PARITY model on one very long string, and two plain automata.

python -m benchmarks.construction
"""

from absl import flags
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import timing
from regulargpt_jax import construction, model

_LONGEST = flags.DEFINE_integer('longest', 2**20, 'Symbols of the string.')

# PARITY: the state is the parity of the 1s.
_TRANSITIONS = np.array([[0, 1], [1, 0]])


def _by_model(path, tabulates=True):
  """Returns the compiled RegularGPT's answer, a function of tokens [1, T].

  Args:
    path: Of `model.PATHS`.
    tabulates: Whether `reduce` may tabulate the states of short strings.
  """
  config, params = construction.compile_automaton(_TRANSITIONS, 0)
  gpt = model.RegularGPT(config)

  def answer(tokens_1xT):
    tables = None
    if not tabulates:
      tables = gpt.apply(params, 0, method=gpt.tabulate)
    logits = gpt.apply(params, tokens_1xT, path, tables=tables)
    return (logits if path == 'reduce' else logits[:, -1]).argmax(-1)[0]

  return answer


def _by_scan(tokens_1xT):
  """The automaton, one symbol after the other."""
  table = jnp.asarray(_TRANSITIONS)

  def step(state, symbol):
    return table[state, symbol], None

  return jax.lax.scan(step, jnp.int32(0), tokens_1xT[0])[0]


def _by_associative_scan(tokens_1xT):
  """Transition maps, all prefixes composed in parallel."""
  maps_TxQ = jnp.asarray(_TRANSITIONS.T, jnp.int8)[tokens_1xT[0]]

  def compose(first, second):
    maps = jnp.take_along_axis(second, first.astype(jnp.int32), axis=-1)
    # Else XLA fuses all levels into one, which takes it minutes to compile.
    return jax.lax.optimization_barrier(maps)

  return jax.lax.associative_scan(compose, maps_TxQ)[-1, 0]


def main():
  """Prints the table, having checked that every answer is right."""
  length = _LONGEST.value
  tokens = np.random.default_rng(0).integers(2, size=(1, length))
  functions = {
    'RegularGPT, reduce': _by_model('reduce'),
    'RegularGPT, reduce without tables': _by_model('reduce', tabulates=False),
    'RegularGPT, scan (all positions)': _by_model('scan'),
    'lax.scan of the automaton': _by_scan,
    'lax.associative_scan of maps (all positions)': _by_associative_scan,
  }
  programs, compile_s = {}, {}
  for name, function in functions.items():
    program, compile_s[name] = timing.compiled(
      name, function, jnp.asarray(tokens)
    )
    programs[name] = program
  # On strings that differ in one symbol the answers must differ.
  flipped = tokens.copy()
  flipped[0, 0] ^= 1
  for string in (tokens, flipped):
    for name, program in programs.items():
      if int(program(jnp.asarray(string))) != string.sum() % 2:
        raise AssertionError(f'{name} is wrong.')
  on_device = jnp.asarray(tokens)
  seconds = timing.interleaved(
    [lambda p=p: p(on_device) for p in programs.values()]
  )
  timing.print_table(
    f'PARITY on one string of {length:,} symbols, all exact',
    ['what', 'compile s', 'ms', 'million symbols/s'],
    [
      [
        name,
        f'{compile_s[name]:.1f}',
        f'{s * 1e3:.1f}',
        f'{length / s / 1e6:.2f}',
      ]
      for name, s in zip(programs, seconds, strict=True)
    ],
  )


if __name__ == '__main__':
  timing.run(main)
