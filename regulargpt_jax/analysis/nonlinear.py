"""Sound bounds of softmax, ReLU and layer norm, as functions of forms.

See `bounds` for what a form claims, and how rounding is bounded.

Letters: N regions at a time, n entries of a vector, S symbols, H heads, m keys.
"""

import numpy as np

from regulargpt_jax.analysis import bounds


def softmax(
  logits: bounds.Form, num_keys: int, arithmetic: bounds.Arithmetic
) -> tuple[bounds.Form, np.ndarray]:
  """Returns the weights of all keys but the last, from differences of logits.

  Proof. Let w(l) be the softmax of (l_1 .. l_{m-1}, 0), at the centers c and
  at c + x. By Taylor, w_k(c + x) = w_k(c) + sum_j J_kj x_j + w_k''[x, x] / 2,
  where J = diag(w) - w w' is taken at c and w'' somewhere between. Along x
  (with x_m = 0) the second derivative is w_k ((x_k - a)^2 - b), with a the mean
  and b the variance of x under w. Both terms are at most (1 - w_k) p^2, p the
  largest difference of two entries of x: x_k - a = sum_j w_j (x_k - x_j), j !=
  k, whose square is at most (1 - w_k)^2 p^2, and b <= sum_j w_j (x_j - x_k)^2.
  They are not negative, so their difference is at most as large. Hence the
  remainder is at most p^2 / 2 times the largest w_k (1 - w_k) between, which is
  at most 1 / 4 and is taken where w_k is nearest to 1 / 2; w_k lies between its
  values with all differences l_j - l_k at their ends.

  The computed weights differ by the rounding of l - max(l), which exp makes a
  relative error, of exp, of a sum, and of a quotient: relative to w_k, at most
  unit * (largest difference) + 3 * function + gamma(m), doubled for products of
  errors; or they underflow.

  Args:
    logits: Of keys 1 .. m - 1, less that of key m; [N, H (m - 1)], the m - 1
      of a head together.
    num_keys: m.
    arithmetic: Of what is enclosed, in which the weights are computed.

  Returns:
    Weights of keys 1 .. m - 1, as `logits`; and what all weights' relative
    errors are at most, [N, H, 1].
  """
  num, others = len(logits.center), num_keys - 1
  shape = (num, logits.center.shape[1] // others, others)
  center = logits.center.reshape(shape)
  rad = bounds.radius(logits).reshape(shape)
  with_last = np.pad(center, ((0, 0), (0, 0), (0, 1)))
  rads = np.pad(rad, ((0, 0), (0, 0), (0, 1)))
  exp = np.exp(with_last - with_last.max(-1, keepdims=True))
  w = (exp / exp.sum(-1, keepdims=True))[..., :-1]
  jacobian = np.eye(others) * w[..., None] - w[..., None] * w[..., None, :]
  # [..., k, j]: how far l_j - l_k can be from where it is at the center.
  spread = bounds.up(rads[..., None, :] + rads[..., None])
  spread = np.where(np.eye(num_keys, dtype=bool), 0.0, spread)[..., :-1, :]
  gap = with_last[..., None, :] - with_last[..., :-1, None]
  low = 1 / (np.exp(np.minimum(gap + spread, 700.0)).sum(-1) * (1 + bounds.EPS))
  high = (1 + bounds.EPS) / np.exp(np.minimum(gap - spread, 700.0)).sum(-1)
  low = np.where((gap + spread).max(-1) > 700.0, 0.0, low)
  nearest = np.clip(0.5, low, np.minimum(high, 1.0))
  # Largest difference of two entries of x: two radii, the largest.
  two = np.sort(rads, -1)[..., -2:].sum(-1, keepdims=True)
  rest = 0.5 * two**2 * nearest * (1 - nearest) * (1 + bounds.EPS)
  gens = logits.gens.reshape(*shape, -1)
  far = (np.abs(gap) + spread).max((-2, -1), initial=0.0)[..., None]
  relative = 2 * (
    2 * arithmetic.unit * np.minimum(far, 200.0)
    + 3 * arithmetic.function
    + bounds.gamma(num_keys, arithmetic.unit)
  )
  size = np.abs(jacobian)
  slack = np.einsum('Nhkj,Nhj->Nhk', size, logits.slack.reshape(shape))
  slack += bounds.EPS * (1 + np.einsum('Nhkj,Nhj->Nhk', size, rad))
  slack += relative * np.minimum(high, 1.0)
  flat = (num, -1)
  form = logits._replace(
    center=w.reshape(flat),
    gens=np.einsum('Nhkj,Nhjs->Nhks', jacobian, gens).reshape(
      num, -1, gens.shape[-1]
    ),
    slack=bounds.up(slack.reshape(flat)),
  )
  return bounds.with_symbols(form, bounds.up(rest.reshape(flat))), relative


def relu(form: bounds.Form) -> bounds.Form:
  """Returns max(x, 0), without error in any arithmetic.

  Proof: with l <= x <= u and l < 0 < u, for a = u / (u - l) both x - 0 and 0
  lie between a x and a x - a l: max(x, 0) - a x is convex in x, so at most its
  values at l and u, both -a l, and not negative. So it is a x - a l / 2, with
  an error of at most -a l / 2, a new symbol. Where l >= 0 it is x, where u <= 0
  it is 0.
  """
  rad = bounds.radius(form)
  low, high = form.center - rad, form.center + rad
  crosses = (low < 0) & (high > 0)
  width = np.where(crosses, high - low, 1.0)
  a = np.where(crosses, high / width, (low >= 0) * 1.0)
  half = np.where(crosses, -0.5 * a * low, 0.0)
  slack = a * form.slack + np.where(
    high > 0, 4 * bounds.EPS * (np.abs(form.center) + rad), 0.0
  )
  out = form._replace(
    center=a * form.center + half,
    gens=a[..., None] * form.gens,
    slack=bounds.up(slack),
  )
  return bounds.with_symbols(out, bounds.up(half))


def _inverse_root(
  form: bounds.Form, least: np.ndarray, epsilon: float
) -> bounds.Form:
  """Returns (s + epsilon)^(-1/2) in real numbers, where least <= s, [N, 1].

  Proof: f(s) = (s + epsilon)^(-1/2) is convex, so f(s) - a s, with a = f'(m) at
  the middle m of the range, is least at m and largest at an end. It is replaced
  by the middle of that range, and half its width is a new symbol. (The slope
  is rounded: that moves the least value by at most |a| times the width.)
  """
  rad = bounds.radius(form)
  low = np.maximum(np.maximum(form.center - rad, least), 0.0) * (1 - bounds.EPS)
  high = (form.center + rad) * (1 + bounds.EPS) + bounds.TINY
  high = np.maximum(high, low)
  middle = 0.5 * (low + high)
  slope = -0.5 * (middle + epsilon) ** -1.5

  def rest(s):
    return (s + epsilon) ** -0.5 - slope * s

  bottom, top = rest(middle), np.maximum(rest(low), rest(high))
  size = np.abs(slope) * high + (low + epsilon) ** -0.5
  slack = np.abs(slope) * form.slack + 16 * bounds.EPS * size
  out = form._replace(
    center=slope * form.center + 0.5 * (bottom + top),
    gens=slope[..., None] * form.gens,
    slack=bounds.up(slack),
  )
  return bounds.with_symbols(
    out, bounds.up(0.5 * np.maximum(top - bottom, 0.0))
  )


def layer_norm(
  x: bounds.Form,
  scale: np.ndarray,
  bias: np.ndarray,
  epsilon: float,
  arithmetic: bounds.Arithmetic,
) -> bounds.Form:
  """Returns layer norm's output.

  That is (x - mean) (var + epsilon)^(-1/2) scale + bias.

  Proof. z = x - mean is linear. With z = c + y, var = mean(c^2) + 2 mean(c y) +
  mean(y^2): the last term lies between 0 and the mean of the squared radii, a
  symbol of half that. `_inverse_root` and `times` do the rest.

  The computation has var as mean(x^2) - mean(x)^2. With E = mean(x^2) at most
  its bound, the two means are wrong by gamma(n + 2) E and, the square, by 3
  times gamma sqrt(E)^2: 5 gamma E in all with the difference. z is wrong by
  gamma (sqrt(E) + |z|), the root by 2 * `function`, and each further step by
  one `unit`.
  """
  num_entries = x.center.shape[-1]
  rounding = bounds.gamma(num_entries + 4, arithmetic.unit)
  mean = np.full((num_entries, num_entries), 1 / num_entries)
  z = bounds.linear(x, np.eye(num_entries) - mean)
  square = np.mean(bounds.sup(x) ** 2, -1, keepdims=True) * (1 + bounds.EPS)
  z = z._replace(
    slack=bounds.up(z.slack + 2 * rounding * (np.sqrt(square) + bounds.sup(z)))
  )
  rad = bounds.radius(z)
  # The variance, first order by `linear` with a kernel for each region.
  most = np.mean(rad**2, -1, keepdims=True) * (1 + bounds.EPS)
  center = np.mean(z.center**2, -1, keepdims=True)
  weight = 2 * z.center / num_entries
  slack = (np.abs(weight) * z.slack).sum(-1, keepdims=True)
  slack += 6 * rounding * square + bounds.EPS * (center + most)
  variance = bounds.with_symbols(
    z._replace(
      center=center + 0.5 * most,
      gens=np.einsum('Nn,Nns->Ns', weight, z.gens)[:, None],
      slack=bounds.up(slack),
    ),
    0.5 * most,
  )
  # No entry of z is nearer to 0.
  nearest = np.maximum(np.abs(z.center) - rad, 0.0)
  least = np.mean(nearest**2, -1, keepdims=True) * (1 - 2 * bounds.EPS)
  least -= 6 * rounding * square
  root = _inverse_root(variance, least, epsilon)
  relative = 2 * arithmetic.function + 2 * arithmetic.unit
  root = root._replace(
    slack=bounds.up(root.slack + relative * bounds.sup(root))
  )
  out = bounds.scaled(bounds.times(z, root, arithmetic.unit), scale)
  slack = out.slack + 2 * bounds.gamma(3, arithmetic.unit) * (
    bounds.sup(out) + np.abs(bias)
  )
  return out._replace(center=out.center + bias, slack=bounds.up(slack))
