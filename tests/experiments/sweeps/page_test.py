"""The HTML page of a report: it stands alone, and a browser shows it."""

import base64
import html
import html.parser
import io
import json
import re
import shutil
import subprocess

from matplotlib import image
import pytest

from experiments.sweeps import numbers, results
from experiments.sweeps import page as page_lib
from experiments.sweeps import report as sweep_report
from tests.experiments.sweeps import made


@pytest.fixture(scope='module')
def page(tmp_path_factory):
  """The text of a report of all that is made."""
  folder = tmp_path_factory.mktemp('sweep')
  for result in made.ALL:
    cell = made.cell(result.preset, f'{result.task}/{result.model}')
    path = results.path(str(folder / 'results'), result.preset, cell)
    results.save(result, path)
  sweep_report.report(str(folder), None, None, None)
  return (folder / 'report.html').read_text()


class _Page(html.parser.HTMLParser):
  """Collects tags and attributes, and checks that tags are closed in order."""

  def __init__(self, text):
    super().__init__()
    self.tags, self.attributes, self.open = [], [], []
    self.feed(text)
    assert not self.open

  def handle_starttag(self, tag, attrs):
    self.tags.append(tag)
    self.attributes.append((tag, dict(attrs)))
    if tag not in ('meta', 'img'):
      self.open.append(tag)

  def handle_endtag(self, tag):
    assert self.open.pop() == tag


def test_page_stands_alone(page):
  parsed = _Page(page)
  assert not {'script', 'link', 'iframe', 'object'} & set(parsed.tags)
  assert '&lt;script&gt;' in page
  assert not re.search(r'https?:|url\(|@import', page)
  pictures = [attrs for tag, attrs in parsed.attributes if tag == 'img']
  # Accuracy by length and training curves: three tasks of table 1, one of
  # table 2 with five tests.
  assert len(pictures) == 3 * 2 + 5 + 1
  for attrs in pictures:
    assert attrs['alt']
    header, data = attrs['src'].split(',')
    assert header == 'data:image/png;base64'
    picture = image.imread(io.BytesIO(base64.b64decode(data)))
    assert picture.std() > 0.01
  assert sum('src' in attrs for _, attrs in parsed.attributes) == len(pictures)
  assert not any('href' in attrs for _, attrs in parsed.attributes)


# What a browser made of the page, as its title.
_LOOK = """<script>onload = () => {
  const all = (what) => [...document.querySelectorAll(what)];
  document.title = JSON.stringify({
    drawn: all('img').filter(x => x.complete && x.naturalWidth > 100).length,
    hidden: all('td, th').filter(
      x => !x.closest('details') && !x.getClientRects().length).length,
    folded: all('details').length,
    wider: document.documentElement.scrollWidth > innerWidth,
  });
};</script>"""
_BROWSER = next(
  filter(None, map(shutil.which, ('chromium', 'google-chrome'))), None
)


@pytest.mark.skipif(_BROWSER is None, reason='There is no Chromium.')
def test_a_browser_shows_the_page(page, tmp_path):
  path = tmp_path / 'page.html'
  path.write_text(page + _LOOK)
  shown = subprocess.run(
    [
      _BROWSER,
      *('--headless', '--no-sandbox', '--disable-gpu', '--dump-dom'),
      '--virtual-time-budget=10000',
      f'--user-data-dir={tmp_path / "profile"}',
      path.as_uri(),
    ],
    capture_output=True,
    check=True,
    text=True,
    timeout=100,
  ).stdout
  looks = json.loads(html.unescape(re.search('<title>(.*)</title>', shown)[1]))
  assert looks == {'drawn': 12, 'hidden': 0, 'folded': 2, 'wider': False}


def test_one_run_of_one_step_that_diverged_at_once_is_drawn():
  result = made.result(
    'table1',
    'parity_check/rnn',
    {'': [[0.5, 0.5, 0.5]]},
    runs=[(1e-4, 0)],
    training_length=2,
    curves={
      'step': [1],
      'loss': [[float('nan')]],
      'accuracy': [[None]],
    },
  )
  result.runs[0]['diverged_at'] = 0
  text = page_lib.page(numbers.tables([result]))
  assert _Page(text).tags.count('img') == 2
