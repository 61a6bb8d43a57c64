"""The registries: every name that the command line knows."""

import functools

from experiments.formal import curriculum, models, regular_gpt, token_models
from regulargpt_jax import baselines, recurrent
from regulargpt_jax import config as regular_gpt_config
from tasks.cs import (
  binary_addition,
  binary_multiplication,
  bucket_sort,
  compute_sqrt,
  duplicate_string,
  missing_duplicate_string,
  odds_first,
)
from tasks.dcf import (
  modular_arithmetic_brackets,
  reverse_string,
  solve_equation,
  stack_manipulation,
)
from tasks.regular import (
  cycle_navigation,
  d_n,
  even_pairs,
  modular_arithmetic,
  parity_check,
  repetition,
  tomita,
  word_problem,
)

MODEL_BUILDERS = {
  'regular_gpt': regular_gpt.make_regular_gpt,
  **{
    name: functools.partial(models.make_baseline, name)
    for name in baselines.BUILDERS
  },
  **{
    name: functools.partial(token_models.make, builder)
    for name, builder in recurrent.MODELS.items()
  },
}

# By level of the Chomsky hierarchy.
_TASKS_BY_LEVEL = {
  'regular': {
    'even_pairs': even_pairs.EvenPairs,
    'modular_arithmetic': modular_arithmetic.ModularArithmetic,
    'parity_check': parity_check.ParityCheck,
    'cycle_navigation': cycle_navigation.CycleNavigation,
    **d_n.BUILDERS,
    **tomita.BUILDERS,
    **repetition.BUILDERS,
    'word_problem': word_problem.WordProblem,
  },
  'dcf': {
    'modular_arithmetic_brackets': (
      modular_arithmetic_brackets.ModularArithmeticBrackets
    ),
    'reverse_string': reverse_string.ReverseString,
    'solve_equation': solve_equation.SolveEquation,
    'stack_manipulation': stack_manipulation.StackManipulation,
  },
  'cs': {
    'duplicate_string': duplicate_string.DuplicateString,
    'missing_duplicate_string': missing_duplicate_string.MissingDuplicateString,
    'odds_first': odds_first.OddsFirst,
    'binary_addition': binary_addition.BinaryAddition,
    'binary_multiplication': binary_multiplication.BinaryMultiplication,
    'compute_sqrt': compute_sqrt.ComputeSqrt,
    'bucket_sort': bucket_sort.BucketSort,
  },
}
TASK_BUILDERS = {
  name: builder
  for builders in _TASKS_BY_LEVEL.values()
  for name, builder in builders.items()
}
PRESETS = regular_gpt_config.PRESETS

TASK_LEVELS = {
  name: level
  for level, builders in _TASKS_BY_LEVEL.items()
  for name in builders
}

CURRICULUM_BUILDERS = {
  'fixed': curriculum.FixedCurriculum,
  'uniform': curriculum.UniformCurriculum,
  'reverse_exponential': curriculum.ReverseExponentialCurriculum,
  'regular_increase': curriculum.RegularIncreaseCurriculum,
}
