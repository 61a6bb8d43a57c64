"""The numbers that Chi et al. (2023) published, as data.

Tables 1 and 2, in percent. Keys are names of tasks, models and tests in
`presets`.
"""

SAME_LENGTH = 'same length'
EXTRAPOLATION = 'extrapolation'

_TABLE_1_MODELS = ('rnn', 'transformer', 'regular_gpt_c2', 'regular_gpt_c3')

# Table 1: mean accuracy on lengths 41..500 (even_pairs to cycle_navigation) or
# 51..100 (the others); Max over all runs, Avg over 3 seeds.
_TABLE_1 = {
  'even_pairs': ((100.0, 100.0), (99.7, 73.2), (100.0, 89.3), (100.0, 96.6)),
  'modular_arithmetic': (
    (100.0, 100.0),
    (21.9, 20.3),
    (96.4, 82.6),
    (21.2, 20.5),
  ),
  'parity_check': ((100.0, 98.9), (52.3, 50.1), (100.0, 100.0), (100.0, 88.7)),
  'cycle_navigation': (
    (100.0, 100.0),
    (21.7, 20.6),
    (100.0, 100.0),
    (100.0, 78.6),
  ),
  'd_2': ((100.0, 100.0), (100.0, 80.1), (100.0, 100.0), (99.8, 96.5)),
  'd_3': ((100.0, 100.0), (100.0, 77.8), (100.0, 99.7), (98.6, 93.0)),
  'd_4': ((100.0, 100.0), (100.0, 82.6), (100.0, 98.7), (97.7, 91.6)),
  'd_12': ((100.0, 100.0), (100.0, 80.3), (100.0, 99.8), (94.1, 90.4)),
  'tomita_3': ((100.0, 100.0), (100.0, 94.4), (100.0, 99.7), (100.0, 99.9)),
  'tomita_4': ((100.0, 100.0), (100.0, 70.0), (100.0, 99.8), (100.0, 99.3)),
  'tomita_5': ((100.0, 100.0), (74.5, 74.5), (100.0, 99.8), (98.2, 84.1)),
  'tomita_6': ((100.0, 100.0), (50.0, 50.0), (100.0, 98.5), (100.0, 65.7)),
}

# (task, model): (Max, Avg).
TABLE_1 = {
  (task, model): numbers
  for task, row in _TABLE_1.items()
  for model, numbers in zip(_TABLE_1_MODELS, row, strict=True)
}

_TABLE_2_TESTS = ('p=0.1', 'p=0.3', 'p=0.5', 'p=0.7', 'p=0.9')

# Table 2: accuracy on PARITY at length 40, and its mean on lengths 41..500,
# over 3 seeds. The table does not say which C its RegularGPT has.
_TABLE_2 = {
  ('regular_gpt_c2', SAME_LENGTH): (100.0, 100.0, 100.0, 100.0, 100.0),
  ('rnn', SAME_LENGTH): (100.0, 100.0, 100.0, 100.0, 100.0),
  ('transformer', SAME_LENGTH): (98.4, 99.8, 99.6, 97.8, 77.2),
  ('regular_gpt_c2', EXTRAPOLATION): (100.0, 100.0, 100.0, 100.0, 100.0),
  ('rnn', EXTRAPOLATION): (100.0, 100.0, 100.0, 100.0, 100.0),
  ('transformer', EXTRAPOLATION): (50.1, 49.7, 50.3, 49.9, 50.0),
}

# (model, setting, test): Avg.
TABLE_2 = {
  (model, setting, test): number
  for (model, setting), row in _TABLE_2.items()
  for test, number in zip(_TABLE_2_TESTS, row, strict=True)
}
