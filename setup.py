"""Installs RegularGPT in JAX and its benchmark."""

import setuptools

_GCS = ['gcsfs']
_TEXT = [
  'grain',
  'importlib_resources',  # Of tensorflow-datasets, which does not ask for it.
  'tensorflow-datasets',
  'tiktoken',
  'zstandard',
]

setuptools.setup(
  name='regulargpt_jax',
  version='0.1.0',
  description=(
    'RegularGPT (Chi et al., 2023) in Flax, inside a fast benchmark of'
    ' length generalization on formal languages.'
  ),
  license='Apache-2.0',
  python_requires='>=3.11',
  packages=setuptools.find_packages(
    include=[
      'experiments*',
      'launch*',
      'regulargpt_jax*',
      'tasks*',
    ]
  ),
  install_requires=[
    'absl-py',
    'dm-haiku',
    'chex',
    'etils[epath]',
    'fsspec',
    'flax',
    'jax>=0.10',
    'matplotlib',
    'numpy',
    'optax>=0.2.5',
    'orbax-checkpoint',
    'scikit-learn',
    'scipy',
    'tensorboardX',
    'tqdm',
  ],
  extras_require={
    'test': [
      'aalpy',
      'automata-lib',
      'hypothesis',
      'pytest',
      'pytest-xdist',
      'ruff',
      'gcp-storage-emulator',
      *_GCS,
      *_TEXT,
    ],
    'text': _TEXT,
    'gcs': _GCS,
    'cuda12': ['jax[cuda12]'],
    'cuda13': ['jax[cuda13]'],
    'tpu': ['jax[tpu]'],
  },
)
