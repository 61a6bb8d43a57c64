"""How papers since 2023 test state tracking, as data: presets and numbers.

A protocol says which lengths are trained on and which are scored, and how. All
models of a protocol are trained alike: width 64, two layers where a model has
several, the same steps, batches, rates and seeds. For recipes nearer to a
paper's own, `training_steps` and `batch_size` are flags of launch.sweep.
"""

from typing import NamedTuple

from experiments.sweeps import paper
from experiments.sweeps.grid import Preset


class Published(NamedTuple):
  """A number that a paper reports, in percent.

  Attributes:
    percent: As it is printed, scaled or not.
    source: Where, what it is of, and how it was chosen.
  """

  percent: float
  source: str


class Protocol(NamedTuple):
  """What is scored.

  Attributes:
    first: Shortest strings that are scored, to the longest tested; of models
      that are trained on longer ones than the preset's, by as many longer.
    is_scaled: Whether a score is (accuracy - chance) / (1 - chance).
    published: By task and model of the preset.
  """

  first: int
  is_scaled: bool
  published: dict[tuple[str, str], list[Published]]


_BASE = {
  'batch_size': 32,
  'training_steps': 5000,
  'schedule': 'cosine',
  'warmup_steps': 200,
  'range_test_batch_size': 16,
  # Half of the strings are at most half as long as the longest.
  'smallest_bucket': 8,
  'log_every': 100,
  'checkpoint_every': 1000,
}
_SIGNED = {'eigenvalues': '[-1,1]'}
_POSITIVE = {'eigenvalues': '[0,1]'}


def _with_signs(name: str) -> dict:
  """Returns a model's fields with eigenvalues in [0, 1] and in [-1, 1]."""
  return {
    f'{name}{suffix}': {'architecture': name, 'architecture_params': params}
    for suffix, params in (('_0_1', _POSITIVE), ('_-1_1', _SIGNED))
  }


_MODELS = {
  'rnn': {'architecture_params': {'hidden_size': 64}},
  'lstm': {'architecture_params': {'hidden_size': 64}},
  'transformer': {
    'architecture': 'transformer_encoder',
    'architecture_params': {
      'positional_encodings': 'RELATIVE',
      'num_layers': 2,
    },
  },
  'looped_log': {'architecture': 'looped_transformer'},
  'slstm': {},
  'mlstm': {},
  **_with_signs('mamba_2'),
  **_with_signs('gated_delta_net'),
  **_with_signs('gated_delta_product'),
  **_with_signs('rwkv_7'),
  'pd_ssm': {},
  'regular_gpt_c2': {'architecture': 'regular_gpt', 'chunk_size': 2},
}
# It knows the automaton in training (see docs/sweeps.md), and has no answers to
# prefixes.
_OF_LAST_ANSWERS = {
  **_MODELS,
  'regular_gpt_c2_nodes': {
    **_MODELS['regular_gpt_c2'],
    'node_weight': 1.0,
    'max_extra_levels': 2,
  },
}
_TASKS = {
  'parity_check': {},
  'even_pairs': {},
  'cycle_navigation': {},
  # Without brackets.
  'modular_arithmetic': {},
}
_GROUPS = ('S3', 'A5', 'S5')
_RATES = (1e-3, 3e-3)


def _growing(first: int) -> dict:
  """Returns fields of training lengths that grow from `first` to 40.

  All lengths so far are drawn alike, and a longer one joins every 75 steps: the
  last two fifths of 5,000 steps see all of them.
  """
  return {
    'sequence_length': 40,
    'curriculum': 'regular_increase',
    'curriculum_params': {
      'initial_sequence_length': first,
      'increase_frequency': 75,
      'increase_amount': 1,
      'sample_all_length': True,
      'max_sequence_length': 40,
    },
  }


_GROWTH = (
  'of which a longer one joins every 75 steps (in the papers all are there from'
  ' the start)'
)
_CHOICE = (
  'The preset has models of width 64 and 5,000 steps of 32 strings, far fewer'
  ' than in the papers. The learning rate is the one of the highest accuracy,'
  ' averaged over its seeds, on fresh strings of training lengths below those'
  ' that are scored; where several have the same, or none of these is tested,'
  ' numbers are of the runs of all of them. The model is that of the last step,'
  ' and no other was looked at.'
)

PRESETS = {
  'chomsky': Preset(
    {**_BASE, **_growing(1), 'max_range_test_length': 500},
    _TASKS,
    _OF_LAST_ANSWERS,
    learning_rates=_RATES,
    about=f'Trained on lengths 1 to 40, {_GROWTH}, accuracy on 41 to 500'
    f' (Deletang et al., 2023). {_CHOICE}',
  ),
  'xlstm': Preset(
    {
      **_BASE,
      **_growing(3),
      'min_range_test_length': 3,
      'max_range_test_length': 256,
    },
    _TASKS,
    _OF_LAST_ANSWERS,
    learning_rates=_RATES,
    about=f'Trained on lengths 3 to 40, {_GROWTH}, accuracy on 40 to 256,'
    f' scaled so that chance is 0 (Beck et al., 2024, appendix D). {_CHOICE}',
  ),
  'word_problems': Preset(
    {
      **_BASE,
      'answers': 'prefixes',
      'sequence_length': 32,
      'max_range_test_length': 512,
    },
    {
      name: {'task': 'word_problem', 'task_params': {'group': name}}
      for name in _GROUPS
    },
    _MODELS,
    learning_rates=_RATES,
    about='Products of elements of a group, of every prefix; trained on lengths'
    ' 1 to 32, accuracy of all prefixes on 33 to 512. (Merrill et al., 2024,'
    f' and Siems et al., 2025, train on one length.) {_CHOICE}',
  ),
}

# Of published rows, of which some are short.
_COLUMNS = (
  'parity_check',
  'modular_arithmetic',
  'cycle_navigation',
  'even_pairs',
)
_DELETANG = 'Deletang et al., 2023, Table 2, the best of 10 seeds'
# That modular arithmetic begins or ends with a sign is in the authors' code.
_CHI = (
  'Chi et al., 2023, Table 1, the best of all runs on these lengths, modular'
  ' arithmetic with a "+" before it'
)
_BECK = 'Beck et al., 2024, scaled; how it was chosen was not verified'
_GRAZZI = 'Grazzi et al., 2025, Table 3, scaled, the best of 3 seeds'
_SLICE = (
  'SLiCE, Walker et al., 2025, Table 2, not scaled, mean of 5 seeds, step'
  ' chosen on these lengths'
)
_MAMBA_3 = 'Mamba-3, 2026, scaled; its lengths were not verified'
_PD_SSM = (
  'Terzic et al., 2025, not scaled, 5 seeds, stopped and chosen on these'
  ' lengths, modular arithmetic with a "=" behind it, a 1 in each row of P and'
  ' not column'
)


def _table(source: str, rows: dict) -> dict:
  """Returns published numbers by task and model, of rows by model."""
  return {
    (task, model): [Published(percent, source)]
    for model, row in rows.items()
    for task, percent in zip(_COLUMNS, row, strict=False)
  }


def _together(*found: dict) -> dict:
  together: dict = {}
  for numbers in found:
    for key, published in numbers.items():
      together.setdefault(key, []).extend(published)
  return together


PROTOCOLS = {
  'chomsky': Protocol(
    41,
    False,
    _together(
      _table(
        _DELETANG,
        {
          'rnn': (100.0, 100.0, 100.0, 100.0),
          'lstm': (100.0, 100.0, 100.0, 100.0),
          'transformer': (52.0, 24.2, 61.9, 96.4),
        },
      ),
      _table(
        _CHI,
        {
          'regular_gpt_c2': [
            paper.TABLE_1[task, 'regular_gpt_c2'][0] for task in _COLUMNS
          ]
        },
      ),
    ),
  ),
  'xlstm': Protocol(
    40,
    True,
    _together(
      _table(_BECK, {'slstm': (100.0, 100.0)}),
      _table(
        _GRAZZI,
        {
          'transformer': (2.2, 3.1),
          'mlstm': (8.7, 4.0),
          'slstm': (100.0, 78.7),
        },
      ),
      _table(
        _MAMBA_3,
        {'mamba_2_0_1': (0.9, 47.8), 'gated_delta_net_-1_1': (100.0, 99.3)},
      ),
      _table(
        _SLICE,
        {
          'lstm': (100.0, 99.9, 100.0, 100.0),
          'slstm': (100.0, 27.7, 32.5, 100.0),
          'gated_delta_product_-1_1': (98.0, 78.4, 46.3, 100.0),
          'rwkv_7_0_1': (51.0, 40.0, 38.0, 88.0),
          'transformer': (52.0, 24.0, 24.0, 90.0),
        },
      ),
      _table(_PD_SSM, {'pd_ssm': (99.9, 96.2, 99.5, 99.7)}),
    ),
  ),
  'word_problems': Protocol(33, False, {}),
}
