"""An automaton out of a trained model, checked against it."""

import os

import jax
import numpy as np

from experiments.analysis import clusters, outputs
from experiments.analysis import subject as subject_lib
from experiments.engine import files, parameters, progress, tables
from experiments.engine import workdir as workdir_lib
from experiments.formal import config as config_lib
from regulargpt_jax import model
from regulargpt_jax.analysis import clusters as clusters_lib
from regulargpt_jax.analysis import extraction, tree
from regulargpt_jax.construction import minimization
from tasks import task as task_lib
from tasks.automata import fields as fields_lib
from tasks.automata import writing
from tasks.regular import regular_task

Machine = tuple[np.ndarray, int, np.ndarray]

# Below this share of nodes that are the product of their children, what the
# table says is not what the model does.
_MIN_COMPOSED = 0.99
NAME = 'automaton'
# States of an automaton that people read.
_MAX_PRINTED = 20


def extract(
  workdir: str,
  num_strings: int,
  length: int,
  max_clusters: int,
  max_test_length: int,
  task_module: str = '',
) -> None:
  """Extracts the automaton of a trained model.

  Writes `automaton.json`, `automaton.dot` and `automaton.att`, all of which
  `launch.train --automaton` reads, and `extraction.json`, the numbers; prints
  these and, of a small automaton, the first two. There is no `.att` of more
  than two answers.

  Args:
    workdir: Of a trained RegularGPT.
    num_strings: Strings of the task to find clusters from, and to test on at
      each length.
    length: Of the longest of the former; all lengths from 1 are used.
    max_clusters: Most clusters to look for.
    max_test_length: The automaton is compared with the model on strings of 1 to
      this many symbols.
    task_module: See `experiments.formal.run.load_experiment`.

  Raises:
    ValueError: If the workdir holds another model, an argument is wrong, or the
      model's clusters do not compose.
    OSError: If there is no good checkpoint, or a file cannot be written.
  """
  search = clusters.Search(num_strings, max_clusters)
  clusters.check(search, length)
  for what, longest in (
    ('length', length),  # All lengths to it, so fewer than of an analysis.
    ('max_test_length', max_test_length),
  ):
    parameters.check_bounds(what, longest, 1, 2**16)
  held = workdir_lib.load(workdir, config_lib.Experiment)
  subject = subject_lib.load(workdir, held, task_module)
  subject_lib.check_fits(subject, num_strings, max_test_length)
  nodes = clusters.find(
    subject,
    search,
    range(1, length + 1),
  )
  symbols_U = nodes.symbols
  composition = extraction.compose(
    subject.config, subject.params, nodes.clusters, symbols_U, max_clusters
  )
  share_composed = _share_composed(subject, nodes, composition, symbols_U)
  num_clusters = len(composition.centers)
  if share_composed < _MIN_COMPOSED:
    raise ValueError(
      f'No automaton can be extracted: the {num_clusters} clusters found do not'
      f' compose. Only {share_composed:.1%} of the outputs are in the cluster'
      f' that their parts compose to; {_MIN_COMPOSED:.0%} are needed. The model'
      ' may not be trained enough, or need more --max_clusters.'
    )
  left_out = subject_lib.left_out(subject, symbols_U)
  machine = extraction.machine(composition)
  extracted = _smallest(machine)
  agreement = _agreement(
    subject, extracted, symbols_U, num_strings, max_test_length
  )
  results = {
    'num_clusters': num_clusters,
    'share_composed': share_composed,
    'num_states': len(extracted[2]),
    'symbols_left_out': left_out,
    'classes': extracted[2].tolist(),
    'agreement_with_model': agreement,
    'max_test_length': max_test_length,
    'strings_per_length': num_strings,
  }
  rows = [
    ('clusters found', num_clusters),
    ('outputs that their parts compose to, share', share_composed),
    ('states of the minimal automaton', len(extracted[2])),
    (f'agreement with the model, lengths 1..{max_test_length}', agreement),
  ]
  if left_out:
    rows.append(('symbols left out, in no string', ' '.join(left_out)))
  if subject.machine is not None:
    transitions, start, classes = subject.machine
    difference = extraction.shortest_difference(
      extracted, (transitions[:, symbols_U], start, classes)
    )
    # Nobody knows about the symbols that were left out.
    results['is_equivalent_to_task'] = None if left_out else True
    verdict = 'yes'
    if left_out:
      verdict = f'only on {" ".join(subject.symbols[v] for v in symbols_U)}'
    if difference is not None:
      results['is_equivalent_to_task'] = False
      string = subject_lib.written(subject, symbols_U[difference])
      results['shortest_difference'] = string
      verdict = f'no, not on {string}'
    rows.append(("equivalent to the task's own automaton", verdict))
  fields = _to_json(subject, extracted, symbols_U)
  texts, left_undone = {}, []
  for ending, to_text in writing.FORMATS.items():
    try:
      texts[ending] = to_text(fields)
    except ValueError as error:
      left_undone.append(str(error))
  path = os.path.join(workdir, NAME)
  for ending, text in texts.items():
    files.write_atomically(path + ending, text)
  outputs.save_results(subject.experiment, workdir, 'extraction', results)
  print(tables.named_values(f'automaton of the model on {subject.name}', rows))
  if len(extracted[2]) <= _MAX_PRINTED:
    print(texts['.json'] + texts['.dot'], end='')
  print('automaton: ' + ', '.join(path + ending for ending in texts))
  for problem in left_undone:
    print(problem)


def _share_composed(subject, nodes, composition, symbols_U) -> float:
  chunk_size = subject.config.chunk_size
  used = tree.used(nodes.tokens, chunk_size)
  labels = [
    np.where(mask, clusters_lib.nearest(composition.centers, x), -1)
    for x, mask in zip(nodes.outputs, used, strict=True)
  ]
  symbols = np.searchsorted(symbols_U, nodes.tokens)
  symbols = np.where(nodes.tokens < 0, -1, symbols)
  return extraction.share_composed(composition, symbols, labels, chunk_size)


def _smallest(machine: Machine) -> Machine:
  """Returns the minimal machine.

  The model has no answer to the empty string, so that the start's class is
  free: we take one that lets the start be one of the other states, if any does.
  """
  transitions, start, classes = machine
  candidates = []
  for start_class in np.unique(classes[:start]):
    with_class = np.append(classes[:start], start_class)
    candidates.append(minimization.minimal(transitions, start, with_class))
  return min(candidates, key=lambda candidate: len(candidate[2]))


def _agreement(
  subject: subject_lib.Subject,
  machine: Machine,
  symbols_U: np.ndarray,
  num_strings: int,
  max_length: int,
) -> float:
  """Returns the share of strings that a machine and the model answer alike.

  Args:
    subject: The model, and the task that the strings are of.
    machine: Over the symbols in use.
    symbols_U: Those; strings with others count as answered differently.
    num_strings: Of each length.
    max_length: Lengths are 1 to this.
  """
  extracted = regular_task.make_machine(*machine)
  apply = jax.jit(model.RegularGPT(subject.config).apply)
  symbol_V = np.zeros(subject.task.input_size, int)
  symbol_V[symbols_U] = np.arange(len(symbols_U))
  lengths = range(1, max_length + 1)
  num_alike = 0
  with progress.timed(f'Comparing with the model on lengths 1..{max_length}'):
    for tokens in subject_lib.sample(subject, num_strings, lengths):
      symbols = np.where(tokens < 0, task_lib.NO_SYMBOL, symbol_V[tokens])
      right_B = regular_task.answers(extracted, symbols)
      answer_B = np.asarray(apply(subject.params, tokens)).argmax(-1)
      is_known_B = np.isin(tokens, [task_lib.NO_SYMBOL, *symbols_U]).all(-1)
      num_alike += (is_known_B & (right_B == answer_B)).sum()
  return float(num_alike / (num_strings * max_length))


def _to_json(
  subject: subject_lib.Subject, machine: Machine, used_U: np.ndarray
) -> dict:
  """Returns the JSON object of an automaton.

  States are numbered by their answers where no two have the same, so that
  `--target=state` asks the task's own question; else breadth first. If it has
  answers other than 0 and 1, they are its outputs.
  """
  transitions, start, classes = machine
  order = np.arange(len(classes))
  if set(classes.tolist()) == set(order.tolist()):
    order = np.argsort(classes)
  number = np.argsort(order)
  names = [str(c) for c in classes[order]]
  return fields_lib.from_arrays(
    [subject.symbols[v] for v in used_U],
    [str(q) for q in range(len(order))],
    number[transitions[order]],
    number[start],
    (classes[order] != 0).tolist(),
    names if classes.max() > 1 else None,
  )
