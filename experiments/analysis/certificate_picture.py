"""The regions of a proof, as a picture."""

from matplotlib import figure as figure_lib
from matplotlib import patches
import numpy as np
from sklearn import decomposition

from experiments.analysis import subject as subject_lib
from experiments.engine import pictures
from regulargpt_jax.analysis import closure, level_map, regions

# Regions with numbers, and corners of an ellipse.
_MAX_NUMBERED, _NUM_CORNERS = 40, 64


def draw(
  subject: subject_lib.Subject, found: closure.Closed
) -> tuple[figure_lib.Figure, dict[str, np.ndarray]]:
  """Returns a picture of a proof, and the arrays that it is of.

  It shows the regions in the plane, one of them unless they are points, and
  their products.

  Args:
    subject: The model.
    found: Regions that it does not leave.
  """
  plane = decomposition.PCA(2)
  with np.errstate(invalid='ignore'):  # Regions may share their center.
    # Twice, since there may be one region only, and a plane needs two.
    plane.fit(np.repeat(found.centers, 2, axis=0))
  shares = np.nan_to_num(plane.explained_variance_ratio_)
  are_points = found.shapes is None
  num_panels = 2 if are_points else 3
  figure = figure_lib.Figure(
    figsize=(4.4 * num_panels, 4.4), layout='constrained'
  )
  of_all, *of_one, of_products = figure.subplots(1, num_panels)
  figure.suptitle(f'Regions that the model on {subject.name} does not leave')
  _draw_ellipses(of_all, plane, found.centers, _squares(found.shapes), found)
  if len(found.classes) <= _MAX_NUMBERED:
    middle = (found.centers - plane.mean_) @ plane.components_.T
    for number, place in enumerate(middle):
      of_all.annotate(
        str(number), place, xytext=(4, 4), textcoords='offset points'
      )
  of_all.set(
    title=f'regions{", all points" * are_points}, by their answer',
    xlabel=f'first component ({shares[0]:.0%} of the variance)',
    ylabel=f'second component ({shares[1]:.0%})',
  )
  arrays = {'centers': found.centers, 'products': found.products}
  arrays |= {'chunks': found.chunks, 'classes': found.classes}
  if not are_points:
    (of_one,) = of_one
    arrays['shapes'] = found.shapes
    where = (found.chunks == found.worst_chunk).all(1)
    region = int(found.products[where][0])
    w = level_map.weights(subject.config, subject.params)
    centers, squares = closure.contents(found, w, region)
    _draw_ellipses(of_one, plane, centers, squares, None)
    one = slice(region, region + 1)
    _draw_ellipses(
      of_one, plane, found.centers[one], _squares(found.shapes[one]), None
    )
    of_one.set(
      title=f'region {region}, and what the {len(centers)} chunks that\n'
      'it has to hold become (thin)',
      xlabel='first component',
      aspect='auto',  # Ellipses may be very long.
    )
  _draw_products(figure, of_products, found)
  return figure, arrays


def _squares(shapes: np.ndarray | None) -> np.ndarray | None:
  return None if shapes is None else shapes @ shapes.swapaxes(1, 2)


def _draw_ellipses(axes, plane, centers, squares, found) -> None:
  """Draws the shadows of ellipsoids in the plane, or points."""
  middle = (centers - plane.mean_) @ plane.components_.T
  kinds = np.zeros(len(centers), int) if found is None else found.classes
  if found is not None:
    for kind in np.unique(kinds):
      style = pictures.style(kind)
      axes.scatter(*middle[kinds == kind].T, s=18, **style, label=str(kind))
    axes.legend(title='answer', fontsize='small', title_fontsize='small')
  if squares is not None:
    angle = np.linspace(0, 2 * np.pi, _NUM_CORNERS)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    is_one = found is None and len(centers) == 1
    for place, square, kind in zip(middle, squares, kinds, strict=True):
      shadow = plane.components_ @ square @ plane.components_.T
      values, vectors = np.linalg.eigh(shadow)
      radii = np.sqrt(np.maximum(values, 0.0))
      corners = place + ((vectors * radii) @ circle).T
      color = 'black' if is_one else pictures.style(kind)['color']
      axes.add_patch(
        patches.Polygon(
          corners, fill=False, color=color, linewidth=2.0 if is_one else 0.7
        )
      )
  axes.set_aspect('equal', 'datalim')
  axes.autoscale_view()


def _draw_products(figure, axes, found: closure.Closed) -> None:
  """Draws which region is above each chunk of two regions, or pad and one."""
  num = len(found.classes)
  last = found.chunks[:, -2:]
  shown = (found.chunks[:, :-2] == regions.PAD).all(1)
  table = np.full((num + 1, num), np.nan)
  rows = np.where(last[shown, 0] == regions.PAD, num, last[shown, 0])
  table[rows, last[shown, 1]] = found.products[shown]
  image = axes.imshow(table, cmap='cividis', aspect='auto')
  figure.colorbar(image, ax=axes, label='region above')
  axes.set(
    title='what chunks become', xlabel='right region', ylabel='left region'
  )
  if num <= _MAX_NUMBERED:
    axes.set_yticks([*range(num), num], [*map(str, range(num)), 'pad'])
    axes.set_xticks(range(num))
  axes.tick_params(labelsize='xx-small')
