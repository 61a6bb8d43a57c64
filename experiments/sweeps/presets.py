"""The paper's tables as data, protocols of others, and ours."""

import dataclasses

from experiments.formal import automata
from experiments.sweeps import protocols
from experiments.sweeps.grid import Preset

# The preset whose tasks are the automata of a user's folder.
OF_AUTOMATA = 'mlregtest'


def with_tasks(preset: Preset, folder: str | None) -> Preset:
  """Returns a preset whose tasks, if it has none, are automata of a folder.

  Args:
    preset: With or without tasks.
    folder: Each file that ends as one of an automaton is a task, called so.

  Raises:
    ValueError: If tasks are given twice or not at all, or if there is no
      automaton, or one cannot be read.
  """
  if preset.tasks and folder is None:
    return preset
  if preset.tasks:
    raise ValueError(f'--automata is for --preset={OF_AUTOMATA}.')
  if folder is None:
    raise ValueError('Give --automata, the folder of automata to learn.')
  found = automata.read_folder(folder)
  tasks = {name: {'automaton': fields} for name, fields in found.items()}
  return dataclasses.replace(preset, tasks=tasks)


# Chi et al. (2023), appendix A; the number of test strings is ours.
_PAPER = {
  'batch_size': 128,
  'training_steps': 100_000,
  'embedding_dim': 256,
  'num_heads': 8,
  'precision': 'float32',
  'range_test_batch_size': 512,
  # Four programs (8, 16, 32 and 40 symbols) in place of one: half the work.
  'smallest_bucket': 8,
  'log_every': 1000,
  'checkpoint_every': 10_000,
}
# Trained and tested on; Table 1's caption.
_FIRST_GROUP = {'sequence_length': 40, 'max_range_test_length': 500}
_SECOND_GROUP = {'sequence_length': 50, 'max_range_test_length': 100}

_TASKS = {
  'even_pairs': _FIRST_GROUP,
  # What the authors ran puts a + before every string.
  'modular_arithmetic': {
    **_FIRST_GROUP,
    'task_params': {'leading_plus': True},
  },
  'parity_check': _FIRST_GROUP,
  'cycle_navigation': _FIRST_GROUP,
  'd_2': _SECOND_GROUP,
  'd_3': _SECOND_GROUP,
  'd_4': _SECOND_GROUP,
  'd_12': _SECOND_GROUP,
  'tomita_3': _SECOND_GROUP,
  'tomita_4': _SECOND_GROUP,
  'tomita_5': _SECOND_GROUP,
  'tomita_6': _SECOND_GROUP,
}

_RNN = {'architecture': 'rnn', 'architecture_params': {'hidden_size': 256}}
# 4.3 M parameters; the paper's Transformer-XL-style baseline.
_TRANSFORMER = {
  'architecture': 'transformer_encoder',
  'architecture_params': {'positional_encodings': 'RELATIVE', 'num_layers': 5},
}
_REGULAR_GPT_C2 = {'architecture': 'regular_gpt', 'chunk_size': 2}
_REGULAR_GPT_C3 = {'architecture': 'regular_gpt', 'chunk_size': 3}
# Ours: the paper trains at no depth beyond what the length needs.
_EXTRA = {'max_extra_levels': 4}

_MODELS = {
  'rnn': _RNN,
  'transformer': _TRANSFORMER,
  'regular_gpt_c2': _REGULAR_GPT_C2,
  'regular_gpt_c3': _REGULAR_GPT_C3,
}
_EXTRA_MODELS = {
  'regular_gpt_c2_extra': {**_REGULAR_GPT_C2, **_EXTRA},
  'regular_gpt_c3_extra': {**_REGULAR_GPT_C3, **_EXTRA},
}
_PROBABILITIES = {
  f'p={probability}': {'probability': probability}
  for probability in (0.1, 0.3, 0.5, 0.7, 0.9)
}

# Minutes to an hour a cell on two CPU cores.
_SMALL = {**_PAPER, 'embedding_dim': 64, 'training_steps': 3000}
_SMALL_RNN = {**_RNN, 'architecture_params': {'hidden_size': 64}}
# 0.1 M parameters. It sees fewer strings, each of which costs more.
_SMALL_TRANSFORMER = {
  **_TRANSFORMER,
  'architecture_params': {'positional_encodings': 'RELATIVE', 'num_layers': 2},
  'batch_size': 32,
  'range_test_batch_size': 16,
}
_SMALL_MODELS = {
  'rnn': _SMALL_RNN,
  'transformer': _SMALL_TRANSFORMER,
  'regular_gpt_c2': _REGULAR_GPT_C2,
  'regular_gpt_c3': _REGULAR_GPT_C3,
}
_SMALL_RATES = (5e-4, 2e-3)
_SMALL_ABOUT = (
  'with models of width 64, not 256, trained for 3,000 steps, not 100,000, at'
  ' learning rates of 5e-4 and 2e-3, not 1e-4, 3e-4 and 5e-4; its transformer'
  ' has 2 layers, not 5, and batches of 32 strings, not 128; it is tested on 16'
  ' strings a length, not 512.'
)
_TABLE_2_TASK = {
  'parity_check': {**_FIRST_GROUP, 'task_params': {'probability': 0.5}}
}
_TABLE_2_MODELS = ('regular_gpt_c2', 'rnn', 'transformer')

# Ours: a loss on every node, and levels that no length needs.
_RECIPE = {
  'batch_size': 32,
  'training_steps': 8000,
  'warmup_steps': 200,
  'schedule': 'cosine',
  'node_weight': 1.0,
  'max_extra_levels': 2,
  'smallest_bucket': 64,
}
_RECIPE_TASKS = {
  **_TASKS,
  # Its automaton's states have 819 maps, far more than others'.
  'd_12': {**_SECOND_GROUP, 'training_steps': 16_000},
  'modular_arithmetic': {
    **_TASKS['modular_arithmetic'],
    'thickness': 2,
    'batch_size': 128,
    'training_steps': 12_000,
    'range_test_batch_size': 128,
    # Of a step that long, widths are worth their compilations.
    'smallest_bucket': 8,
  },
}


# C = 3 takes twice the steps.
_RECIPE_MODELS = {
  'recipe_c2': _REGULAR_GPT_C2,
  'recipe_c3': {**_REGULAR_GPT_C3, 'training_steps': 16_000},
}
_TOLD = (
  'Ours is told the automaton of the task in training, as no other model is.'
)


def _perfect(model: str, *tasks: str) -> Preset:
  """Returns the preset of how many seeds are right on every string."""
  regular_gpt, recipe = f'regular_gpt_{model}', f'recipe_{model}'
  return Preset(
    {
      **_SMALL,
      'embedding_dim': 32,
      'num_heads': 4,
      'range_test_batch_size': 128,
    },
    {task: _TASKS[task] for task in tasks},
    {
      regular_gpt: _MODELS[regular_gpt],
      recipe: {**_RECIPE, **_RECIPE_MODELS[recipe]},
    },
    learning_rates=(1e-3,),
    seeds=range(64),
    about='How many of 64 seeds are right on every string, 128 of each length,'
    ' with models of width 32: with the recipe of table1_small at a learning'
    f' rate of 1e-3, and with ours. {_TOLD}',
  )


_TINY = {
  **_PAPER,
  'batch_size': 16,
  'training_steps': 20,
  'embedding_dim': 16,
  'num_heads': 2,
  'range_test_batch_size': 32,
  'log_every': 5,
  'checkpoint_every': 10,
}
_TINY_LENGTHS = {'sequence_length': 8, 'max_range_test_length': 20}
_TINY_PARAMS = {
  'rnn': {'architecture_params': {'hidden_size': 16}},
  'transformer': {
    'architecture_params': {
      'positional_encodings': 'RELATIVE',
      'num_layers': 1,
    }
  },
}

# Trained and tested on the lengths of MLRegTest's files (van der Poel et al.,
# 2023), on a CPU: a minute a cell.
_MLREGTEST = {
  **_PAPER,
  'embedding_dim': 32,
  'num_heads': 4,
  'batch_size': 64,
  'training_steps': 2000,
  'sequence_length': 29,
  'curriculum_params': {'values': list(range(20, 30))},
  'min_range_test_length': 20,
  'max_range_test_length': 50,
  'range_test_batch_size': 256,
  'adversarial': True,
  # One program to train, one to test: most of a cell's time goes into them.
  'smallest_bucket': 64,
}

PRESETS = {
  'table1': Preset(_PAPER, _TASKS, _MODELS, paper=1),
  'table1_extra': Preset(_PAPER, _TASKS, _EXTRA_MODELS, beside='table1'),
  'table2': Preset(
    _PAPER,
    _TABLE_2_TASK,
    {name: _MODELS[name] for name in _TABLE_2_MODELS},
    tests={'parity_check': _PROBABILITIES},
    paper=2,
  ),
  'table1_small': Preset(
    _SMALL,
    _TASKS,
    _SMALL_MODELS,
    learning_rates=_SMALL_RATES,
    paper=1,
    about=f'Table 1 {_SMALL_ABOUT}',
  ),
  'table2_small': Preset(
    _SMALL,
    _TABLE_2_TASK,
    {name: _SMALL_MODELS[name] for name in _TABLE_2_MODELS},
    learning_rates=_SMALL_RATES,
    tests={'parity_check': _PROBABILITIES},
    paper=2,
    about=f'Table 2 {_SMALL_ABOUT}',
  ),
  'recipe': Preset(
    {**_SMALL, **_RECIPE},
    _RECIPE_TASKS,
    _RECIPE_MODELS,
    learning_rates=(1e-3,),
    beside='table1_small',
    about='Ours: the preset recipe, width 64, a loss on every node of the tree'
    ' and 0 to 2 extra levels a step, trained for 8,000 steps of 32 strings'
    ' (d_12 and C = 3: 16,000), at a learning rate of 1e-3, after 200 steps of'
    ' warm-up and with cosine decay; modular arithmetic for 12,000 steps (C ='
    ' 3: 16,000) of 128 strings, with two blocks a level, tested on 128 strings'
    ' a length.'
    f' {_TOLD}',
  ),
  'perfect': _perfect('c2', 'parity_check', 'even_pairs', 'cycle_navigation'),
  'perfect_c3': _perfect('c3', 'parity_check'),
  # Its tasks are a user's automata.
  OF_AUTOMATA: Preset(
    _MLREGTEST,
    {},
    {
      'rnn': _SMALL_RNN,
      'regular_gpt_c2': _REGULAR_GPT_C2,
      'regular_gpt_c2_extra': {**_REGULAR_GPT_C2, **_EXTRA},
    },
    learning_rates=(1e-3, 3e-3),
    seeds=(0,),
  ),
  **protocols.PRESETS,
  # All kinds of cell of the paper's tables, tiny: minutes on a CPU.
  'smoke': Preset(
    _TINY,
    {name: {**fields, **_TINY_LENGTHS} for name, fields in _TASKS.items()},
    {
      name: {**fields, **_TINY_PARAMS.get(name, {})}
      for name, fields in {**_MODELS, **_EXTRA_MODELS}.items()
    },
    learning_rates=(1e-3, 3e-3),
    seeds=(0, 1),
    tests={'parity_check': _PROBABILITIES},
  ),
}
