"""What else a result may depend on: versions, device, commit."""

import os
import platform
import subprocess
from typing import Any

import flax
import jax


def current() -> dict[str, Any]:
  """Returns versions, device and commit of this process."""
  return {
    'python': platform.python_version(),
    'jax': jax.__version__,
    'flax': flax.__version__,
    'device': jax.devices()[0].device_kind,
    'num_devices': jax.device_count(),
    'git_commit': _git_commit(),
  }


def _git_commit() -> str | None:
  """Returns the commit of this code, or None outside a git checkout."""
  try:
    return subprocess.run(
      ['git', 'rev-parse', 'HEAD'],
      cwd=os.path.dirname(os.path.abspath(__file__)),
      capture_output=True,
      text=True,
      check=True,
    ).stdout.strip()
  except (OSError, subprocess.CalledProcessError):
    return None
