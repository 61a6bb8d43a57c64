"""Every regular task's machine answers as the task does."""

import numpy as np
import pytest

from experiments.formal import registries
from tasks.automata import regex
from tasks.regular import (
  automaton_task,
  modular_arithmetic,
  regular_task,
)
from tests.tasks import checks

_REGEX = regex.from_regex('(01|10)*', '01')
TASKS = {
  **{
    name: builder()
    for name, builder in registries.TASK_BUILDERS.items()
    if registries.TASK_LEVELS[name] == 'regular'
  },
  'with_plus': modular_arithmetic.ModularArithmetic(leading_plus=True),
  'membership': automaton_task.AutomatonTask(_REGEX),
  'state': automaton_task.AutomatonTask(_REGEX, target='state'),
}


def answer(machine, symbols):
  """Returns the output after a string, read one symbol at a time."""
  state = machine.start
  for symbol in symbols:
    state = machine.transitions[state, symbol]
  return machine.outputs[state]


@pytest.mark.parametrize('name', TASKS)
def test_a_machine_is_complete_and_has_the_tasks_symbols(name):
  task = TASKS[name]
  assert isinstance(task, regular_task.RegularTask)
  machine = task.machine
  num_states = len(machine.outputs)
  assert machine.transitions.shape == (num_states, task.input_size)
  assert machine.transitions.dtype == machine.outputs.dtype == np.int32
  assert 0 <= machine.transitions.min() <= machine.transitions.max()
  assert machine.transitions.max() < num_states
  assert 0 <= machine.start < num_states
  assert 0 <= machine.outputs.min() <= machine.outputs.max() < task.output_size


@pytest.mark.parametrize('name', TASKS)
def test_a_machine_answers_as_the_task_does(name):
  task = TASKS[name]
  for length in (1, 2, 3, 4, 7, 16, 33, 62):
    tokens = checks.sample(task, length, length)
    strings = checks.unpadded(tokens, task.input_length(length))
    expected = [answer(task.machine, string) for string in strings]
    np.testing.assert_array_equal(checks.solve(task, tokens), expected)


@pytest.mark.parametrize('name', TASKS)
def test_a_machine_has_no_state_too_many(name):
  """Every state is reached, and no two of them are alike."""
  machine = TASKS[name].machine
  reached = {machine.start}
  while more := set(machine.transitions[list(reached)].flat) - reached:
    reached |= more
  assert len(reached) == len(machine.outputs)
  kind = machine.outputs
  for _ in machine.outputs:
    after = np.concatenate([kind[:, None], kind[machine.transitions]], axis=1)
    kind = np.unique(after, axis=0, return_inverse=True)[1].reshape(-1)
  assert len(set(kind)) == len(machine.outputs)
