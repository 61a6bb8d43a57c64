"""The baselines: a step padded and not, programs of an evaluation, its parts.

python -m benchmarks.baselines
"""

import dataclasses
import functools
import tempfile

from absl import flags
import jax
import numpy as np

from benchmarks import timing
from experiments.engine import devices, programs
from experiments.formal import (
  builders,
  config,
  data,
  range_evaluation,
  training,
)

_ARCHITECTURES = flags.DEFINE_list(
  'architectures',
  ['rnn', 'lstm', 'stack_rnn', 'tape_rnn', 'transformer_encoder'],
  'What to time.',
)
_DIM = flags.DEFINE_integer('embedding_dim', 64, 'Width of transformers.')
_LENGTH = flags.DEFINE_integer('length', 40, 'Length of the strings.')
_BUCKET = flags.DEFINE_integer('bucket', 48, 'Width that they are padded to.')
_LONGEST = flags.DEFINE_integer('longest', 500, 'Longest test string.')


def _experiment(architecture):
  params = {}
  if architecture == 'transformer_encoder':
    params = {'positional_encodings': 'RELATIVE'}
  return config.Experiment(
    architecture=architecture,
    architecture_params=params,
    embedding_dim=_DIM.value,
    sequence_length=_LENGTH.value,
    max_range_test_length=_LONGEST.value,
    range_test_batch_size=2,
  )


def _step(experiment, width):
  step_fn, arguments = timing.training_step(experiment, width)
  step, _ = timing.compiled(
    f'a training step of {experiment.architecture}', step_fn, *arguments
  )
  return functools.partial(step, *arguments)


def _num_programs(experiment):
  """Returns how many programs a range evaluation compiles."""
  names = []

  def listen(event, duration, fun_name='', **_):
    del duration
    if event == '/jax/core/compile/backend_compile_duration':
      names.append(fun_name)

  task, model = builders.make_task_and_model(experiment)
  state = training.init_state(experiment, model)
  jax.monitoring.register_event_duration_secs_listener(listen)
  range_evaluation.evaluate(experiment, task, model, state.params)
  jax.monitoring.unregister_event_duration_listener(listen)
  return sum('accuracy_of' in name for name in names)


def _test(in_parts):
  """Returns a call of a transformer's test of 16 of the longest strings."""
  experiment = dataclasses.replace(
    _experiment('transformer_encoder'), range_test_batch_size=16
  )
  task, model = builders.make_task_and_model(experiment)
  params = training.init_state(experiment, model).params
  if not in_parts:
    model = dataclasses.replace(model, heads=0)
  width = _LONGEST.value
  source = data.make_source(task, 16, [width])
  stream = source.stream([range_evaluation.TEST_SEED], [(width, width)])
  host_data = data.of_one_run(source, next(iter(stream))[1])
  mesh = devices.make_mesh(1, 16)
  test, _ = timing.compiled(
    'a test in parts' if in_parts else 'a test',
    jax.jit(
      range_evaluation.make_test(task, source, model, mesh, width),
      compiler_options=programs.quick_options(),
    ),
    *(arguments := (params, None, np.int32(width), host_data)),
  )
  return functools.partial(test, *arguments)


def main():
  """Prints the tables."""
  rows = []
  with tempfile.TemporaryDirectory() as cache:
    jax.config.update('jax_compilation_cache_dir', cache)
    for architecture in _ARCHITECTURES.value:
      experiment = _experiment(architecture)
      bare, padded = timing.interleaved(
        [_step(experiment, width) for width in (_LENGTH.value, _BUCKET.value)]
      )
      rows.append(
        [
          architecture,
          f'{bare * 1e3:.1f}',
          f'{padded / bare:.2f}',
          _num_programs(experiment),
        ]
      )
    parts, whole = timing.interleaved([_test(True), _test(False)])
  timing.print_table(
    f'A training step, T = {_LENGTH.value}, batch 128',
    [
      'architecture',
      'unpadded ms',
      f'padded to {_BUCKET.value} / unpadded',
      f'programs to evaluate 1..{_LONGEST.value}',
    ],
    rows,
  )
  timing.print_table(
    f'A test of transformer_encoder, 16 strings, T = {_LONGEST.value}',
    ['in parts that caches hold, ms', 'all at once / in parts'],
    [[f'{parts * 1e3:.0f}', f'{whole / parts:.2f}']],
  )


if __name__ == '__main__':
  timing.run(main)
