"""The numbers of Table 3 that Chi et al. (2023) published, as data.

Keys are names of models in `presets`.
"""

_TABLE_3_MODELS = (
  'kerple',
  't5',
  'alibi',
  'regular_gpt_32_6',
  'regular_gpt_64_6',
  'regular_gpt_128_6',
  'regular_gpt_128_12',
  'regular_gpt_256_6',
)

# Table 3: perplexity on OpenWebText2 by length, mean of 3 seeds.
_TABLE_3 = {
  512: (24.71, 24.50, 24.53, 32.06, 30.17, 28.80, 26.37, 27.90),
  1024: (24.42, 24.38, 24.90, 32.03, 30.30, 28.94, 26.91, 34.38),
  2048: (24.21, 25.01, 25.08, 791.74, 30.56, 29.14, 27.08, 34.85),
  4096: (24.53, 28.91, 25.08, 812.00, 30.80, 29.25, 27.28, 35.11),
  8192: (24.74, 39.08, 25.08, 818.49, 1175.91, 29.41, 27.39, 35.42),
}

# (model, length): perplexity.
TABLE_3 = {
  (model, length): number
  for length, row in _TABLE_3.items()
  for model, number in zip(_TABLE_3_MODELS, row, strict=True)
}
