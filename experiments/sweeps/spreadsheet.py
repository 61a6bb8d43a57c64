"""Measured cells as CSV, every number of the tables."""

from experiments.engine import tables as tables_lib
from experiments.sweeps import numbers, tables


def comma_separated(found: tables.Tables) -> str:
  """Returns every number as CSV, a line each; a missing one has none."""
  lines = [_line(entry) for entries in found.values() for entry in entries]
  header = list(lines[0]) if lines else []
  rows = ([line[name] for name in header] for line in lines)
  return tables_lib.comma_separated([header, *rows])


def _line(entry: numbers.Entry) -> dict[str, object]:
  ours, theirs, result = entry.ours, entry.paper, entry.result

  def of_result(get):
    return '' if result is None else get(result)

  def rounded(value):
    return '' if value is None else round(value, 4)

  def less(ours, theirs):
    return '' if ours is None or theirs is None else rounded(ours - theirs)

  line = {
    'preset': entry.preset,
    'task': entry.cell.task,
    'model': entry.cell.model,
    'test': entry.test,
    'setting': entry.setting,
    'status': tables.MISSING if ours is None else 'measured',
  }
  for name in ('max', 'avg', 'mean'):
    line[f'{name}_percent'] = rounded(getattr(ours, name, None))
  for name in ('max', 'avg'):
    line[f'paper_{name}_percent'] = rounded(getattr(theirs, name, None))
    line[f'difference_{name}'] = less(
      getattr(ours, name, None), getattr(theirs, name, None)
    )
  line |= {
    'best_learning_rates': numbers.spelled(ours.learning_rates if ours else ()),
    'score_percent_by_learning_rate': of_result(lambda r: tables.scores(entry)),
    'runs': of_result(lambda r: len(r.runs)),
    'perfect_runs': of_result(lambda r: numbers.num_perfect(r, entry.test)),
    'diverged_runs': of_result(lambda r: len(numbers.diverged(r))),
    'training_steps': of_result(lambda r: r.experiment.get('training_steps')),
    'training_length': of_result(lambda r: r.training_length),
    'longest_length': of_result(lambda r: len(r.accuracy[entry.test][0])),
    'chance_percent': of_result(lambda r: rounded(100 * r.chance)),
    'constant_percent': of_result(
      lambda r: (
        rounded(100 * r.constant[entry.test])
        if entry.test in r.constant
        else ''
      )
    ),
    'training_s': of_result(lambda r: r.wall_time_s.get('training')),
    'evaluation_s': of_result(lambda r: r.wall_time_s.get('evaluation')),
    'date': of_result(lambda r: r.date),
    'not_as_preset': '; '.join(tables.differences(entry)),
    'flags': of_result(lambda r: tables.flags(entry)),
  }
  for name in ('device', 'num_devices', 'jax', 'flax', 'python', 'git_commit'):
    line[name] = of_result(lambda r, name=name: r.environment.get(name))
  return line
