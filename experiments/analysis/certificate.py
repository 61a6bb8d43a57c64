"""A proof that a model is right on every string, or why there is none."""

import time
from typing import Any

import numpy as np

from experiments.analysis import certificate_picture, clusters, outputs
from experiments.analysis import subject as subject_lib
from experiments.engine import parameters, progress, tables
from experiments.engine import workdir as workdir_lib
from experiments.formal import config as config_lib
from regulargpt_jax.analysis import (
  closure,
  depths,
  equivalence,
  exact,
  level_map,
  snapping,
)

NAME = 'certificate'
MAX_CHUNKS = 2**13
# Strings from which clusters are found: so many of each length up to so many.
_NUM_STRINGS, _LENGTH = 64, 40
_MAX_STATES = 2000
_CHUNK_SIZES = (2, 3)
# Wider models need more memory than is worth the try.
_MAX_WIDTH = 256

_EXACT = (
  'float32, in which all sums of this model are exact, and exp of -110 is 0'
)
_ROUNDED = (
  'real numbers, and IEEE float32 with sums of products in any order, exp,'
  ' division and rsqrt to 4 units in the last place'
)


def certify(
  workdir: str, max_chunks: int | None = None, task_module: str = ''
) -> None:
  """Proves that a model is right on every string, or says what is missing.

  Writes `certificate.json`, and where something is proved `certificate.npz` and
  `certificate.png`; prints the numbers.

  Args:
    workdir: Of a trained or compiled RegularGPT.
    max_chunks: Regions are refined until there are more chunks of them,
      `MAX_CHUNKS` unless given; those of compiled models never are.
    task_module: See `experiments.formal.run.load_experiment`.

  Raises:
    ValueError: If the workdir holds another kind of model, the task has no
      automaton, or max_chunks is impossible.
    OSError: If there is no good checkpoint, or a file cannot be written.
  """
  if max_chunks is not None:
    parameters.check_bounds('max_chunks', max_chunks, 1, 2**24)
  held = workdir_lib.load(workdir, config_lib.Experiment)
  subject = subject_lib.load(workdir, held, task_module)
  _check(subject, workdir)
  began = time.monotonic()
  compiled = exact.is_exact(subject.config)
  if compiled and max_chunks is not None:
    raise ValueError(
      '--max_chunks is not for a compiled model, whose regions are points.'
    )
  if max_chunks is None:
    max_chunks = MAX_CHUNKS
  if compiled:
    symbols_U = np.arange(subject.task.input_size)
    with progress.timed('Following the states'):
      found = exact.close(
        subject.config, subject.params, symbols_U, _MAX_STATES
      )
  else:
    nodes, found = _trained(subject, max_chunks)
    symbols_U = nodes.symbols
  results: dict[str, Any] = {
    'proved': isinstance(found, closure.Closed),
    'arithmetic': _EXACT if compiled else _ROUNDED,
    'symbols_left_out': subject_lib.left_out(subject, symbols_U),
  }
  if isinstance(found, closure.Leak):
    if not compiled:
      results |= _weaker(subject, nodes, max_chunks)
    _report_leak(subject, workdir, results, found)
    return
  verdict = _verdict(subject, symbols_U, found)
  results |= _numbers(found, verdict)
  results['seconds'] = time.monotonic() - began
  if verdict.difference is not None:
    string = subject_lib.written(subject, symbols_U[verdict.difference])
    results['difference'] = string
  _report(subject, workdir, results, found)


def _check(subject: subject_lib.Subject, workdir: str) -> None:
  """Raises a ValueError if there is nothing to prove, or no way to."""
  config = subject.config
  if subject.machine is None:
    raise ValueError(
      f'The task of {workdir} has no automaton that answers could be proved to'
      ' be those of.'
    )
  if config.thickness != 1 or config.chunk_size not in _CHUNK_SIZES:
    raise ValueError(
      'Only models of thickness 1 and chunk_size 2 or 3 can be certified; this'
      f' one has {config.thickness} and {config.chunk_size}.'
    )
  if not exact.is_exact(config) and config.embedding_dim > _MAX_WIDTH:
    raise ValueError(
      f'Trained models of embedding_dim up to {_MAX_WIDTH} can be certified;'
      f' this one has {config.embedding_dim}.'
    )


def is_proved_right(subject: subject_lib.Subject, max_chunks: int) -> bool:
  """Returns whether a trained model is proved right on every string.

  Args:
    subject: The model, which `certify` would not refuse.
    max_chunks: As of `certify`.
  """
  nodes, found = _trained(subject, max_chunks)
  is_closed = isinstance(found, closure.Closed)
  return (
    is_closed and _verdict(subject, nodes.symbols, found).difference is None
  )


def _trained(subject, max_chunks) -> tuple[clusters.Nodes, Any]:
  """Returns states of strings, and what is proved."""
  nodes = _nodes(subject)
  return nodes, _search(subject, nodes, max_chunks)


def _nodes(subject) -> clusters.Nodes:
  """Returns states of strings, and their clusters."""
  search = clusters.Search(_NUM_STRINGS, clusters.MAX_CLUSTERS)
  return clusters.find(subject, search, range(1, _LENGTH + 1))


def _labels(nodes: clusters.Nodes) -> list[np.ndarray]:
  """Returns two ways to sort a sample of states, in numbers from 0.

  Either is a guess: clusters can be cut wrongly, maps be those of the task
  only.
  """
  return [
    np.unique(label, return_inverse=True)[1].reshape(-1)
    for label in (nodes.label, nodes.true_map)
  ]


def _search(subject, nodes, max_chunks) -> Any:
  """Returns what is proved of a trained model."""
  found = None
  for label in _labels(nodes):
    with progress.timed(f'Growing regions from {label.max() + 1} clusters'):
      new = closure.close(
        subject.config,
        subject.params,
        nodes.sample,
        label,
        nodes.symbols,
        max_chunks,
        lambda regions, chunks: progress.say(
          f'{regions} regions, {chunks:,} of {max_chunks:,} chunks ...'
        ),
      )
    if isinstance(new, closure.Closed):
      return new
    if found is None or new.needed < found.needed:
      found = new
  return found


def _machine(subject, symbols_U) -> tuple[np.ndarray, int, np.ndarray]:
  """Returns the task's machine over some symbols."""
  transitions, start, outputs = subject.machine
  return transitions[:, symbols_U], start, outputs


def _verdict(subject, symbols_U, found) -> equivalence.Verdict:
  config = subject.config
  return equivalence.compare(
    found, _machine(subject, symbols_U), config.chunk_size, config.min_levels
  )


def _weaker(subject, nodes, max_chunks) -> dict[str, Any]:
  """Returns what is proved where no regions are closed."""
  config, symbols_U = subject.config, nodes.symbols
  w = level_map.weights(config, subject.params)
  with progress.timed('Following regions level by level'):
    levels = depths.right_levels(
      w, _machine(subject, symbols_U), symbols_U, config.min_levels, max_chunks
    )
  result = {'right_up_to': config.chunk_size**levels if levels else 0}
  for label in _labels(nodes):
    of_label = [nodes.sample[label == i] for i in range(label.max() + 1)]
    centers = np.stack([x.mean(0) for x in of_label])
    snapped = snapping.close(w, centers, symbols_U)
    if snapped is None:
      continue
    difference = _verdict(subject, symbols_U, snapped).difference
    if difference is not None:
      difference = subject_lib.written(subject, symbols_U[difference])
    if 'snapped' not in result or difference is None:
      result['snapped'] = {
        'num_centers': len(centers),
        'is_right': difference is None,
        'difference': difference,
      }
  return result


def _numbers(found: closure.Closed, verdict: equivalence.Verdict) -> dict:
  """Returns what is worth keeping of a proof."""
  radii = None
  if found.shapes is not None:
    radii = np.linalg.norm(found.shapes, ord=2, axis=(1, 2)).tolist()
  return {
    'is_right': verdict.difference is None,
    'num_regions': len(found.classes),
    'radii': radii,
    'num_chunks': len(found.products),
    'largest_share_of_a_region': found.worst,
    'worst_chunk': found.worst_chunk,
    'margin_of_the_answer': found.margin,
    'first_level_in_regions': found.first_level,
    'levels_until_nothing_new': verdict.num_levels,
    'classes': found.classes.tolist(),
  }


def _report(subject, workdir, results, found) -> None:
  """Writes and prints a proof."""
  where = ''
  if results['symbols_left_out']:
    left = [s for s in subject.symbols if s not in results['symbols_left_out']]
    where = f' of {" ".join(left)}'
  if results['is_right']:
    statement = f'right on every string{where} of every length'
  else:
    statement = (
      'equal to a finite automaton at every length, which is wrong on'
      f' {results["difference"]}'
    )
  results['statement'] = statement
  rows = [
    ('regions', results['num_regions']),
    ('chunks of regions, each bounded', results['num_chunks']),
  ]
  if found.shapes is not None:
    rows += [
      ('radius of the largest region', max(results['radii'])),
      ('largest share of a region that is filled', found.worst),
      ('states are in regions from level', found.first_level),
    ]
  rows += [
    ("least margin of an answer's logit", found.margin),
    ('levels until nothing new occurs', results['levels_until_nothing_new']),
    ('seconds', results['seconds']),
  ]
  figure, arrays = certificate_picture.draw(subject, found)
  print(tables.named_values(f'certificate on {subject.name}', rows))
  print(f'in {results["arithmetic"]}')
  print(f'proved: {statement}')
  outputs.save(subject.experiment, workdir, NAME, results, arrays, figure)


def _report_leak(subject, workdir, results, leak: closure.Leak) -> None:
  """Writes and prints why there is no proof."""
  results |= {
    'reason': leak.reason,
    'needed': leak.needed if np.isfinite(leak.needed) else None,
    'num_regions': leak.num_regions,
  }
  outputs.save_results(subject.experiment, workdir, NAME, results)
  print(f'not proved: {leak.reason}')
  if results.get('right_up_to'):
    print(
      'proved instead: right on every string of up to'
      f' {results["right_up_to"]:,} symbols'
    )
  if 'snapped' in results:
    snapped = results['snapped']
    right = 'right on every string of every length'
    if not snapped['is_right']:
      right = f'wrong on {snapped["difference"]}'
    print(
      'proved of another model, this one with each state moved to the nearest'
      f' of {snapped["num_centers"]} centers: {right}'
    )
  print(
    'This does not say that the model is wrong. More training with'
    ' --contraction_weight and --spread_weight, a smaller --embedding_dim, or a'
    ' larger --max_chunks may help.'
  )
