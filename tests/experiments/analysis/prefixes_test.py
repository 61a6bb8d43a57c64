"""Models of all prefixes are looked at as models of whole strings."""

import json

import jax
import numpy as np

from experiments.analysis import extraction, subject
from experiments.formal import builders, compiled, config, run
from regulargpt_jax import model as model_lib


def test_a_model_of_prefixes_is_read_as_one_of_whole_strings():
  experiment = config.Experiment(
    task='cycle_navigation', answers='prefixes', embedding_dim=8, num_heads=2
  )
  task, model = builders.make_task_and_model(experiment)
  params = jax.jit(model.init)(jax.random.key(0))
  of_runs = jax.tree.map(lambda x: x[None], params)
  of_whole = subject.make(experiment, task, model, of_runs)
  tokens = np.array([[-1, -1, 0, 2, 1], [1, 1, 2, 0, 2]])
  of_prefixes = jax.jit(lambda tokens: model.apply(params, tokens, None))(
    tokens
  )
  assert of_prefixes.shape == (2, 5, 5)
  module = model_lib.RegularGPT(of_whole.config)
  np.testing.assert_allclose(
    jax.jit(module.apply)(of_whole.params, tokens),
    of_prefixes[:, -1],
    atol=1e-5,
  )
  answers = of_whole.task.solve(tokens)
  np.testing.assert_array_equal(answers, task.solve(tokens)[:, -1])
  assert of_whole.name == 'cycle_navigation'


def test_a_compiled_model_of_prefixes_comes_back(tmp_path, capsys):
  experiment = config.Experiment(
    task='word_problem',
    task_params={'group': 'Z3'},
    answers='prefixes',
    max_range_test_length=9,
    range_test_batch_size=8,
  )
  compiled.compile_task(experiment, str(tmp_path), 'one_hot')
  extraction.extract(
    str(tmp_path),
    num_strings=8,
    length=21,
    max_clusters=40,
    max_test_length=12,
  )
  results = json.loads((tmp_path / 'extraction.json').read_text())
  assert results['is_equivalent_to_task']
  assert 'automaton of the model on word_problem\n' in capsys.readouterr().out
  # In place, at each symbol of strings padded to more levels than they have.
  run.evaluate(str(tmp_path))
  found = json.loads((tmp_path / 'range_evaluation.json').read_text())
  assert len(found['accuracy']) == 9
  assert set(found['accuracy'].values()) == {1.0}
