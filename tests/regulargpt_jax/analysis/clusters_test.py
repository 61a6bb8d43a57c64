from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from sklearn import metrics

from regulargpt_jax.analysis import clusters

_seeds = st.integers(0, 2**32 - 1)


def _blobs(seed, sizes, spread=0.1):
  """Points around corners of a simplex, a distance of sqrt(2) apart."""
  rng = np.random.default_rng(seed)
  label_N = np.repeat(np.arange(len(sizes)), sizes)
  noise_NxD = rng.uniform(-spread, spread, (len(label_N), 8))
  return np.eye(8)[label_N] + noise_NxD, label_N


@given(_seeds, st.lists(st.integers(3, 40), min_size=2, max_size=8))
def test_finds_separated_clusters_of_any_sizes(seed, sizes):
  points_NxD, label_N = _blobs(seed, sizes)
  found = clusters.find(points_NxD, max_clusters=12)
  assert len(found.centers) == len(sizes)
  assert found.gap > 2
  label = clusters.nearest(found.centers, points_NxD)
  assert metrics.adjusted_rand_score(label_N, label) == 1.0
  distance = metrics.pairwise_distances(points_NxD, found.centers).min(-1)
  assert distance.max() < found.radius


def test_three_points_by_hand():
  """Joined at distances 1 and (9 + 10) / 2."""
  found = clusters.find(np.array([[0.0], [1.0], [10.0]]), max_clusters=9)
  assert sorted(found.centers.ravel()) == [0.5, 10]
  assert found.gap_by_number == {2: 9.5}
  np.testing.assert_allclose(found.radius, 9.5**0.5)


def test_a_cluster_with_tight_parts_and_stragglers_is_one():
  """The silhouette alone would take the parts apart."""
  points_NxD, label_N = _blobs(0, (40, 40, 40), spread=0.003)
  points_NxD[:, 7] += np.tile([0, 0.3] * 18 + [0.1, 0.15, 0.2, 0.25], 3)
  found = clusters.find(points_NxD, max_clusters=12)
  silhouettes = found.silhouette_by_number
  assert max(silhouettes, key=silhouettes.get) > 3
  assert len(found.centers) == 3
  label = clusters.nearest(found.centers, points_NxD)
  assert metrics.adjusted_rand_score(label_N, label) == 1.0


@given(_seeds, st.floats(0, 1e-6))
def test_points_that_rounding_tells_apart_are_one_cluster(seed, spread):
  points_NxD, _ = _blobs(seed, (20,), spread)
  found = clusters.find(points_NxD, max_clusters=12)
  np.testing.assert_allclose(found.centers, points_NxD[:1], atol=1e-5)


@given(_seeds, st.floats(0.05, 2))
def test_outside_covers_every_point_once(seed, radius):
  points_NxD, _ = _blobs(seed, (10, 10, 10))
  centers = points_NxD[:1]
  new = clusters.outside(centers, radius, points_NxD, max_clusters=30)
  every = np.concatenate([centers, new])
  assert (metrics.pairwise_distances(points_NxD, every).min(-1) <= radius).all()
  apart = metrics.pairwise_distances(every) + 9 * np.eye(len(every))
  assert (apart > radius).all()


def test_outside_stops_one_beyond_the_most():
  points_NxD = np.arange(1000.0)[:, None]
  new = clusters.outside(points_NxD[:1], 0.5, points_NxD, max_clusters=7)
  assert len(new) == 7


@given(_seeds, st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_even_sample_takes_alike_from_groups(seed, sizes):
  rng = np.random.default_rng(seed)
  group_N = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
  chosen = clusters.even_sample(group_N, 50, rng)
  assert len(set(chosen.tolist())) == len(chosen)
  taken = np.bincount(group_N[chosen], minlength=len(sizes))
  assert taken.tolist() == [min(n, 50 // len(sizes)) for n in sizes]
