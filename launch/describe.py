"""Shows what a task is, with sampled strings; without a task, lists all.

python -m launch.describe --task=tomita_3
"""

from experiments.formal import config, describe
from launch import flag_lib

_FIELDS = (*config.TASK_FIELDS, 'min_range_test_length', 'seed')
flag_lib.define_experiment(_FIELDS, optional=True)


def main() -> None:
  """Prints the page."""
  values = flag_lib.experiment_values(_FIELDS)
  names = ('task', 'task_module', 'regex', 'automaton', 'strings')
  if not any(values[name] for name in names):
    for name, value in values.items():
      if value is not None:
        raise ValueError(
          f'--{name} needs {" or ".join(f"--{name}" for name in names)}.'
        )
    print(describe.list_tasks())
    return
  # Which says nothing of the longest test string.
  longest = values['min_range_test_length']
  experiment = config.Experiment().replaced(max_range_test_length=longest)
  print(describe.describe(experiment.replaced(**values)))


if __name__ == '__main__':
  flag_lib.run(main)
