"""Ellipsoids as regions: does what a level makes of them lie in one?

An ellipsoid is {center + shape @ e : |e| <= 1}; the arrays in float64 are its
definition, so that nothing about it is rounded.

Letters: N forms at a time, D width, S symbols, k ellipsoids.
"""

from typing import NamedTuple

import numpy as np

from regulargpt_jax.analysis import bounds

# More than float64's rounding of sums of products, relative to the sum of the
# absolute values, for sums of fewer than 2^14 terms.
_EPS = 2.0**-36
_TINY = 1e-200
# Rounds that `enclosing` takes towards the smallest ellipsoid.
_ROUNDS = 8


class Ellipsoids(NamedTuple):
  """Regions, each {center + shape @ e : |e| <= 1}.

  Attributes:
    center: [k, D].
    shape: P, [k, D, D].
    inverse: W, about P^-1; [k, D, D].
    stretch: |P^-1 v| is at most this times |W v|, [k]; infinite if W is no
      inverse.
  """

  center: np.ndarray
  shape: np.ndarray
  inverse: np.ndarray
  stretch: np.ndarray

  def at(self, index) -> 'Ellipsoids':
    """Returns some of them, as arrays are indexed."""
    return Ellipsoids(*(x[index] for x in self))


def make(center: np.ndarray, shape: np.ndarray) -> Ellipsoids:
  """Returns ellipsoids of centers [k, D] and shapes [k, D, D].

  Proof of `stretch`: with E = I - W P, P^-1 = (I - E)^-1 W, and the norm of (I
  - E)^-1 is at most 1 / (1 - |E|), |E| < 1. The computed W P is wrong by at
  most `_EPS` |W| |P|.
  """
  inverse = np.linalg.inv(shape)
  lost = np.abs(inverse @ shape - np.eye(shape.shape[-1]))
  lost = lost + _EPS * (np.abs(inverse) @ np.abs(shape))
  lost = np.linalg.norm(lost, axis=(1, 2))
  with np.errstate(divide='ignore', invalid='ignore'):
    stretch = np.where(lost < 0.5, (1 + _EPS) / (1 - lost), np.inf)
  return Ellipsoids(center, shape, inverse, stretch)


def as_form(regions: Ellipsoids, slot: int, num_slots: int) -> bounds.Form:
  """Returns ellipsoids as forms, whose symbols are ball `slot` of `num_slots`.

  A form holds an ellipsoid exactly: the ball is that of its definition.
  """
  num, dim = regions.center.shape
  gens = np.zeros((num, dim, num_slots * dim))
  gens[..., slot * dim : (slot + 1) * dim] = regions.shape
  slack = np.zeros((num, dim))
  return bounds.Form(regions.center, gens, slack, dim, num_slots)


class Image(NamedTuple):
  """Forms in coordinates in which an ellipsoid is the unit ball.

  Attributes:
    offset: Of a form's center, [N, D].
    square: A form less its center lies in {r e : |e| <= 1} with r r' = square,
      [N, D, D].
    size: Sum of the radii of the parts that `square` is made of, [N].
    error: The norm of all that was rounded is at most this, [N].
  """

  offset: np.ndarray
  square: np.ndarray
  size: np.ndarray
  error: np.ndarray


def image(form: bounds.Form, targets: Ellipsoids) -> Image:
  """Returns forms as W of one target each shows them.

  Proof. Let s_i(a) be the support function of a part: the image of a ball, or
  of a symbol; a slack is one symbol for each entry. The form less its center
  has s = sum_i s_i, and s_i(a)^2 = a' Q_i a with Q_i = G_i G_i'. For any p_i >
  0, by Cauchy and Schwarz, s(a)^2 = (sum_i sqrt(p_i) s_i / sqrt(p_i))^2 <=
  (sum_i p_i) a' (sum_i Q_i / p_i) a. So the form lies in the ellipsoid whose
  squared support function that is. We take for p_i the radius of part i: then
  the norm is at most the sum of the radii.

  Args:
    form: [N, D].
    targets: N of them.
  """
  inverse, dim = targets.inverse, form.center.shape[-1]
  offset = np.einsum('Nij,Nj->Ni', inverse, form.center - targets.center)
  slack = np.eye(dim) * form.slack[:, None, :]
  gens = inverse @ np.concatenate([form.gens, slack], axis=-1)
  in_balls = form.ball * form.num_balls
  square, size = np.zeros_like(inverse), np.zeros(len(offset))
  for first in range(0, in_balls, max(form.ball, 1)):
    part = gens[..., first : first + form.ball]
    if part.any():
      q = part @ part.swapaxes(-1, -2)
      p = np.sqrt(np.maximum(np.linalg.eigvalsh(q)[:, -1], 0.0)) + _TINY
      square, size = square + q / p[:, None, None], size + p
  rest = gens[..., in_balls:]
  p = np.linalg.norm(rest, axis=1) + _TINY
  square = square + (rest / p[:, None]) @ rest.swapaxes(-1, -2)
  size = size + p.sum(-1)
  values = np.abs(form.center) + np.abs(targets.center) + bounds.radius(form)
  lost = np.einsum('Nij,Nj->Ni', np.abs(inverse), values)
  error = _EPS * np.linalg.norm(lost, axis=-1)
  return Image(offset, square * size[:, None, None], size, error)


def _whole(seen: Image, offset: np.ndarray) -> np.ndarray:
  """Returns `square` with the offset in it, as one more part; see `image`."""
  p = np.linalg.norm(offset, axis=-1)[:, None, None] + _TINY
  s = seen.size[:, None, None] + _TINY
  square = seen.square / s + offset[:, :, None] * (offset[:, None] / p)
  return square * (s + p)


def needed(seen: Image, targets: Ellipsoids) -> np.ndarray:
  """Returns by what factor targets must grow to hold the forms, [N].

  A form lies in its target if this is at most 1. Proof: with the offset as one
  more part, the form lies in an ellipsoid around the target's center, and the
  norm there is at most the root of the largest eigenvalue. All that is rounded
  before adds its norm, by the triangle inequality; `stretch` does the rest.
  """
  norm = np.sqrt(_largest_eigenvalue(_whole(seen, seen.offset)))
  result = (norm + seen.error) * targets.stretch * (1 + _EPS)
  # What is not finite proves nothing.
  return np.where(np.isfinite(result), result, np.inf)


def _largest_eigenvalue(square: np.ndarray) -> np.ndarray:
  """Returns a bound on the largest eigenvalue of matrices, [N].

  Proof. Let A be symmetric and not negative, and V' V = I + F. As A = V'^-1 (V'
  A V) V^-1, |A| <= |V' A V| / (1 - |F|): the least singular value of V,
  squared, is at least 1 - |F|. And |V' A V| is at most the largest sum of
  absolute values in a row. V is what the library says are the eigenvectors: if
  they were none, the bound would be loose, and still hold. Rounding in A, which
  is a sum of squares, and in the products is at most `_EPS` times its trace.
  """
  finite = np.isfinite(square).all((1, 2))
  safe = np.where(finite[:, None, None], square, 0.0)
  vectors = np.linalg.eigh(safe)[1]
  transposed = vectors.swapaxes(-1, -2)
  rows = np.abs(transposed @ safe @ vectors).sum(-1).max(-1)
  dim = square.shape[-1]
  lost = np.linalg.norm(transposed @ vectors - np.eye(dim), axis=(1, 2)) + _EPS
  trace = np.trace(safe, axis1=1, axis2=2)
  largest = (rows + 4 * dim * _EPS * trace) * (1 + _EPS) / (1 - lost)
  return np.where(finite & (lost < 0.5), largest, np.inf)


def enclosing(
  seen: Image, target: Ellipsoids, margin: float
) -> tuple[np.ndarray, np.ndarray]:
  """Returns a center and a shape that may hold forms with some room.

  A guess, to be checked by `needed`: about the smallest ellipsoid around the
  mean of the forms' centers that holds the ellipsoids in which they lie.

  Args:
    seen: N forms as one target shows them.
    target: That one, without its first axis.
    margin: Room, relative to the shape.
  """
  dim = seen.offset.shape[-1]
  middle = seen.offset.mean(0)
  squares = _whole(seen, seen.offset - middle)
  weight = np.full(len(squares), 1 / len(squares))
  for _ in range(_ROUNDS):
    mean = np.einsum('N,Nij->ij', weight, squares)
    mean = mean + np.eye(dim) * (1e-4 * np.trace(mean) / dim)
    inverse = np.linalg.inv(np.linalg.cholesky(mean))
    grow = np.linalg.eigvalsh(inverse @ squares @ inverse.T)[:, -1]
    weight = weight * grow / (weight * grow).sum()
  # `grow` belongs to `mean`, which `weight` has just outrun.
  square = target.shape @ (mean * grow.max()) @ target.shape.T
  values, vectors = np.linalg.eigh((square + square.T) / 2)
  lengths = np.sqrt(np.maximum(values, 1e-14 * values.max()))
  shape = (1 + margin) * (vectors * lengths) @ vectors.T
  return target.center + target.shape @ middle, shape
