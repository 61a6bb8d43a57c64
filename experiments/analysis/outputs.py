"""What every analysis leaves in the workdir: JSON, arrays, and a picture."""

import io
import os
from typing import Any

from matplotlib import figure as figure_lib
import numpy as np

from experiments.engine import experiment as experiment_lib
from experiments.engine import files, pictures
from experiments.engine import results as results_lib


def save(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  name: str,
  results: dict[str, Any],
  arrays: dict[str, np.ndarray],
  figure: figure_lib.Figure,
) -> None:
  """Writes `name`.json, .npz and .png, and says where the picture is.

  Args:
    experiment: What was trained.
    workdir: Its folder.
    name: Of the analysis.
    results: What is to be read: numbers and lists of them.
    arrays: What can be computed with.
    figure: The picture.
  """
  picture = pictures.png(figure)  # Nothing is written if this fails.
  save_results(experiment, workdir, name, results)
  path = os.path.join(workdir, name)
  buffer = io.BytesIO()
  np.savez_compressed(buffer, **arrays)
  files.write_atomically(path + '.npz', buffer.getvalue())
  files.write_atomically(path + '.png', picture)
  print(f'picture: {path}.png')


def save_results(
  experiment: experiment_lib.BaseExperiment,
  workdir: str,
  name: str,
  results: dict[str, Any],
) -> None:
  """Writes `name`.json, with what the results depend on."""
  contents = {**results, **results_lib.origin(experiment)}
  results_lib.save_json(os.path.join(workdir, f'{name}.json'), contents)
