"""What the pages say is so: commands, snippets, links, flags and files.

Quickly: each command is given to its launcher, which reads the flags and does
all but the work, and each snippet is resolved. Slowly: each page is a script,
run from top to bottom in a copy of the repository.
"""

import ast
import contextlib
import importlib
import inspect
import json
import os
import pathlib
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from unittest import mock

from absl import flags
import pytest
import zstandard

from experiments.formal import automata, builders, string_samples
from experiments.language import presets as language_presets
from experiments.sweeps import grid
from tests import pages

_FOLDERS = (
  'benchmarks/',
  'docs/',
  'experiments/',
  'launch/',
  'regulargpt_jax/',
  'results/',
  'tasks/',
  'tests/',
)
# Of other programs.
_OTHER_FLAGS = {'help', 'logdir', 'signal'}


def _make(experiment, *unused, **unused_too):
  builders.make_curriculum(experiment)
  builders.make_task_and_model(experiment)


def _make_task(experiment, *unused):
  builders.make_task(experiment)
  return 'A page.'


def _make_cells(name, preset, *unused):
  grid.cells(preset)


def _look_up_models(name, workdir, results, models, *unused, **unused_too):
  assert {*(models or ())} <= language_presets.PRESETS[name].models.keys()


# Where each command's work begins, and what is made of its flags all the same.
_WORK = {
  'analyze': ('experiments.analysis.analyses.analyze', None),
  'certify': ('experiments.analysis.certificate.certify', None),
  'compare': ('experiments.sweeps.comparison.compare', None),
  'convert': ('experiments.formal.automata.convert', automata.convert),
  'compile': ('experiments.formal.compiled.compile_task', _make),
  'describe': ('experiments.formal.describe.describe', _make_task),
  'evaluate': ('experiments.formal.run.evaluate', None),
  'evaluate_lm': ('experiments.language.run.evaluate', None),
  'extract': ('experiments.analysis.extraction.extract', None),
  'prepare_text': ('experiments.text.preparation.prepare', None),
  'report': ('experiments.sweeps.report.report', None),
  'sample_strings': (
    'experiments.formal.string_samples.write',
    string_samples.write,
  ),
  'sample': ('experiments.language.run.sample', None),
  'sweep': ('experiments.sweeps.sweep.sweep', _make_cells),
  'sweep_lm': ('experiments.language.sweep.sweep', _look_up_models),
  'train': ('experiments.formal.run.train_and_evaluate', _make),
  'train_lm': ('experiments.language.run.train_and_report', None),
}


@contextlib.contextmanager
def _imported(name):
  """A launcher or a benchmark, whose flags are there only so long."""
  before = set(flags.FLAGS)
  try:
    yield importlib.import_module(name)
  finally:
    for flag in set(flags.FLAGS) - before:
      delattr(flags.FLAGS, flag)
    flags.FLAGS.unparse_flags()
    del sys.modules[name]


def _accept_command(module, arguments):
  """Gives a command its flags; the work itself is left out."""
  with _imported(module) as launcher:
    if '--help' in arguments:
      return
    flags.FLAGS([module, *arguments])
    folder, name = module.split('.')
    if folder == 'launch':
      target, make = _WORK[name]
      with (
        mock.patch(target, autospec=True, side_effect=make) as work,
        mock.patch('experiments.engine.devices.join'),
        mock.patch('experiments.text.preparation.summary'),
      ):
        launcher.main()
      is_list = name == 'describe' and not arguments
      assert work.call_count == (not is_list), arguments


def _accept_snippet(code):
  """Resolves what a snippet imports, and binds the arguments of its calls."""
  tree = ast.parse(code)
  imports = [
    node
    for node in ast.walk(tree)
    if isinstance(node, ast.Import | ast.ImportFrom)
  ]
  imported = {}
  exec(compile(ast.Module(imports, []), 'a snippet', 'exec'), imported)

  def resolve(node):
    dotted = ast.unparse(node)
    if (
      re.fullmatch(r'\w+(\.\w+)+', dotted) and dotted.split('.')[0] in imported
    ):
      return eval(dotted, imported)
    return None

  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute):
      resolve(node)
    elif isinstance(node, ast.Call) and (function := resolve(node.func)):
      names = [argument.arg for argument in node.keywords]
      if None in names or any(isinstance(a, ast.Starred) for a in node.args):
        continue  # How many there are is not known.
      with contextlib.suppress(ValueError):  # Of C: it has no signature.
        inspect.signature(function).bind(*node.args, **dict.fromkeys(names))


def _accept(arguments):
  """Accepts what follows `python`, or fails."""
  match arguments:
    case ['-c', code]:
      _accept_snippet(code)
    case ['-m', 'pytest', *rest]:
      for path in rest:
        assert not path.endswith('.py') or (pages.REPOSITORY / path).exists()
    case ['-m', module, *rest]:
      _accept_command(module, rest)
    case _:
      pytest.fail(f'Unknown: python {arguments}')


def _prepare(folder, monkeypatch):
  """Makes a folder that of a user who has some files of their own."""
  pages.write_files(folder)
  (folder / '.venv' / 'bin').mkdir(parents=True)
  (folder / '.venv' / 'bin' / 'activate').touch()
  monkeypatch.chdir(folder)
  monkeypatch.setenv('SCRATCH', str(folder))
  monkeypatch.setenv('SLURM_ARRAY_TASK_ID', '1')


@pytest.mark.parametrize('name', pages.NAMES)
def test_commands_and_snippets_are_accepted(name, tmp_path, monkeypatch):
  _prepare(tmp_path, monkeypatch)
  monkeypatch.syspath_prepend(tmp_path)
  on_a_host = """
for argument in "$@"; do
  case "$argument" in
    --command=*) (cd() { :; }; eval "${argument#--command=}");;
  esac
done"""
  script = pages.script(
    name,
    'printf "%s\\0" $# "$@" >> recorded',
    {
      **dict.fromkeys((*_PROGRAMS, 'python3.11', 'sudo'), ':'),
      'gcloud': on_a_host,
      'srun': '"$@"',
      'mpirun': 'shift 2; "$@"',
    },
  )
  subprocess.run(['bash', '-c', script], check=True)
  recorded = (tmp_path / 'recorded').read_text().split('\0')[:-1]
  while recorded:
    number = int(recorded[0])
    _accept(recorded[1 : number + 1])
    recorded = recorded[number + 1 :]


@pytest.mark.parametrize(
  'path',
  sorted((pages.REPOSITORY / 'benchmarks').glob('*.py')),
  ids=lambda path: path.stem,
)
def test_benchmarks_call_what_is_there(path):
  """They run by hand only."""
  _accept_snippet(path.read_text())


def test_snippets_define_what_they_name(tmp_path):
  pages.write_files(tmp_path)
  for name in pages.NAMES:
    for number, step in enumerate(pages.steps(name)):
      if step.language == 'python':
        path = tmp_path / f'{name.replace("/", "_")}_{number}.py'
        path.write_text(step.text)
  ruff = [sys.executable, '-m', 'ruff', 'check', '--isolated', '--select=F']
  subprocess.run([*ruff, str(tmp_path)], check=True)


@pytest.mark.parametrize('name', pages.NAMES)
def test_links_lead_somewhere(name):
  folder = (pages.REPOSITORY / name).parent
  for link in pages.links(name):
    path, _, heading = link.partition('#')
    target = folder / path if path else pages.REPOSITORY / name
    assert target.exists(), link
    if heading:
      assert heading in pages.headings(target.read_text()), link


def test_a_workdir_is_of_one_experiment():
  """On all pages: a second one would be refused, or measured in its place."""
  claims = {}
  for name in pages.NAMES:
    for step in pages.steps(name):
      for command, workdir in _CLAIM.findall(step.text.replace('\\\n', ' ')):
        flags_given = {*shlex.split(command)} - _NO_OTHER_EXPERIMENT
        claims.setdefault(workdir, set()).add(frozenset(flags_given))
  assert len(claims) > 20
  for workdir, experiments in claims.items():
    assert len(experiments) == 1, workdir


def test_files_modules_and_flags_are_there():
  known = set(_OTHER_FLAGS)
  for folder in ('launch', 'benchmarks'):
    for module in pkgutil.iter_modules([pages.REPOSITORY / folder]):
      before = set(flags.FLAGS)
      with _imported(f'{folder}.{module.name}'):
        known |= set(flags.FLAGS) - before
  for name in pages.NAMES:
    for span in pages.spans(name):
      if re.fullmatch(r'[\w./]+', span) and span.startswith(_FOLDERS):
        assert (pages.REPOSITORY / span).exists(), span
      if re.fullmatch(r'(experiments|regulargpt_jax|tasks)\.[\w.]+', span):
        pkgutil.resolve_name(span)
      if module := re.match(r'(launch|benchmarks)\.\w+', span):
        assert importlib.util.find_spec(module[0]), span
      assert {*re.findall(r'--(\w+)', span)} <= known, span


# Commands that begin in a workdir, and this.
_CLAIM = re.compile(
  r'(launch\.(?:train|train_lm|compile|sweep) .*--workdir=(runs/[^\s"]+).*)'
)
# Flags that make none: defaults, and how it is run.
_NO_OTHER_EXPERIMENT = {'--task=parity_check', '--distributed', '&'}


# What is not run: a pattern of what follows `python`, and why.
_NOT_RUN = {
  '-m pytest *': 'runs this test',
  '-m pytest': 'runs this test',
  '-m launch.sweep *--part=3/16*': 'is one of 16 jobs of 16 chips',
  '-m launch.sweep_lm --preset=table3 --data_dir=*': 'takes days of a GPU',
  '-m launch.sweep_lm --preset=short*': 'takes a GPU',
}
# Other programs, which do nothing here, and why.
_PROGRAMS = {
  'gcloud': 'needs an account',
  'mpirun': 'needs Open MPI',
  'pip': 'installs; .ci/run does it',
  'python3': 'makes the environment; .ci/run does it',
  'ruff': 'is run by .ci/run',
  'srun': 'needs Slurm',
}
_TINY_LM = (
  '--embedding_dim=16 --num_heads=2 --chunk_size=16 --thickness=1'
  ' --precision=float32 --sequence_length=64 --batch_size=4 --training_steps=20'
)
# What is run with further flags, so that it takes seconds; the last pattern
# that fits counts.
_SHORTER = {
  '-m launch.train *': '--training_steps=20 --batch_size=16'
  ' --max_range_test_length=60 --range_test_batch_size=16',
  '-m launch.train --training_steps=*': '--max_range_test_length=60',
  '-m launch.train --strings=*': '--training_steps=20 --batch_size=16',
  '-m launch.train *--warmup_steps=*': '--training_steps=20 --warmup_steps=5'
  ' --max_range_test_length=60 --range_test_batch_size=16',
  '-m launch.train --training_steps=5000 *': '--training_steps=2000'
  ' --max_range_test_length=60',
  '-m launch.train *cycle_navigation --training_steps=5000 *': (
    '--training_steps=3000 --max_range_test_length=60'
  ),
  '-m launch.evaluate *--output_dir=*': '--range_test_batch_size=16',
  '-m launch.sweep --preset=table1*': '--tasks=d_2 --models=rnn --seeds=0'
  ' --learning_rates=1e-4 --training_steps=2',
  '-m launch.sweep --preset=xlstm*': '--tasks=parity_check --seeds=0'
  ' --models=lstm,mamba_2_-1_1 --learning_rates=1e-3 --training_steps=2'
  ' --warmup_steps=0 --batch_size=4 --max_range_test_length=60'
  ' --range_test_batch_size=4',
  '-m launch.sweep --regex=*--workdir=runs/own': '--training_steps=20'
  ' --max_range_test_length=60 --range_test_batch_size=16 --seeds=0',
  '-m launch.sweep_lm *=tiny --data*': '--models=regular_gpt_4_2'
  ' --training_steps=20 --warmup_steps=5',
  '-m launch.train_lm *--workdir=runs/lm': _TINY_LM,
  '-m launch.train_lm *runs/small_lm': '--training_steps=50',
  '-m launch.evaluate_lm *': '--lengths=64,256 --num_sequences=50',
  '-m benchmarks.analysis*': '--embedding_dim=16 --num_strings=8 --length=60',
  '-m benchmarks.attention*': '--shortest=512 --longest=512'
  ' --longest_dense=512 --rounds=1',
  '-m benchmarks.baselines*': '--embedding_dim=16 --longest=60'
  ' --architectures=rnn',
  '-m benchmarks.certificates*': '--seeds=1 --steps=20 --max_chunks=30',
  '-m benchmarks.construction*': '--longest=1024 --rounds=1',
  '-m benchmarks.evaluation*': '--embedding_dim=16 --longest=60'
  ' --batch_size=16',
  '-m benchmarks.paths*': '--embedding_dim=16 --longest=64'
  ' --longest_reference=64 --rounds=1',
  '-m benchmarks.recurrent*': '--architectures=mamba_2 --width=8'
  ' --batch_size=2 --length=32 --longest=64 --rounds=1',
  '-m benchmarks.samplers*': '--lengths=10 --tasks=parity_check',
  '-m benchmarks.sampling*': '--embedding_dim=16 --chunk_size=16'
  ' --lengths=64 --symbols=2 --rounds=1',
  '-m benchmarks.sweep*': '--embedding_dim=16 --runs=2 --steps=4'
  ' --timed_steps=2',
  '-m benchmarks.text*': '--tokenizers=byte --lengths=64 --num_workers=2',
  '-m benchmarks.training*': '--embedding_dim=16 --steps=20',
  '-m benchmarks.training_lm*': '--embedding_dim=16 --num_heads=2'
  ' --vocab_size=64 --batch_size=2 --thickness=1 --num_layers=1 --length=64'
  ' --chunk_size=16 --rounds=1 --calls=1',
}


def _case(patterns):
  """Returns a `case` of bash on what follows `python`."""
  lines = []
  for pattern, action in patterns.items():
    quoted = re.sub(r'[^*]', r'\\\g<0>', pattern)
    lines.append(f'{quoted}) {action};;')
  return '\n'.join(['case "$*" in', *lines, 'esac'])


def _texts(folder):
  """Writes the repository's own files as texts."""
  (folder / 'my_texts' / 'files').mkdir(parents=True)
  (folder / 'openwebtext2').mkdir()
  texts = [path.read_text() for path in sorted(folder.rglob('*.[mp][dy]'))]
  for number, text in enumerate(texts):
    (folder / 'my_texts' / 'files' / f'{number}.txt').write_text(text or '.')
  lines = '\n'.join(json.dumps({'text': text}) for text in texts)
  compressed = zstandard.compress(lines.encode())
  (folder / 'openwebtext2' / '0.jsonl.zst').write_bytes(compressed)


@pytest.mark.slow
@pytest.mark.parametrize('name', pages.NAMES)
def test_a_page_runs_from_top_to_bottom(name, tmp_path, monkeypatch):
  folder = tmp_path / 'repository'
  ignored = shutil.ignore_patterns('.*', '__pycache__', 'runs', 'data', 'build')
  shutil.copytree(pages.REPOSITORY, folder, ignore=ignored)
  _texts(folder)
  _prepare(folder, monkeypatch)
  monkeypatch.delenv('XLA_FLAGS')  # Those of tests compile quickly, run slowly.
  python = '\n'.join(
    [
      'more=',
      _case(dict.fromkeys(_NOT_RUN, 'return')),
      *(
        _case({pattern: f'more="{more}"'}) for pattern, more in _SHORTER.items()
      ),
      'echo "python $*" $more >> ran',
      'command python "$@" $more || { echo "$*" >> failed; return 1; }',
    ]
  )
  script = pages.script(name, python, dict.fromkeys(_PROGRAMS, ':'))
  environment = {**os.environ, 'PYTHONPATH': ''}
  ended = subprocess.run(['bash', '-c', script], env=environment)
  ran = pathlib.Path('ran')
  print(ran.read_text() if ran.exists() else 'nothing ran')
  assert not ended.returncode
  assert not pathlib.Path('failed').exists()
