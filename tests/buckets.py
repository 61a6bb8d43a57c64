"""A bucket on this machine, for tests.

The emulator from PyPI lacks what Google's service does and we, gcsfs and
tensorstore rely on, which is added here: writes that depend on what is there,
and the generation of what is read.
"""

import contextlib
import subprocess
import sys

import pytest

BUCKET = 'runs'


@contextlib.contextmanager
def serving():
  """Runs the emulator in a process of its own.

  Yields:
    The environment in which gcsfs, Orbax and tensorstore find it.
  """
  for module in ('gcp_storage_emulator', 'gcsfs'):
    pytest.importorskip(
      module, reason=f"no {module}: pip install -e '.[test]' brings it"
    )
  process = subprocess.Popen(
    [sys.executable, __file__],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
  )
  try:
    url = f'http://127.0.0.1:{int(process.stdout.readline())}'
    yield {
      'STORAGE_EMULATOR_HOST': url,
      'TENSORSTORE_GCS_HTTP_URL': url,
      'GOOGLE_AUTH_TOKEN_FOR_TESTING': 'none',
      'NO_GCE_CHECK': 'true',  # Where else there may be credentials.
    }
  finally:
    process.kill()
    process.wait()


def _serve():
  import http

  from gcp_storage_emulator import server
  from gcp_storage_emulator.handlers import objects

  def generation(storage, bucket, name):
    try:
      return storage.get_file_obj(bucket, name)['generation']
    except Exception:
      return '0'

  def insert(request, response, storage):
    name = request.query.get('name') or [request.data['meta']['name']]
    found = generation(storage, request.params['bucket_name'], name[0])
    if request.query.get('ifGenerationMatch', [found]) != [found]:
      response.status = http.HTTPStatus.PRECONDITION_FAILED
    else:
      objects.insert(request, response, storage)

  def get(request, response, storage):
    objects.get(request, response, storage)
    response['x-goog-generation'] = generation(
      storage, request.params['bucket_name'], request.params['object_id']
    )

  ours = {objects.insert: insert, objects.get: get}
  for _, by_method in server.HANDLERS:
    for method, handler in by_method.items():
      by_method[method] = ours.get(handler, handler)
  served = server.create_server(
    '127.0.0.1', 0, in_memory=True, default_bucket=BUCKET
  )
  served.start()
  print(served._api._httpd.server_address[1], flush=True)


if __name__ == '__main__':
  _serve()
