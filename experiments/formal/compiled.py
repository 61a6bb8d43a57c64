"""A workdir whose model was built for its task, and not trained."""

import dataclasses

import jax
import jax.numpy as jnp

from experiments.engine import checkpoints as checkpoints_lib
from experiments.engine import locks, progress
from experiments.engine import workdir as workdir_lib
from experiments.formal import builders, registries, training
from experiments.formal import config as config_lib
from regulargpt_jax import construction
from regulargpt_jax.construction import codes, compiler, minimization
from tasks.regular import prefixes, regular_task

ENCODINGS = codes.ENCODINGS


def compile_task(
  experiment: config_lib.Experiment, workdir: str, encoding: str
) -> None:
  """Writes a RegularGPT that is right on every string of a regular task.

  The folder is that of a run after 0 steps, and is read as any other.

  Args:
    experiment: Says the task and the chunk size, and on what to evaluate.
    workdir: The folder, made if it does not exist.
    encoding: Of `ENCODINGS`; see `construction.compile_automaton`.

  Raises:
    ValueError: If the task is not regular, its automaton is too large or has
      other symbols or answers than the task, or the folder holds another
      experiment.
    OSError: If a file cannot be written, or another process is using the
      folder.
  """
  asked = builders.make_task(experiment)
  task = prefixes.whole(asked)
  if not isinstance(task, regular_task.RegularTask):
    regular = [k for k, v in registries.TASK_LEVELS.items() if v == 'regular']
    raise ValueError(
      f'{type(task).__name__} has no automaton; the tasks that have one are'
      f' {", ".join(sorted(regular))}, and any --regex or --automaton.'
    )
  machine = task.machine
  if machine.transitions.shape[1] != task.input_size:
    raise ValueError(
      f'The machine of {type(task).__name__} has'
      f' {machine.transitions.shape[1]} symbols, but the task'
      f' {task.input_size}.'
    )
  config, params = construction.compile_automaton(
    *machine, experiment.chunk_size, encoding
  )
  if config.output_size != task.output_size:
    raise ValueError(
      f'The machine of {type(task).__name__} has {config.output_size} answers,'
      f' but the task {task.output_size}.'
    )
  experiment = dataclasses.replace(
    experiment,
    training_steps=0,
    thickness=config.thickness,
    embedding_dim=config.embedding_dim,
    num_heads=config.num_heads,
  )
  # What no flag says.
  usual = vars(builders.make_model(experiment, asked).config)
  experiment = dataclasses.replace(
    experiment,
    architecture_params={
      name: value
      for name, value in vars(config).items()
      if value != usual[name]
    },
  )
  model = builders.make_model(experiment, asked)
  state = training.init_state(experiment, model)
  state = state.replace(
    params=jax.tree.map(lambda x: jnp.array(x)[None], params)
  )
  with locks.locked(workdir):
    workdir_lib.claim(experiment, workdir)
    checkpoints = checkpoints_lib.Checkpoints(workdir)
    checkpoints.save(0, state)
    checkpoints.close()
  hidden = config.widening_factor * config.embedding_dim
  num_states = len(minimization.minimal(*machine)[2])
  progress.say(
    f'Compiled the minimal automaton, of {num_states} states: width'
    f' {config.embedding_dim}, thickness {config.thickness},'
    f' {config.num_heads} heads, {hidden} hidden units,'
    f' {compiler.num_parameters(config):,} parameters, in {workdir}.'
  )
