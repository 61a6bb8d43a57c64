"""The registries: every name that the command line knows."""

from experiments import curriculum, models
from tasks.regular import (
  cycle_navigation,
  even_pairs,
  modular_arithmetic,
  parity_check,
)

MODEL_BUILDERS = {
  'regular_gpt': models.make_regular_gpt,
}

TASK_BUILDERS = {
  'even_pairs': even_pairs.EvenPairs,
  'modular_arithmetic': modular_arithmetic.ModularArithmetic,
  'parity_check': parity_check.ParityCheck,
  'cycle_navigation': cycle_navigation.CycleNavigation,
}

CURRICULUM_BUILDERS = {
  'fixed': curriculum.FixedCurriculum,
  'uniform': curriculum.UniformCurriculum,
  'reverse_exponential': curriculum.ReverseExponentialCurriculum,
  'regular_increase': curriculum.RegularIncreaseCurriculum,
}

# Levels of the Chomsky hierarchy.
TASK_LEVELS = {
  'even_pairs': 'regular',
  'modular_arithmetic': 'regular',
  'parity_check': 'regular',
  'cycle_navigation': 'regular',
}
