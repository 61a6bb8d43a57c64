"""What presets are made of: counts, initial deviations, refusals."""

from flax import traverse_util
import jax
import jax.numpy as jnp
import pytest

from regulargpt_jax import config as config_lib
from regulargpt_jax import model as model_lib


def _num_parameters(preset, vocab_size, output_size, **overrides):
  config = config_lib.make_config(preset, vocab_size, output_size, **overrides)
  model = model_lib.RegularGPT(config)
  shapes = jax.eval_shape(
    lambda: model.init(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
  )
  return sum(x.size for x in jax.tree.leaves(shapes))


def test_parameter_counts():
  assert _num_parameters('benchmark', 2, 2) == 790_034
  for thickness, millions in ((6, 81), (12, 124)):
    count = _num_parameters(
      'language', 50257, 50257, thickness=thickness, chunk_size=128
    )
    assert round(count / 1e6) == millions


def _deviations(preset, **overrides):
  config = config_lib.make_config(
    preset, 50, 50, embedding_dim=32, widening_factor=2, **overrides
  )
  model = model_lib.RegularGPT(config)
  params = jax.jit(model.init)(jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
  flat = traverse_util.flatten_dict(params['params'], sep='/')
  return {name: float(jnp.std(x)) for name, x in flat.items() if x.ndim > 1}


def test_initial_deviations_are_those_of_the_presets():
  """Haiku's linear layer; GPT-2's with smaller residual projections."""
  truncated = 0.8796  # Deviation of a normal one cut off at two.
  heads = {'num_heads': 8, 'chunk_size': 16}
  by_haiku = _deviations('benchmark', **heads)
  by_gpt2 = _deviations('language', thickness=2, **heads)
  for name, actual in by_haiku.items():
    fan_in = 64 if 'ffn_out' in name else 32
    expected = truncated * (0.02 if name == 'embedding' else fan_in**-0.5)
    expected = 0.02 if name.endswith('position_bias') else expected
    assert actual == pytest.approx(expected, rel=0.15), name
  for name, actual in by_gpt2.items():
    is_residual = 'projection' in name or 'ffn_out' in name
    expected = 0.02 / 2 if is_residual else 0.02  # sqrt(2 * 2 blocks).
    assert actual == pytest.approx(expected, rel=0.15), name


@pytest.mark.parametrize(
  ('field', 'value'),
  [
    ('chunk_size', 1),
    ('thickness', 0),
    ('num_heads', 3),
    ('norm', 'batch'),
    ('dropout_rate', 1.0),
  ],
)
def test_bad_hyperparameters_are_named(field, value):
  with pytest.raises(ValueError, match=field):
    config_lib.make_config('benchmark', 2, 2, **{field: value})
