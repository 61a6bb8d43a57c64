"""Looking inside a trained model: everything reads checkpoints."""

from experiments.analysis import attention, clusters, receptive_field
from experiments.analysis import subject as subject_lib
from experiments.engine import workdir as workdir_lib
from experiments.formal import config as formal_config
from experiments.language import config as language_config

NAMES = ('clusters', 'receptive_field', 'attention')


def analyze(
  workdir: str,
  name: str,
  string: str | None,
  num_strings: int,
  length: int,
  max_clusters: int | None = None,
  task_module: str = '',
) -> None:
  """Runs an analysis and writes its results into the workdir.

  Args:
    workdir: Of a trained RegularGPT, or of a language model.
    name: Of `NAMES`.
    string: What 'attention' looks at; the others take none.
    num_strings: Strings of the task to run.
    length: Of the strings.
    max_clusters: Most clusters to look for, `clusters.MAX_CLUSTERS` unless
      given; 'receptive_field' looks for none.
    task_module: See `experiments.formal.run.load_experiment`.

  Raises:
    ValueError: If the workdir holds another model, or an argument is wrong.
    OSError: If there is no good checkpoint, or a file cannot be written.
  """
  if (name == 'attention') != (string is not None):
    raise ValueError('--string is for --analysis=attention, which needs it.')
  if name == 'receptive_field' and max_clusters is not None:
    raise ValueError(
      '--max_clusters is not for --analysis=receptive_field, which looks for'
      ' none.'
    )
  search = clusters.Search(
    num_strings,
    clusters.MAX_CLUSTERS if max_clusters is None else max_clusters,
  )
  clusters.check(search, length)
  held = workdir_lib.load(
    workdir, formal_config.Experiment, language_config.LanguageExperiment
  )
  if isinstance(held.experiment, language_config.LanguageExperiment):
    if name != 'receptive_field':
      raise ValueError(
        f'{workdir} holds a language model; of these there is receptive_field.'
      )
    if task_module:
      raise ValueError(f'--task_module is not for {workdir}, a language model.')
    receptive_field.analyze_language_model(
      held.experiment, workdir, num_strings, length
    )
    return
  subject = subject_lib.load(workdir, held, task_module)
  if name == 'clusters':
    clusters.analyze(subject, workdir, search, length)
  elif name == 'receptive_field':
    receptive_field.analyze(subject, workdir, num_strings, length)
  else:
    attention.analyze(subject, workdir, string, search, length)
