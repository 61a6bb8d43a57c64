"""A model whose states are moved to centers is a finite automaton.

Letters: N chunks, C chunk size, D width, k centers, V symbols.
"""

import numpy as np

from regulargpt_jax.analysis import bounds, closure, level_map, regions, strings


def close(
  w: level_map.Weights, centers_kxD: np.ndarray, symbols_V: np.ndarray
) -> closure.Closed | None:
  """Proves which automaton a model is, if each state is moved to a center.

  That is, what a level makes of symbols or of states is replaced by the center
  nearest to it, which is what the next level and the readout see.

  Proof. Then there are finitely many chunks: of symbols, and of centers. What
  is above each is enclosed, and x is nearer to center p than to center j where
  2 x (p - j) > |p|^2 - |j|^2, which is proved of the whole enclosure.

  Args:
    w: Of the model.
    centers_kxD: The centers.
    symbols_V: The tokens that strings are made of.

  Returns:
    The automaton, its regions the centers; None if some state is as near to two
    centers, as far as can be told, or a center has two answers.
  """
  # What a model in float32 can see.
  centers_kxD = centers_kxD.astype(np.float32).astype(np.float64)
  chunk_size = w.bias.shape[1]
  chunks = regions.chunks_of(len(centers_kxD), chunk_size)
  sources = np.concatenate([centers_kxD, w.pad[None]])
  products = np.concatenate(
    [
      nearest(
        level_map.level([_points(sources[i]) for i in chunks[block].T], w),
        centers_kxD,
      )
      for block in level_map.blocks(np.arange(len(chunks)), w)
    ]
  )
  first = next(strings.levels(w, symbols_V, np.inf))
  start = nearest(first, centers_kxD)
  classes, margins = closure.answers(_points(centers_kxD), w)
  if min(products.min(), start.min()) < 0 or not margins.min() > 0:
    return None
  margin = float(margins.min())
  return closure.of_points(
    start, chunks, products, classes, margin, centers_kxD
  )


def _points(x_NxD: np.ndarray) -> bounds.Form:
  gens = np.zeros((*x_NxD.shape, 1))  # Some functions need a symbol.
  return bounds.Form(x_NxD, gens, np.zeros_like(x_NxD), 1, 0)


def nearest(form: bounds.Form, centers_kxD: np.ndarray) -> np.ndarray:
  """Returns the center nearest to all that a form holds, or -1; [N]."""
  away = np.linalg.norm(form.center[:, None] - centers_kxD, axis=-1)
  nearest_N = away.argmin(-1)
  square_k = np.square(centers_kxD).sum(-1)
  result_N = nearest_N.copy()
  for number in np.unique(nearest_N):
    those = np.flatnonzero(nearest_N == number)
    others = np.delete(np.arange(len(centers_kxD)), number)
    if not len(others):
      continue
    kernel = 2 * (centers_kxD[number] - centers_kxD[others]).T
    bias = square_k[others] - square_k[number]
    part = form._replace(
      center=form.center[those], gens=form.gens[those], slack=form.slack[those]
    )
    nearer = bounds.linear(part, kernel, bias)
    # The bias is rounded; no sum here has more terms than EPS allows for.
    rounding = bounds.EPS * (square_k[others] + square_k[number])
    least = nearer.center - bounds.radius(nearer) - rounding
    result_N[those[~(least > 0).all(-1)]] = -1
  return result_N
