"""Figure 4: do the outputs of all levels cluster by transition?

The paper shows o^(l)_i of all levels, the vector that the next level and the
readout read (W_o o of section 7.2): behind the residual sum and the norm, not
the feed-forward's summand alone. We take the positions that the answer uses,
the tree of `reduce`. At the others, the last levels compose a few symbols with
nothing but padding again and again, which no answer asked of the model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
from matplotlib import figure as figure_lib
import numpy as np
from sklearn import decomposition, metrics

from experiments.analysis import outputs
from experiments.analysis import subject as subject_lib
from experiments.engine import options, parameters, pictures, progress, tables
from regulargpt_jax.analysis import clusters, tree
from tasks import task as task_lib

MAX_CLUSTERS = 64
# Outputs that the clusters are found from, and that are drawn.
_SAMPLE_SIZE = 2000
_MAX_IN_LEGEND = 12
# Maps of more states than this are numbered in the legend, not written out.
_MAX_STATES_WRITTEN = 8


class Nodes(NamedTuple):
  """Outputs of many strings' nodes and what is known of them.

  Letters: N nodes of all levels, S of them sampled evenly from the levels, D
  width, Q states, M distinct maps.

  Attributes:
    tokens: The strings, [B, T].
    outputs: Of the nodes by level, [B, n, D].
    clusters: The clusters.
    number: N.
    sample: Outputs that the clusters were found from.
    level: Their levels.
    label: Their clusters.
    true_map: Their true transitions, rows of `maps`; None if the task has no
      machine, like those below.
    maps: The true transitions that occur.
    map_of_cluster: The row that most of a cluster's nodes have, [k].
    rand_index: Adjusted Rand index of clusters and true transitions, all N;
      None if a single true transition occurs, where it means nothing.
  """

  tokens: np.ndarray
  outputs: list[np.ndarray]
  clusters: clusters.Clusters
  number: int
  sample: np.ndarray
  level: np.ndarray
  label: np.ndarray
  true_map: np.ndarray | None
  maps: np.ndarray | None
  map_of_cluster: np.ndarray | None
  rand_index: float | None

  @property
  def symbols(self) -> np.ndarray:
    """Those that occur in the strings, [U]: others were never trained."""
    return np.setdiff1d(self.tokens, [task_lib.NO_SYMBOL])


class Search(NamedTuple):
  """How clusters are looked for.

  Attributes:
    num_strings: Strings of the task to run, of each length.
    max_clusters: Most clusters to look for.
  """

  num_strings: int
  max_clusters: int


def check(search: Search, length: int) -> None:
  """Checks what is asked for, before anything is read.

  Args:
    search: How to look.
    length: Of the strings.

  Raises:
    ValueError: If a number is out of bounds.
  """
  parameters.check_bounds('num_strings', search.num_strings, 1, options.MAX_INT)
  parameters.check_bounds('max_clusters', search.max_clusters, 2, 2**10)
  parameters.check_bounds('length', length, 1, 2**24)


def find(
  subject: subject_lib.Subject,
  search: Search,
  lengths: Sequence[int],
) -> Nodes:
  """Returns the clusters of a model's outputs on strings of its task.

  Args:
    subject: What to look at.
    search: How to look.
    lengths: Of the strings.

  Raises:
    ValueError: If there are too few strings, or they are too short.
  """
  chunk_size = subject.config.chunk_size
  longest = max(lengths, default=0)
  if longest <= chunk_size**2:
    raise ValueError(
      f'Strings of length {longest} are too short to tell clusters apart:'
      f' with chunk_size {chunk_size}, at least {chunk_size**2 + 1} symbols are'
      ' needed, which give three levels.'
    )
  subject_lib.check_fits(subject, search.num_strings * len(lengths), longest)
  tokens = np.concatenate(
    list(subject_lib.sample(subject, search.num_strings, lengths))
  )
  with progress.timed(f'Running the model on {len(tokens)} strings'):
    trace = tree.trace(subject.config, subject.params, tokens)
  used = tree.used(tokens, chunk_size)

  def flat(levels):
    return np.concatenate(
      [x[mask] for x, mask in zip(levels, used, strict=True)]
    )

  output_NxD = flat(trace.outputs)
  level_N = flat([np.full(m.shape, level) for level, m in enumerate(used)])
  rng = np.random.default_rng(subject.experiment.seed)
  sample_S = clusters.even_sample(level_N, _SAMPLE_SIZE, rng)
  with progress.timed(f'Finding clusters of {len(output_NxD)} outputs'):
    found = clusters.find(output_NxD[sample_S], search.max_clusters)
  label_N = clusters.nearest(found.centers, output_NxD)
  true_S = maps_MxQ = map_of_cluster = rand_index = None
  if subject.machine is not None:
    maps = tree.true_maps(subject.machine.transitions, tokens, chunk_size)
    maps_MxQ, true_N = np.unique(flat(maps), axis=0, return_inverse=True)
    true_N = true_N.reshape(-1)
    counts = metrics.cluster.contingency_matrix(label_N, true_N)
    map_of_cluster = np.zeros(len(found.centers), int)
    map_of_cluster[np.unique(label_N)] = counts.argmax(-1)
    if len(maps_MxQ) > 1:
      rand_index = float(metrics.adjusted_rand_score(true_N, label_N))
    true_S = true_N[sample_S]
  return Nodes(
    tokens,
    trace.outputs,
    found,
    len(label_N),
    output_NxD[sample_S],
    level_N[sample_S],
    label_N[sample_S],
    true_S,
    maps_MxQ,
    map_of_cluster,
    rand_index,
  )


def analyze(
  subject: subject_lib.Subject,
  workdir: str,
  search: Search,
  length: int,
) -> None:
  """Writes `clusters.json`, `.npz` and `.png`, and prints the numbers.

  Args:
    subject: What to look at.
    workdir: Where to write.
    search: How to look for them.
    length: Of the strings.

  Raises:
    ValueError: If there are too few strings, or they are too short.
  """
  nodes = find(subject, search, [length])
  found = nodes.clusters
  pca = decomposition.PCA(2)
  with np.errstate(invalid='ignore'):  # All outputs may be the same.
    plane_Sx2 = pca.fit_transform(nodes.sample)
  shares = np.nan_to_num(pca.explained_variance_ratio_)
  number = len(found.centers)
  results = {
    'num_clusters': number,
    'num_true_transitions': None if nodes.maps is None else len(nodes.maps),
    'adjusted_rand_index': nodes.rand_index,
    'silhouette': found.silhouette_by_number.get(number),
    'gap': found.gap if np.isfinite(found.gap) else None,
    'silhouette_by_number': found.silhouette_by_number,
    'gap_by_number': found.gap_by_number,
    'explained_variance': shares.tolist(),
    'num_strings': search.num_strings,
    'length': length,
    'num_outputs': nodes.number,
  }
  rows = [
    ('outputs, of all levels', nodes.number),
    ('clusters found', number),
    ('gap, 1 if there are none', found.gap),
  ]
  if number in found.silhouette_by_number:
    rows.append(('silhouette', found.silhouette_by_number[number]))
  if nodes.maps is not None:
    index = nodes.rand_index
    if index is None:
      index = 'none: it needs two true transitions'
    rows += [
      ('true transitions that occur', len(nodes.maps)),
      ('adjusted Rand index', index),
    ]
  print(tables.named_values(f'clusters of outputs on {subject.name}', rows))
  if number == search.max_clusters:
    print('As many as were looked for: try a larger --max_clusters.')
  arrays = {
    'output': nodes.sample,
    'plane': plane_Sx2,
    'level': nodes.level,
    'cluster': nodes.label,
    'center': found.centers,
  }
  if nodes.maps is not None:
    arrays |= {'true_transition': nodes.true_map, 'maps': nodes.maps}
  figure = _picture(subject, nodes, plane_Sx2, shares, length)
  outputs.save(subject.experiment, workdir, 'clusters', results, arrays, figure)


def map_name(maps_MxQ: np.ndarray, number: int) -> str:
  """Returns how a transition is written: where it sends states 0, 1, ..."""
  if maps_MxQ.shape[1] > _MAX_STATES_WRITTEN:
    return f'transition {number}'
  return ' '.join(map(str, maps_MxQ[number]))


def _picture(
  subject, nodes: Nodes, plane_Sx2, shares, length: int
) -> figure_lib.Figure:
  """Returns the outputs in the plane, by level and by true transition."""
  figure = figure_lib.Figure(figsize=(11, 4), layout='constrained')
  by_level, by_kind = figure.subplots(1, 2)
  figure.suptitle(
    f'Outputs of all levels on {subject.name}, strings of length {length}'
  )
  num_levels = nodes.level.max() + 1
  shades = matplotlib.colormaps['viridis']
  # Levels coincide: a level's marks are larger than those of the levels below,
  # and behind them; their shapes differ too, for grey.
  for level in range(num_levels):
    is_here_S = nodes.level == level
    by_level.scatter(
      *plane_Sx2[is_here_S].T,
      s=8 + 14 * level,
      marker=pictures.style(level)['marker'],
      facecolors='none',
      edgecolors=[shades(0.9 * level / max(num_levels - 1, 1))],
      zorder=2 + num_levels - level,
      label=f'{level}, {subject.config.chunk_size ** (level + 1)}',
    )
  if nodes.maps is None:
    kinds, title = nodes.label, 'by the cluster found'
    names = [str(c) for c in range(len(nodes.clusters.centers))]
    what = 'cluster'
  else:
    kinds, title = nodes.true_map, 'by the true transition'
    names = [map_name(nodes.maps, m) for m in range(len(nodes.maps))]
    num_states = nodes.maps.shape[1]
    what = 'states 0, 1, ... go to'
    if num_states > _MAX_STATES_WRITTEN:
      what = f'of {num_states} states'
  if len(names) > _MAX_IN_LEGEND:
    what += f'\n(first {_MAX_IN_LEGEND} of {len(names)})'
  for kind in np.unique(kinds):
    by_kind.scatter(
      *plane_Sx2[kinds == kind].T,
      s=28,
      alpha=0.6,
      linewidths=0,
      **pictures.style(kind),
      label=names[kind] if kind < _MAX_IN_LEGEND else None,
    )
  for axes, heading in (
    (by_level, 'level, symbols\ncovered, at most'),
    (by_kind, what),
  ):
    # Distances in the plane are those of the outputs.
    axes.set_aspect('equal', 'datalim')
    axes.set_xlabel(f'first component ({shares[0]:.0%} of the variance)')
    axes.legend(
      title=heading,
      fontsize='small',
      title_fontsize='small',
      loc='center left',
      bbox_to_anchor=(1, 0.5),
    )
  by_level.set(title='by level', ylabel=f'second component ({shares[1]:.0%})')
  by_kind.set_title(title)
  return figure
