"""Which positions feed which: r, the weights, and the tree of one string."""

import textwrap
from typing import NamedTuple

from matplotlib import figure as figure_lib
import numpy as np

from experiments.analysis import clusters, outputs
from experiments.analysis import subject as subject_lib
from experiments.engine import pictures
from regulargpt_jax.analysis import clusters as clusters_lib
from regulargpt_jax.analysis import tree

_MAX_LENGTH = 128
# More symbols than this cannot be read in a picture.
_MAX_DRAWN = 64
# Where r is less than its largest value by this, the weight is 0 in float32's
# eyes: exp(-20) is 2e-9. Compiled models have r of -10,000.
_MAX_R_DRAWN = 20.0


class FirstWrong(NamedTuple):
  """Where an answer goes wrong.

  Attributes:
    is_wrong: Whether a node's cluster is not its true transition, by level
      [n].
    level: Of the deepest wrong node that leads to the root by wrong nodes only;
      None if the root is right.
    node: Its number in the level, the first of several.
  """

  is_wrong: list[np.ndarray]
  level: int | None
  node: int | None


def find_first_wrong(is_wrong: list[np.ndarray], chunk_size: int) -> FirstWrong:
  """Follows wrong nodes down from the root as far as they go.

  Args:
    is_wrong: By level, [n].
    chunk_size: C.
  """
  level, wrong = len(is_wrong) - 1, [0]
  if not is_wrong[level][0]:
    return FirstWrong(is_wrong, None, None)
  while level:
    below = is_wrong[level - 1]
    # Numbered from the end, the children of i are C i to C i + C - 1.
    parents = len(is_wrong[level]) - 1 - np.array(wrong)
    is_child = np.isin(
      (len(below) - 1 - np.arange(len(below))) // chunk_size, parents
    )
    children = np.flatnonzero(below & is_child).tolist()
    if not children:
      break
    level, wrong = level - 1, children
  return FirstWrong(is_wrong, level, wrong[0])


def analyze(
  subject: subject_lib.Subject,
  workdir: str,
  string: str,
  search: clusters.Search,
  length: int,
) -> None:
  """Writes `attention.json`, `.npz` and `.png`, and prints the numbers.

  Args:
    subject: What to look at.
    workdir: Where to write.
    string: What to look at it with, as people write it.
    search: How to look for the clusters, in strings of two lengths.
    length: One of them; the other is that of the string.

  Raises:
    ValueError: If the string is too short or too long or has unknown symbols,
      or the model has more than one block a level.
  """
  chunk_size = subject.config.chunk_size
  if subject.config.thickness > 1:
    raise ValueError(
      'Attention is a tree only for thickness 1; this model has'
      f' {subject.config.thickness}.'
    )
  tokens_T = subject_lib.parse(subject, string)
  if not 2 <= len(tokens_T) <= _MAX_LENGTH:
    raise ValueError(
      f'The string must have 2 to {_MAX_LENGTH} symbols, got {len(tokens_T)}.'
    )
  # Some maps may occur at nodes of strings of its own length only.
  lengths = sorted({length, len(tokens_T)})
  nodes = clusters.find(subject, search, lengths)
  trace = tree.trace(subject.config, subject.params, tokens_T[None])
  labels = [
    clusters_lib.nearest(nodes.clusters.centers, x[0]) for x in trace.outputs
  ]
  spans = tree.spans(len(tokens_T), chunk_size)
  answer, right, first_wrong = int(trace.logits[0].argmax()), None, None
  if subject.machine is not None:
    transitions, start, classes = subject.machine
    maps = tree.true_maps(transitions, tokens_T[None], chunk_size)
    right = int(classes[maps[-1][0, -1, start]])
    found = [nodes.maps[nodes.map_of_cluster[label]] for label in labels]
    is_wrong = [(f != m[0]).any(-1) for f, m in zip(found, maps, strict=True)]
    first_wrong = find_first_wrong(is_wrong, chunk_size)
  r_HxC = np.asarray(subject.params['params']['block_0']['position_bias'])
  weights_LxHxC = np.stack([w[0].mean(0) for w in trace.attention])
  verdict = _verdict(answer, right, first_wrong, spans)
  print(f'attention on {subject.name}, string {string}')
  print('r by head (a line) and distance 0, 1, ... (a column):')
  for row in r_HxC:
    print('  ' + ' '.join(f'{value:8.3f}' for value in row))
  print(f'answer {answer}: {verdict}')
  results = {
    'string': string,
    'answer': answer,
    'right_answer': right,
    'verdict': verdict,
    'first_wrong': None
    if first_wrong is None or first_wrong.level is None
    else {
      'level': first_wrong.level,
      'positions': spans[first_wrong.level][first_wrong.node].tolist(),
    },
    'r': r_HxC.tolist(),
    'mean_weights': weights_LxHxC.tolist(),
  }
  arrays = {'r': r_HxC, 'tokens': tokens_T}
  for level, (weights, label) in enumerate(
    zip(trace.attention, labels, strict=True)
  ):
    arrays[f'weights_{level}'] = weights[0]
    arrays[f'cluster_{level}'] = label
  figure = _picture(
    subject, tokens_T, trace, labels, spans, nodes, first_wrong, r_HxC
  )
  title = f'{subject.name}: answer {answer}. {verdict}'
  figure.suptitle(textwrap.fill(title, int(8 * figure.get_figwidth())))
  outputs.save(
    subject.experiment, workdir, 'attention', results, arrays, figure
  )


def _verdict(answer, right, first_wrong, spans) -> str:
  """Returns a sentence about an answer."""
  if right is None:
    return 'No automaton of the task is known to compare with.'
  if first_wrong.level is not None:
    first, after = spans[first_wrong.level][first_wrong.node]
    where = f'level {first_wrong.level}, positions {first} to {after - 1}'
    if answer == right:
      return f'Right, although wrong nodes lead to the root, from {where} on.'
    parts = ', whose parts are right' if first_wrong.level else ''
    return f'Wrong, {right} is right. It first goes wrong at {where}{parts}.'
  if answer != right:
    return f'Wrong, {right} is right; the root is its true transition.'
  num_wrong = sum(int(wrong.sum()) for wrong in first_wrong.is_wrong)
  if num_wrong:
    number = sum(map(len, first_wrong.is_wrong))
    return f'Right, with a wrong transition at {num_wrong} of {number} nodes.'
  return 'Right, and every node is its true transition.'


def _picture(
  subject, tokens_T, trace, labels, spans, nodes, first_wrong, r_HxC
) -> figure_lib.Figure:
  """Returns r, the mean weights, and the tree."""
  num_symbols, num_levels = min(len(tokens_T), _MAX_DRAWN), len(labels)
  width = max(9.0, 0.22 * num_symbols + 3.0)
  figure = figure_lib.Figure(
    figsize=(width, 3.0 + 0.8 * (num_levels + 1)), layout='constrained'
  )
  above, below = figure.subfigures(
    2, 1, height_ratios=(2.4, 0.8 * (num_levels + 1))
  )
  r_axes, weight_axes = above.subplots(1, 2, width_ratios=(1, num_levels))
  _draw_matrices(above, r_axes, weight_axes, r_HxC, trace.attention)
  axes = below.subplots()
  _draw_tree(axes, subject, tokens_T, trace, labels, spans, nodes, first_wrong)
  return figure


def _draw_matrices(figure, r_axes, weight_axes, r_HxC, attention) -> None:
  """Draws r, and the mean weights of each level, by head and distance."""
  num_heads, chunk_size = r_HxC.shape
  least = r_HxC.max() - _MAX_R_DRAWN
  is_clipped = r_HxC.min() < least
  image = r_axes.imshow(
    r_HxC, cmap='cividis', aspect='auto', vmin=least if is_clipped else None
  )
  figure.colorbar(
    image,
    ax=r_axes,
    label=f'r, from {least:.0f} down alike' if is_clipped else 'r',
    extend='min' if is_clipped else 'neither',
  )
  r_axes.set(
    title='position bias r',
    xlabel='distance j',
    ylabel='head',
    xticks=range(chunk_size),
    yticks=range(num_heads),
  )
  means = np.concatenate([w[0].mean(0) for w in attention], axis=-1)
  image = weight_axes.imshow(
    means, cmap='cividis', aspect='auto', vmin=0.0, vmax=1.0
  )
  figure.colorbar(image, ax=weight_axes, label='mean attention weight')
  for level in range(len(attention)):
    if level:
      weight_axes.axvline(level * chunk_size - 0.5, color='white', linewidth=3)
    weight_axes.text(
      (level + 0.5) * chunk_size - 0.5,
      -0.6,
      f'level {level}',
      ha='center',
      va='bottom',
      fontsize='small',
    )
  weight_axes.set_title('weights of each level', pad=18)
  weight_axes.set(
    ylabel='head',
    xlabel='distance j, in units of the dilation',
    xticks=range(means.shape[-1]),
    xticklabels=list(range(chunk_size)) * len(attention),
    yticks=range(num_heads),
  )


def _draw_tree(
  axes, subject, tokens_T, trace, labels, spans, nodes, first_wrong
) -> None:
  """Draws nodes where their spans end, and lines as wide as the weights."""
  chunk_size = subject.config.chunk_size
  answer = trace.logits[0].argmax()
  for level, span_nx2 in enumerate(spans):
    mean_nxC = trace.attention[level][0].mean(1)
    for (_, end), weight_C in zip(span_nx2, mean_nxC, strict=True):
      for j, weight in enumerate(weight_C):
        x = end - 1 - j * chunk_size**level
        axes.plot(
          [max(x, -1), end - 1],
          [level, level + 1],
          color='0.55',
          linewidth=0.3 + 5.0 * weight,
          # To the padding before the string.
          linestyle='-' if x >= 0 else ':',
          solid_capstyle='round',
          zorder=1,
        )
  kind_k = np.arange(len(nodes.clusters.centers))
  if nodes.maps is not None:
    kind_k = nodes.map_of_cluster
  for kind in np.unique(kind_k[np.concatenate(labels)]):
    name = f'cluster {kind}'
    if nodes.maps is not None:
      name = clusters.map_name(nodes.maps, kind)
    points = [
      (end - 1, level + 1)
      for level, (label_n, span_nx2) in enumerate(
        zip(labels, spans, strict=True)
      )
      for label, (_, end) in zip(label_n, span_nx2, strict=True)
      if kind_k[label] == kind
    ]
    axes.scatter(
      *zip(*points, strict=True),
      s=90,
      edgecolors='black',
      zorder=3,
      label=name,
      **pictures.style(kind),
    )
  if first_wrong is not None:
    wrong = [
      (spans[level][node][1] - 1, level + 1)
      for level, is_wrong_n in enumerate(first_wrong.is_wrong)
      for node in np.flatnonzero(is_wrong_n)
    ]
    if wrong:
      axes.scatter(
        *zip(*wrong, strict=True),
        s=260,
        marker='x',
        color='black',
        linewidths=2,
        zorder=4,
        label='not its true transition',
      )
    if first_wrong.level is not None:
      axes.scatter(
        spans[first_wrong.level][first_wrong.node][1] - 1,
        first_wrong.level + 1,
        s=420,
        marker='o',
        facecolors='none',
        edgecolors='black',
        linewidths=2,
        zorder=4,
        label='where it first goes wrong',
      )
  first = max(len(tokens_T) - _MAX_DRAWN, 0)
  for position in range(first, len(tokens_T)):
    axes.text(
      position,
      -0.12,
      subject.symbols[tokens_T[position]],
      ha='center',
      va='top',
      fontsize='small',
    )
  axes.annotate(
    f'answer {answer}',
    (len(tokens_T) - 1, len(labels)),
    xytext=(0, 9),
    textcoords='offset points',
    ha='right',
  )
  if not first:
    axes.text(-1, -0.12, 'pad', ha='center', va='top', fontsize='small')
  axes.set(
    xlabel='position, and the string',
    ylabel='level',
    yticks=np.arange(len(labels)) + 1,
    yticklabels=range(len(labels)),
    xlim=(first - (0.6 if first else 1.6), len(tokens_T) - 0.4),
    ylim=(-0.6, len(labels) + 0.5),
  )
  which = f', the last {_MAX_DRAWN} of {len(tokens_T)} symbols' if first else ''
  axes.set_title(
    f'which positions feed which{which}: line widths are mean weights'
  )
  title = 'states 0, 1, ... go to' if nodes.maps is not None else None
  axes.legend(
    title=title,
    fontsize='small',
    title_fontsize='small',
    markerscale=0.6,
    loc='center left',
    bbox_to_anchor=(1, 0.5),
  )
