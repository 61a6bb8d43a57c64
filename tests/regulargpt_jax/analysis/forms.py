"""Points of forms, and whether a form holds what was computed from them."""

import numpy as np

from regulargpt_jax.analysis import bounds

REAL = bounds.Arithmetic(0.0, 0.0)  # Of real numbers.


def symbols(form, rng, num_points):
  """Values that the symbols may have, [points, S], many of them extreme."""
  in_balls = form.ball * form.num_balls
  e = rng.uniform(-1, 1, (num_points, form.gens.shape[-1]))
  e[: num_points // 2] = np.sign(e[: num_points // 2])
  for first in range(0, in_balls, form.ball):
    ball = slice(first, first + form.ball)
    direction = rng.normal(size=(num_points, form.ball))
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    e[:, ball] = direction * rng.choice([0.5, 1.0], (num_points, 1))
  return e


def points(form, e, rng):
  """What a form holds at `e`, [points, N, n]."""
  e = e[:, : form.gens.shape[-1]]
  place = form.center + np.einsum('Nns,ps->pNn', form.gens, e)
  return place + form.slack * rng.uniform(-1, 1, place.shape)


def excess(form, e, values):
  """By how much values are out of a form at `e`; not positive if it holds.

  New symbols of the form, behind those of `e`, are free.
  """
  known = min(e.shape[1], form.gens.shape[-1])
  place = form.center + np.einsum(
    'Nns,ps->pNn', form.gens[..., :known], e[:, :known]
  )
  free = np.abs(form.gens[..., known:]).sum(-1) + form.slack
  return (np.abs(values - place) - free).max()


def random(rng, num, size, scale, slack=0.0, symbols=3):
  """A form with two balls of two symbols, and some more symbols."""
  return bounds.Form(
    rng.normal(size=(num, size)),
    scale * rng.normal(size=(num, size, 4 + symbols)),
    slack * rng.uniform(size=(num, size)),
    2,
    2,
  )
