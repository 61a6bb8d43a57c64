"""The answers to prefixes are those of strings that end there."""

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.formal import builders, config
from tasks.regular import cycle_navigation, prefixes, tomita, word_problem
from tests.tasks import checks

_WIDTH = 9
_TASKS = {
  'cycle': cycle_navigation.CycleNavigation(),
  'words': word_problem.WordProblem('S3'),
  'tomita': tomita.BUILDERS['tomita_4'](),
}


@pytest.mark.parametrize('name', _TASKS)
@pytest.mark.parametrize('length', [1, 2, 7])
def test_each_is_the_whole_s_answer_to_the_prefix(name, length):
  whole = _TASKS[name]
  task = prefixes.Prefixes(whole)
  assert task.output_length(length) == length
  tokens = checks.sample(task, 0, length, _WIDTH, batch_size=20)
  np.testing.assert_array_equal(
    tokens, checks.sample(whole, 0, length, _WIDTH, batch_size=20)
  )
  answers = np.asarray(task.solve(tokens))
  assert answers.shape == (20, _WIDTH)
  assert (answers[:, : _WIDTH - length] == -1).all()
  for end in range(length):
    prefix = jnp.asarray(tokens)[:, _WIDTH - length : _WIDTH - length + end + 1]
    np.testing.assert_array_equal(
      answers[:, _WIDTH - length + end], whole.solve(prefix)
    )


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'task': 'modular_arithmetic'}, 'ModularArithmetic has no answers to all'),
    ({'task': 'reverse_string'}, 'ReverseString has none'),
    ({'answers': 'first'}, r'one of last, prefixes|last or prefixes'),
  ],
)
def test_what_has_none_is_refused(fields, message):
  with pytest.raises(ValueError, match=message):
    builders.make_task(
      config.Experiment(
        **{'task': 'parity_check', 'answers': 'prefixes'} | fields
      )
    )
