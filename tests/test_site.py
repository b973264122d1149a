"""The site of the documentation; `make docs` reports broken links."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from loading import ROOT, load_module

PYTHON = ROOT / '.venv-docs/bin/python'


FOR_USERS = [
    *('Start', 'Train on your own photos', 'Predict', 'In your project'),
    *('Weights and models', 'Other frameworks'),
]


def read_levels():
    """Titles of the navigation's first level, and what is below."""
    text = (ROOT / 'mkdocs.yml').read_text('utf-8').partition('\nnav:\n')[2]
    return {name: x for part in yaml.safe_load(text) for name, x in part.items()}


def pages_of(entry):
    """Paths of the pages below an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for part in inner for page in pages_of(part)]


def test_pages_for_users_are_short():
    """They have at most 15,000 words, without rows of models and of weights."""
    levels = read_levels()
    assert list(levels) == ['Home', *FOR_USERS, 'Research notes']
    words = 0
    for page in pages_of([levels[name] for name in FOR_USERS]):
        text = (ROOT / 'docs' / page).read_text('utf-8')
        text = re.sub('<!--.*?-->', '', text, flags=re.S)
        if page in ('model_zoo.md', 'weights.md'):
            text = re.sub(r'^\|.*$', '', text, flags=re.M)
        words += len(text.split())
    assert words <= 15_000


def test_the_front_page_is_read_in_a_minute():
    text = (ROOT / 'README.md').read_text('utf-8')
    assert len(text.split()) <= 900 and '<!--' not in text


def test_every_page_is_in_the_navigation():
    """`make docs` stops at others."""
    pages = {str(x.relative_to(ROOT / 'docs')) for x in (ROOT / 'docs').rglob('*.md')}
    assert pages <= {*pages_of(read_levels())}


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    """The built site."""
    if not PYTHON.exists():
        pytest.skip('make docs makes the environment')
    folder = tmp_path_factory.mktemp('site')
    command = [PYTHON, '-m', 'mkdocs', 'build', '--quiet', '--strict', '-d', folder]
    subprocess.run(
        command, cwd=ROOT, check=True, env=dict(os.environ, NO_MKDOCS_2_WARNING='1')
    )
    return folder


@pytest.mark.modern_full
def test_the_site_loads_nothing_from_other_servers(site, tmp_path):
    hosts = load_module('docs/site/hosts.py')
    assert hosts.foreign_loads(site) == []
    image = '<img srcset="a.png 1x, http://a.b/a.png 2x">'
    (tmp_path / 'page.html').write_text(hosts.POLICY + image)
    assert len(hosts.foreign_loads(tmp_path)) == 1
    page = (site / 'model_zoo/index.html').read_text('utf-8')
    assert page.count('class="sortable"') == 1
    assert 'site/tables.js' in page


@pytest.mark.skipif(not shutil.which('node'), reason='needs Node.js')
@pytest.mark.parametrize(
    'query, finds',
    [
        ('SOFT++', True),
        ('softpp', True),
        ('mask rcnn', True),
        ('Mask R-CNN soft++ 3x', True),
        ('linear retinanet', False),
        ('coco 47.', True),
        ('', True),
    ],
)
def test_tables_are_filtered_by_words_apart(query, finds):
    cells = ['mask-rcnn_softpp-t_fpn_3x_coco', 'COCO', '47.3 / 42.1']
    call = f'hasWords({json.dumps(cells)}, {json.dumps(query)})'
    script = f"const {{ hasWords }} = require('./tables.js'); console.log({call})"
    result = subprocess.run(
        ['node', '-e', script],
        cwd=ROOT / 'docs/site',
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == str(finds).lower()
