"""One experiment on one language: all that its result depends on."""

from collections.abc import Container, Mapping
import dataclasses
import types
from typing import Any

from experiments.engine import experiment as experiment_lib
from experiments.engine import options
from experiments.formal import held_strings

# Symbols of a string.
MAX_LENGTH = 2**24


@dataclasses.dataclass(frozen=True)
class Experiment(experiment_lib.BaseExperiment):
  """A model, a task, and how the one is trained on the other.

  The help text of each field is its documentation. The defaults train on
  PARITY, in a minute on two CPU cores, to an accuracy of 1 on lengths 41..500.
  """

  evaluated_by = 'launch.evaluate'
  other_kinds = types.MappingProxyType(
    {'data_dir': 'a language model, for launch.evaluate_lm and launch.sample'}
  )

  task: str = options.option(
    'parity_check', 'Language, where nothing else brings one.'
  )
  task_params: dict = options.option(
    {},
    'JSON: arguments of the task, as {"probability": 0.3}; launch.describe'
    ' shows those of a --task.',
  )
  task_module: str = options.option(
    '',
    "Module of a user's own task, as my_package.my_task; --task then names its"
    ' class, which may be left out where there is only one.',
  )
  regex: str = options.option('', "Language, as a regular expression, '(01)*'.")
  alphabet: str = options.option(
    '01',
    'Symbols of --regex, one character each; or a JSON list, as'
    ' ["up", "down"].',
  )
  automaton: dict = options.option(
    {},
    "Language, as an automaton: a file, OpenFst's .att, AALpy's or LearnLib's"
    " .dot, JFLAP's .jff, or .json: "
    '{"alphabet": [...], "states": [...], "start": ..., "accepting": [...] or'
    ' "outputs": {state: answer}, "transitions": {state: {symbol: state}}}.',
    is_automaton=True,
  )
  strings: dict = options.option(
    {},
    "Language, as labelled strings to train on: a file, MLRegTest's,"
    " Abbadingo's, or FLaRe's main.tok. With --regex or --automaton beside it,"
    ' the model is tested on those, at any length.',
    is_strings=True,
  )
  test_strings: dict = options.option(
    {},
    'Files of labelled strings to test on, with commas between them.',
    is_strings=True,
  )
  target: str = options.option(
    'membership',
    'What to learn of --regex or --automaton: whether the string is in the'
    ' language, its answer if there are more, or the state that it leads to.',
    choices=('membership', 'state'),
  )
  answers: str = options.option(
    'last',
    'What is asked of a string: its answer, or that of each of its prefixes,'
    ' read at their ends; for tasks of an automaton.',
    choices=('last', 'prefixes'),
  )
  architecture: str = options.option('regular_gpt', 'Model to train.')
  model_module: str = options.option(
    '',
    "Module of a user's own model, as my_package.my_model; --architecture then"
    ' names it there, and may be left out where there is only one.',
  )
  architecture_params: dict = options.option(
    {},
    'JSON: further arguments of the model, as {"hidden_size": 64}; a wrong name'
    ' lists them.',
  )
  is_autoregressive: bool = options.option(
    False, 'Whether the model reads its outputs, one by one.'
  )
  computation_steps_mult: int = options.option(
    0,
    'Empty tokens between input and output, as a multiple of the input.',
    minimum=0,
    maximum=2**16,
  )
  preset: str = options.option(
    'benchmark',
    "RegularGPT's block: `benchmark` (post-norm, learned pad) or `language`"
    ' (as GPT-2).',
  )
  embedding_dim: int = options.with_default(
    experiment_lib.BaseExperiment,
    'embedding_dim',
    64,
    'Width of RegularGPT and of the transformers.',
  )
  num_heads: int = options.with_default(
    experiment_lib.BaseExperiment,
    'num_heads',
    8,
    'Attention heads of RegularGPT and of the transformers.',
  )
  training_steps: int = options.option(
    1000, 'Training steps; 0 for a model that launch.compile made.', minimum=0
  )
  dropout_rate: float = options.option(0.0, 'Dropout, in [0, 1).', minimum=0)
  max_extra_levels: int = options.option(
    0,
    'Each training step runs 0 to this many levels beyond the depth that the'
    ' length needs, drawn uniformly. 0 as in the paper; 4 generalizes to'
    ' depths never trained.',
    minimum=0,
    maximum=64,
  )
  contraction_weight: float = options.option(
    0.0,
    'Weight of a penalty on how far a level moves its output when its inputs'
    ' are moved. 0 as in the paper; 0.1 makes small models that launch.certify'
    ' can prove right.',
    minimum=0,
  )
  spread_weight: float = options.option(
    0.0,
    'Weight of a penalty on how far the states of one meaning are from their'
    " mean: one map of the task's automaton. 0 as in the paper; 0.03, beside"
    ' contraction_weight and node_weight, has launch.certify prove more; both'
    ' penalties then grow to their weights in the first 0.3 of the steps.',
    minimum=0,
  )
  node_weight: float = options.option(
    0.0,
    'Weight of a loss on every node of the tree, which has to tell where its'
    " symbols lead the task's automaton from each of its states. 0 as in the"
    ' paper.',
    minimum=0,
  )
  curriculum: str = options.option(
    'uniform', 'Distribution of training lengths.'
  )
  curriculum_params: dict = options.option(
    {}, 'JSON: arguments of the curriculum, as {"tau": 0.9}; `seed` is one.'
  )
  max_range_test_length: int = options.option(
    500,
    'Longest test string; every length from min_range_test_length is tested.',
    minimum=1,
    maximum=MAX_LENGTH,
  )
  min_range_test_length: int = options.option(
    1,
    'Shortest test string, for languages that have no shorter ones.',
    minimum=1,
    maximum=MAX_LENGTH,
  )
  adversarial: bool = options.option(
    False,
    'Whether to test also on pairs of strings at edit distance 1 that have'
    ' different answers, by length; for regular languages.',
  )
  range_test_batch_size: int = options.option(
    512, 'Strings per test length.', minimum=1
  )
  smallest_bucket: int = options.option(
    64,
    'Shorter strings are padded to this width. Smaller means more programs'
    ' to compile, each faster.',
    minimum=1,
  )

  def __post_init__(self):
    super().__post_init__()
    held_strings.check(self.strings, self.test_strings)
    if self.min_range_test_length > self.max_range_test_length:
      raise ValueError(
        f'min_range_test_length ({self.min_range_test_length:,}) must not'
        f' exceed max_range_test_length ({self.max_range_test_length:,}).'
      )

  @property
  def has_strings_alone(self) -> bool:
    """Whether the strings of a file are all that is known of the language."""
    return has_strings_alone(vars(self))

  @property
  def longest_tested(self) -> int:
    """Symbols of the longest test string."""
    longest = [
      length
      for strings in self.test_strings.values()
      for length, _ in strings['lengths']
    ]
    if not self.has_strings_alone:
      longest.append(self.max_range_test_length)
    elif not longest:
      longest = [length for length, _ in self.strings['lengths']]
    return max(longest)

  def steps_depend_on_their_number(self) -> bool:
    """See `BaseExperiment`."""
    return (
      super().steps_depend_on_their_number()
      or self.spread_weight > 0
      or self.curriculum == 'regular_increase'
    )


# Fields that bring a language, in place of `task`.
SOURCES = ('regex', 'automaton', 'strings')
# Fields that say which language it is.
LANGUAGE_FIELDS = (
  'task',
  'task_params',
  'task_module',
  'regex',
  'alphabet',
  'automaton',
  'strings',
  'target',
)
TASK_FIELDS = (*LANGUAGE_FIELDS, 'answers')


# Which strings of a language are tested, where more than a file's are known.
RANGE_FIELDS = ('max_range_test_length', 'min_range_test_length')


def has_strings_alone(fields: Mapping[str, Any]) -> bool:
  """Returns whether fields of an experiment bring strings and no language."""
  others = (fields.get(name) for name in SOURCES if name != 'strings')
  return bool(fields.get('strings')) and not any(others)


def check_range(is_alone: bool, fields: Mapping[str, Any]) -> None:
  """Checks that a range of test lengths is asked for where there is one.

  Args:
    is_alone: Whether the experiment has strings alone.
    fields: What was asked for; None where it was not.

  Raises:
    ValueError: If the strings of files are all that is tested.
  """
  for name in RANGE_FIELDS:
    if is_alone and fields.get(name) is not None:
      raise ValueError(
        f'--{name} is not for --strings without --regex or --automaton: all'
        ' strings of the files are tested.'
      )


def check_source(fields: Mapping[str, Any], given: Container[str]) -> None:
  """Checks that no task is named beside what else brings the language.

  Args:
    fields: Of an experiment.
    given: Names of those that were given.

  Raises:
    ValueError: If one is.
  """
  sources = [name for name in SOURCES if fields.get(name)]
  for name in ('task', 'task_params'):
    if sources and name in given:
      raise ValueError(f'--{name} is not for --{sources[0]}.')


def task_title(experiment: Experiment) -> str:
  """Returns what an experiment's task is called in reports."""
  if experiment.regex:
    title = f'the regex {experiment.regex}'
  elif experiment.strings:
    title = experiment.strings['file']
  elif experiment.automaton:
    title = 'an automaton'
  else:
    title = _title(experiment, 'task', 'task_module')
  return title if experiment.answers == 'last' else f'{title}, all prefixes'


def model_title(experiment: Experiment) -> str:
  """Returns what an experiment's model is called in reports."""
  return _title(experiment, 'architecture', 'model_module')


def _title(experiment: Experiment, kind: str, module: str) -> str:
  """Returns the name, or where none is given, the module's, if any."""
  name = getattr(experiment, kind)
  is_named = name != getattr(Experiment, kind)
  return name if is_named else getattr(experiment, module) or name
