"""Nothing too large is tried: it is refused at once, before a file is made."""

import pytest

from experiments.engine import estimates
from experiments.engine import workdir as workdir_lib
from experiments.formal import builders, config, limits, run, task_checks
from tests import refusals
from tests.experiments.formal import tiny

_TINY = {
  'embedding_dim': 8,
  'num_heads': 2,
  'sequence_length': 5,
  'batch_size': 4,
  'max_range_test_length': 9,
  'range_test_batch_size': 4,
  'training_steps': 1,
}
_RNN = {'architecture': 'rnn', **tiny.NO_SIZES}
_NDSTACK = {'architecture': 'ndstack_rnn', **tiny.NO_SIZES}
_TAPE = {'architecture': 'tape_rnn', **tiny.NO_SIZES}


@pytest.fixture(autouse=True)
def _any_machine(monkeypatch):
  """Tests are to be refused what they ask for, not to get it."""
  monkeypatch.setattr(estimates, 'host_memory', lambda: 2**34)


def _params(**params):
  return {'architecture_params': params}


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'batch_size': 2**63}, 'batch_size must be at most 2,147,483,647, got'),
    ({'batch_size': 10**9}, '1,000,000,000 strings of up to 5 symbols need'),
    ({'batch_size': True}, 'batch_size must be a whole number, got True'),
    ({'thickness': 10**8}, 'thickness must be at most 256'),
    ({'chunk_size': 10**9}, 'chunk_size must be at most'),
    ({'max_extra_levels': 10**9}, 'max_extra_levels must be at most 64'),
    ({'sequence_length': 10**11}, 'sequence_length must be at most'),
    ({'training_steps': 10**12}, 'training_steps must be at most'),
    ({'computation_steps_mult': 10**9}, 'computation_steps_mult must be'),
    ({'embedding_dim': 10**7}, 'The parameters, their gradients and the state'),
    ({'learning_rate': 10**400}, 'learning_rate must be a finite number'),
    ({'max_range_test_length': 10**12}, 'max_range_test_length must be at'),
    ({'max_range_test_length': 2**24, 'range_test_batch_size': 10**6}, ' TB'),
    ({'range_test_batch_size': 2**31 - 1}, 'test strings of up to 9 symbols'),
    (_params(widening_factor=10**12), 'widening_factor must be at most'),
    (_params(min_levels=10**9), 'min_levels must be at most 64'),
    (_params(max_levels=10**9), 'max_levels must be at most 64'),
    (_params(max_levels=0), 'max_levels must be at least 1'),
    (_params(norm=3), 'architecture_params: norm must be text, got 3'),
    (_params(output_size=3), "regular_gpt has no 'output_size'"),
    ({**_RNN, **_params(hidden_size=2**24)}, 'The parameters'),
    ({**_RNN, **_params(hidden_size=0)}, 'hidden_size must be at least 1'),
    ({**_RNN, **_params(hidden_size=True)}, 'hidden_size must be a whole'),
    ({**_RNN, **_params(rnn_core=1)}, "rnn has no 'rnn_core'; its arguments"),
    ({**_RNN, 'batch_size': 10**8}, '100,000,000 strings'),
    # Of which every place has a vector, and every pair of places a weight.
    (
      {**tiny.NO_SIZES, 'architecture': 'mamba_2', 'sequence_length': 2**23},
      'strings of up to 8,388,608 symbols need about',
    ),
    *(
      (
        {**tiny.NO_SIZES, 'architecture': name, 'max_range_test_length': 10**6},
        'test strings of up to 1,000,000 symbols need about',
      )
      for name in ('looped_transformer', 'transformer_encoder')
    ),
    ({**_NDSTACK, **_params(stack_states=10**5)}, 'The parameters'),
    ({**_NDSTACK, **_params(stack_size=-3)}, 'stack_size must be at least 1'),
    ({**_TAPE, **_params(mlp_layers_size=[0])}, 'mlp_layers_size must be at'),
    ({**_TAPE, **_params(mlp_layers_size=3)}, 'mlp_layers_size must be a list'),
    *(
      ({'architecture': 'transformer', **_params(**params)}, message)
      for params, message in (
        ({'num_layers': 0}, 'num_layers must be at least 1, got 0'),
        ({'num_layers': 10**9}, 'num_layers must be at most 256'),
        ({'attention_window': 0}, 'attention_window must be at least 1'),
        ({'attention_window': 10**12}, 'attention_window must be at most 16,7'),
        ({'max_time': 10**12}, 'max_time must be at most 16,777,216'),
        ({'randomized_positions': 2**31}, 'randomized_positions must be at m'),
        ({'num_hiddens_per_head': -1}, 'num_hiddens_per_head must be at'),
        ({'emb_init_scale': -1}, 'emb_init_scale must be positive'),
        ({'widening_factor': 0}, 'widening_factor must be at least 1'),
      )
    ),
    (
      {'task': 'modular_arithmetic', 'task_params': {'leading_plus': 3}},
      'task_params: leading_plus must be true or false, got 3',
    ),
    ({'task_params': {'probability': 'x'}}, 'probability must be a finite'),
    ({'task': 'd_2', 'task_params': {'n': 10**9}}, 'n must be from 1 to'),
    *(
      ({'curriculum': name, 'curriculum_params': params}, message)
      for name, params, message in (
        ('uniform', {'seed': float('inf')}, 'seed must be a whole number'),
        ('uniform', {'seed': 2**70}, 'seed must be from 0 to 4294967295'),
        ('uniform', {'seed': -1}, 'seed must be from 0 to'),
        ('uniform', {'values': [10**17]}, 'which are not within 1..seq'),
        ('uniform', {'values': 3}, 'values must be a list'),
        ('fixed', {'sequence_length': True}, 'sequence_length must be a whole'),
        ('fixed', {'sequence_length': 10**17}, 'not within 1..sequence_length'),
        ('reverse_exponential', {'tau': float('nan')}, 'tau must be a finite'),
        ('regular_increase', {'increase_amount': 0}, 'must be at least 1'),
        (
          'regular_increase',
          {'max_sequence_length': None},
          'max_sequence_length must be a whole number',
        ),
      )
    ),
  ],
)
def test_impossible_is_refused_at_once(fields, message, tmp_path):
  with pytest.raises(ValueError) as error:
    run.train_and_evaluate(
      config.Experiment(**(_TINY | fields)), str(tmp_path / 'run')
    )
  assert message in str(error.value)
  assert '\n' not in str(error.value)
  assert len(str(error.value)) < 600
  assert not list(tmp_path.iterdir())


_USERS = {'task_module': 'tests.experiments.formal.user_task', 'task': 'Repeat'}


def test_a_users_task_is_not_sampled_where_it_does_not_fit(monkeypatch):
  monkeypatch.setattr(task_checks, '_check_sizes', None)
  with pytest.raises(ValueError, match='strings of 5 symbols need about 40 GB'):
    builders.make_task(
      config.Experiment(**_TINY | _USERS | {'batch_size': 2 * 10**9})
    )


@pytest.mark.parametrize('architecture', ['regular_gpt', 'rnn', 'transformer'])
def test_what_is_usual_fits(architecture):
  experiment = config.Experiment(
    architecture=architecture, embedding_dim=256, batch_size=1024
  )
  task, model = builders.make_task_and_model(experiment)
  limits.check(experiment, task, model)


def test_many_runs_need_more(monkeypatch):
  experiment = config.Experiment(**_TINY)
  task, model = builders.make_task_and_model(experiment)
  monkeypatch.setattr(estimates, 'memory', lambda: 2**20)
  limits.check(experiment, task, model, num_runs=8)
  with pytest.raises(ValueError, match='of 80000 runs, their'):
    limits.check(experiment, task, model, num_runs=80_000)


def test_a_program_that_does_not_fit_is_not_run(monkeypatch, tmp_path):
  experiment = config.Experiment(**_TINY)
  monkeypatch.setattr(limits, 'check', lambda *args: None)
  monkeypatch.setattr(estimates, 'memory', lambda: 2**10)
  with pytest.raises(ValueError, match='The arrays of the training of strings'):
    run.train_and_evaluate(experiment, str(tmp_path / 'run'))
  assert not (tmp_path / 'run' / 'checkpoints' / '1').exists()


def test_a_workdir_with_impossible_contents_is_refused(tmp_path):
  path = tmp_path / 'config.json'
  deep = '[' * 9_999 + ']' * 9_999
  for contents, message in (
    (deep, 'nested more than 64 deep'),
    ('[]', 'it holds no experiment'),
    ('{"experiment": [1]}', 'it holds no experiment'),
    (
      '{"experiment": {"batch_size": true}}',
      'batch_size must be a whole number',
    ),
    ('{"experiment": {"seed": ' + '9' * 400 + '}}', 'more than 18 digits'),
    ('{"experiment": {}, "runs": [["a", 0, 0]]}', 'learning_rate must be a'),
    (
      '{"experiment": {}, "runs": [[1, 1e99, 0]]}',
      'seed must be a whole number',
    ),
  ):
    path.write_text(contents)
    with refusals.one_line(f'^Cannot read {path}') as error:
      workdir_lib.load(str(tmp_path), config.Experiment)
    assert message in str(error.value)


def test_answers_in_place_need_vectors_at_all_symbols():
  """One answer to a string needs a few: short substrings are looked up."""

  def check(answers):
    experiment = config.Experiment(
      answers=answers, max_range_test_length=2**19, range_test_batch_size=64
    )
    limits.check_evaluation(
      experiment, *builders.make_task_and_model(experiment)
    )

  check('last')
  with pytest.raises(ValueError, match='64 test strings of up to 524,288'):
    check('prefixes')
