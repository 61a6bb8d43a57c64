"""Sound bounds of what a block's parts compute: affine forms.

An affine form encloses vectors that depend on a point of a region:

  x = center + gens @ e + d,  |d| <= slack entry by entry,

where e is a vector of symbols, shared by all forms of a computation: first
balls (blocks of `ball` symbols, each block of Euclidean norm at most 1), then
single symbols in [-1, 1]. What the forms *claim* is this: for every point of
the region there is one e such that every form of the computation holds what is
computed from the point. Each function here keeps that claim, by the proof in
its docstring: forms that hold its arguments at e become a form that holds its
result at e, extended by symbols of its own. (The arithmetic is that of
de Figueiredo and Stolfi, "Affine arithmetic: concepts and applications", 2004,
with balls added.) `nonlinear` has the functions that are not linear.

Rounding. Our own arithmetic is float64, what is enclosed may be computed in
float32; both are bounded by Higham's lemma ("Accuracy and stability of
numerical algorithms", 2nd ed., section 3.1): a sum of n products, added in any
order, fused or not, differs from the exact one by at most gamma(n) times the
sum of their absolute values, gamma(n) = n u / (1 - n u) with unit roundoff u.
So a form holds the exact result, and the one in float32. `Arithmetic` says how
much is allowed; all of it goes to `slack`. Slacks are sums of non-negative
terms, and are rounded outwards by `up`.

Letters: N regions at a time, n entries of a vector, S symbols.
"""

from typing import NamedTuple

import numpy as np

# Our own rounding, relative: gamma(n) of float64 for sums of n < 2^12 terms.
EPS = 2.0**-40
_MAX_TERMS = 2**12
# Below what float32 calls normal, times any number of terms here.
TINY = 1e-30


class Arithmetic(NamedTuple):
  """What the enclosed computation's arithmetic may do wrong.

  Attributes:
    unit: Unit roundoff of +, -, * and of sums of products in any order.
    function: Relative error of exp, division and rsqrt.
  """

  unit: float
  function: float


# IEEE single precision, whose functions err by 4 units in the last place at
# most. A form for it holds the results of real numbers as well.
FLOAT32 = Arithmetic(2.0**-24, 2.0**-21)


class Form(NamedTuple):
  """An affine form; see above.

  Attributes:
    center: [N, n].
    gens: [N, n, S]; missing symbols at the end count as 0.
    slack: [N, n], not negative.
    ball: Symbols of a ball.
    num_balls: The first so many times `ball` symbols are balls.
  """

  center: np.ndarray
  gens: np.ndarray
  slack: np.ndarray
  ball: int
  num_balls: int


def up(x):
  """Rounds a computed sum or product of non-negative numbers upwards.

  Proof: it has a relative error of gamma(n) of float64 < `EPS` / 2, or
  underflows by less than `TINY`.
  """
  return x * (1 + EPS) + TINY


def gamma(num_terms: int, unit: float) -> float:
  """Bounds the relative error of sums: the enclosed ones and ours together."""
  if num_terms >= _MAX_TERMS:
    raise ValueError(
      f'Sums of {num_terms} terms are too long; fewer than {_MAX_TERMS} are'
      ' allowed.'
    )
  return num_terms * unit / (1 - num_terms * unit) + EPS


def radius(form: Form) -> np.ndarray:
  """Returns how far entries can be from the center, [N, n], rounded up.

  Proof: by Cauchy and Schwarz for each ball, by |e| <= 1 for other symbols.
  """
  in_balls = form.ball * form.num_balls
  total = np.abs(form.gens[..., in_balls:]).sum(-1) + form.slack
  for first in range(0, in_balls, form.ball):
    ball = form.gens[..., first : first + form.ball]
    total = total + np.sqrt(np.einsum('Nns,Nns->Nn', ball, ball))
  return up(total)


def sup(form: Form) -> np.ndarray:
  """Returns a bound on the entries' absolute values, [N, n]."""
  return up(np.abs(form.center) + radius(form))


def linear(form: Form, kernel: np.ndarray, bias=0.0, unit: float = 0.0) -> Form:
  """Returns a linear layer's output, x @ kernel + bias.

  Proof: it is linear in center, symbols and d, and |d @ K| <= slack @ |K|. The
  computed center and generators are sums of n + 1 terms, and so is the enclosed
  computation's result: each is wrong by at most gamma times the sum of the
  absolute values, in all sup|x| @ |K| + |bias|; for the generators of a ball,
  the triangle inequality of its norm says the same.
  """
  size = np.abs(kernel)
  rounding = 3 * gamma(len(kernel) + 4, unit)
  slack = form.slack @ size + rounding * (sup(form) @ size + np.abs(bias))
  return form._replace(
    center=form.center @ kernel + bias,
    gens=np.einsum('Nis,ij->Njs', form.gens, kernel, optimize=True),
    slack=up(slack),
  )


def aligned(*gens: np.ndarray) -> list[np.ndarray]:
  """Fills generators up with zeros to as many symbols."""
  most = max(g.shape[-1] for g in gens)
  return [np.pad(g, ((0, 0), (0, 0), (0, most - g.shape[-1]))) for g in gens]


def added(one: Form, other: Form, sign: float, unit: float = 0.0) -> Form:
  """Returns one + sign * other, for sign 1 or -1.

  Proof: linear, as above; one rounding of the enclosed computation and one of
  ours, relative to the sum of the absolute values.
  """
  gens, other_gens = aligned(one.gens, other.gens)
  slack = one.slack + other.slack
  slack += gamma(2, unit) * (sup(one) + sup(other))
  return one._replace(
    center=one.center + sign * other.center,
    gens=gens + sign * other_gens,
    slack=up(slack),
  )


def scaled(form: Form, factor: np.ndarray) -> Form:
  """Returns form * factor, of exact factors [n] or [N, n], in real numbers."""
  factor = np.broadcast_to(factor, form.center.shape)
  size = np.abs(factor)
  return form._replace(
    center=form.center * factor,
    gens=form.gens * factor[..., None],
    slack=up(form.slack * size + EPS * sup(form) * size),
  )


def with_symbols(form: Form, size: np.ndarray) -> Form:
  """Adds an error of at most `size` [N, n], a symbol of its own for each entry.

  A symbol, unlike slack, is followed through the layers behind. Entries whose
  size is 0 for all regions need none. The new symbols are numbered behind those
  of `form`: it must be the computation's form with the most symbols, or else
  two errors would pass for one.
  """
  used = np.flatnonzero(size.any(0))
  new = np.zeros((*size.shape, len(used)))
  new[:, used, np.arange(len(used))] = size[:, used]
  return form._replace(gens=np.concatenate([form.gens, new], axis=-1))


def tracked(form: Form) -> Form:
  """Makes symbols of the slack, which then is followed as they are."""
  slack = np.zeros_like(form.slack)
  return with_symbols(form._replace(slack=slack), form.slack)


def times(vector: Form, scalar: Form, unit: float = 0.0) -> Form:
  """Returns groups of entries, each multiplied by a scalar of its own.

  Proof: (a + x) (b + y) = a b + b x + a y + y x, with centers a, b; all but the
  last term are linear, in symbols and in d. For any matrix U and V = U^-1, the
  last is sum_k u_k (y v_k x), where |y v_k x| is at most the radius of y times
  that of v_k x: a new symbol for each k, with u_k as its direction. We take the
  principal axes of x's generators for u_k, along few of which x is long. They
  are orthogonal up to rounding, V = U': x - U U' x is bounded, and goes to
  slack.

  Args:
    vector: [N, groups * size].
    scalar: [N, groups].
    unit: Of the enclosed product.
  """
  num, num_groups = scalar.center.shape
  shape = (num, num_groups, -1)
  gens, scalar_gens = aligned(vector.gens, scalar.gens)
  a, b = vector.center.reshape(shape), scalar.center[..., None]
  gens = gens.reshape(num, num_groups, a.shape[-1], -1)
  slack = np.abs(a) * scalar.slack[..., None]
  slack += np.abs(b) * vector.slack.reshape(shape)
  sizes = sup(vector).reshape(shape) * sup(scalar)[..., None]
  slack += 3 * gamma(2, unit) * sizes
  axes = np.linalg.eigh(np.einsum('Ngis,Ngjs->Ngij', gens, gens))[1]
  along = np.einsum('Ngij,Ngis->Ngjs', axes, gens)
  by_slack = np.einsum(
    'Ngij,Ngi->Ngj', np.abs(axes), vector.slack.reshape(shape)
  )
  rad = radius(
    Form(
      np.zeros((num, by_slack[0].size)),
      along.reshape(num, by_slack[0].size, -1),
      by_slack.reshape(num, -1),
      vector.ball,
      vector.num_balls,
    )
  ).reshape(shape)
  rest = radius(scalar)[..., None] * rad
  lost = np.eye(a.shape[-1]) - np.einsum('Ngik,Ngjk->Ngij', axes, axes)
  vector_rad = radius(vector).reshape(shape)
  lost = np.einsum('Ngij,Ngj->Ngi', np.abs(lost) + EPS, vector_rad)
  slack += (lost + EPS * vector_rad) * radius(scalar)[..., None]
  new = np.einsum(
    'gh,Ngik->Ngihk', np.eye(num_groups), axes * up(rest)[..., None, :]
  )
  first = b[..., None] * gens + a[..., None] * scalar_gens[:, :, None]
  flat = (num, by_slack[0].size)
  return vector._replace(
    center=(a * b).reshape(flat),
    gens=np.concatenate(
      [first.reshape(*flat, -1), new.reshape(*flat, -1)], axis=-1
    ),
    slack=up(slack).reshape(flat),
  )


def summed(form: Form, num_groups: int) -> Form:
  """Returns sums of neighbouring entries, [N, num_groups], in real numbers."""
  size = form.center.shape[-1] // num_groups
  return linear(form, np.kron(np.eye(num_groups), np.ones((size, 1))))


def dot(one: Form, other: Form, num_groups: int) -> Form:
  """Returns inner products of groups of entries, [N, num_groups].

  In real numbers. Proof: (a + x) (b + y) = a b + a y + b x + x y for centers a,
  b, and |x y| <= r s for radii r, s. The first terms are linear, in symbols and
  in d; the last ones' sum becomes a new symbol.
  """
  gens, other_gens = aligned(one.gens, other.gens)
  a, b = one.center, other.center
  slack = np.abs(a) * other.slack + np.abs(b) * one.slack
  slack += 3 * gamma(2, 0.0) * sup(one) * sup(other)
  first_order = one._replace(
    center=a * b,
    gens=a[..., None] * other_gens + b[..., None] * gens,
    slack=up(slack),
  )
  rest = up(radius(one) * radius(other))
  rest = rest.reshape(len(rest), num_groups, -1).sum(-1)
  return with_symbols(summed(first_order, num_groups), up(rest))
