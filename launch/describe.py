"""Shows what a task is, with sampled strings; without a task, lists all.

python -m launch.describe --task=tomita_3
"""

from experiments.formal import config, describe
from launch import flag_lib

_FIELDS = (*config.TASK_FIELDS, 'min_range_test_length', 'seed')
flag_lib.define_experiment(_FIELDS, optional=True)


def main() -> None:
  """Prints the page."""
  print(describe.page(**flag_lib.experiment_values(_FIELDS)))


if __name__ == '__main__':
  flag_lib.run(main)
