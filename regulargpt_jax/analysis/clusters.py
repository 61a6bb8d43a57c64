"""How many kinds of outputs there are (Chi et al., 2023, section 7.3).

Letters: N points, D their width, k clusters.
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster import hierarchy
from sklearn import metrics

# Smaller distances than this share of the largest are the arithmetic's.
_RESOLUTION = 1e-3


class Clusters(NamedTuple):
  """Clusters of points.

  Attributes:
    centers: Their means, [k, D].
    radius: What is farther than this from all centers is in none of them.
    gap: How much farther apart the two nearest clusters are than the parts of
      the widest one; 1 for no clusters at all, infinite for a single point.
    gap_by_number: The same had we stopped at that many clusters.
    silhouette_by_number: Mean silhouette then, in [-1, 1].
  """

  centers: np.ndarray
  radius: float
  gap: float
  gap_by_number: dict[int, float]
  silhouette_by_number: dict[int, float]


def find(points_NxD: np.ndarray, max_clusters: int) -> Clusters:
  """Returns the clusters that points fall into.

  Nearest clusters are joined first, by their mean distance, and we stop where
  the next to be joined are farthest apart relative to those just joined. All k
  come from one tree, without a random start, and rare kinds of points count as
  much as common ones. The silhouette is a mean over points: it would take a
  cluster apart whose many points sit tightly in two places, with a few others
  in between, as PARITY's do.

  Args:
    points_NxD: At least 3; time and memory grow as N^2.
    max_clusters: Most to look for.
  """
  tree = hierarchy.linkage(points_NxD, 'average')
  distances = tree[::-1, 2]  # Of the clusters joined, the last join first.
  scale = np.linalg.norm(points_NxD, axis=-1).max()
  if distances[0] <= _RESOLUTION * scale:
    center = points_NxD.mean(0, keepdims=True)
    return Clusters(center, _RESOLUTION * scale, np.inf, {}, {})
  distances = np.maximum(distances, _RESOLUTION * distances[0])
  numbers = range(2, min(max_clusters, len(points_NxD) - 1) + 1)
  gaps = {k: float(distances[k - 2] / distances[k - 1]) for k in numbers}
  cuts = {k: _cut(tree, k) for k in numbers}
  pairwise_NxN = metrics.pairwise_distances(points_NxD)
  silhouettes = {
    k: float(
      metrics.silhouette_score(pairwise_NxN, cut_N, metric='precomputed')
    )
    for k, cut_N in cuts.items()
  }
  best = max(gaps, key=gaps.get)
  label_N = cuts[best]
  centers = [points_NxD[label_N == c].mean(0) for c in range(best)]
  # In the middle, on a logarithmic scale, of joining the last and not the next.
  radius = float(np.sqrt(distances[best - 2] * distances[best - 1]))
  return Clusters(np.stack(centers), radius, gaps[best], gaps, silhouettes)


def _cut(tree: np.ndarray, number: int) -> np.ndarray:
  """Returns each point's cluster where so many are left, [N].

  As `hierarchy.cut_tree`, which takes time N^2: clusters are numbered by their
  first points.
  """
  by_rank = tree.copy()
  by_rank[:, 2] = np.arange(len(tree))  # Distances may be alike, ranks not.
  label_N = hierarchy.fcluster(by_rank, len(tree) - number + 0.5, 'distance')
  _, first, label_N = np.unique(label_N, return_index=True, return_inverse=True)
  return first.argsort().argsort()[label_N]


def nearest(centers_kxD: np.ndarray, points_NxD: np.ndarray) -> np.ndarray:
  """Returns the cluster whose center is nearest to each point, [N].

  N may be several axes.
  """
  flat = points_NxD.reshape(-1, points_NxD.shape[-1])
  label = metrics.pairwise_distances_argmin(flat, centers_kxD)
  return label.reshape(points_NxD.shape[:-1])


def outside(
  centers_kxD: np.ndarray,
  radius: float,
  points_NxD: np.ndarray,
  max_clusters: int,
) -> np.ndarray:
  """Returns points [M, D] to be new centers, so that all points are in some.

  Args:
    centers_kxD: The centers that there are.
    radius: How far from a center a point is in its cluster.
    points_NxD: The points.
    max_clusters: Where there are more than so many, points may be left out.
  """
  centers = centers_kxD
  while len(centers) <= max_clusters:
    _, distance_N = metrics.pairwise_distances_argmin_min(points_NxD, centers)
    farthest = distance_N.argmax()
    if distance_N[farthest] <= radius:
      break
    centers = np.concatenate([centers, points_NxD[farthest][None]])
  return centers[len(centers_kxD) :]


def even_sample(
  group_N: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
  """Returns the indices of about `size` entries, alike from every group."""
  groups = np.unique(group_N)
  chosen = []
  for group in groups:
    members = np.flatnonzero(group_N == group)
    number = min(len(members), size // len(groups))
    chosen.append(rng.choice(members, number, replace=False))
  return np.concatenate(chosen)
