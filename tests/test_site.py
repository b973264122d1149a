"""The site of the documentation; `make docs` reports broken links."""

import os
import re
import subprocess

import pytest
import yaml
from loading import ROOT, load_module

PYTHON = ROOT / '.venv-docs/bin/python'


FOR_USERS = [
    *('Start', 'Train on your own photos', 'Predict', 'In your project'),
    *('Weights and models', 'Other frameworks'),
]


def pages_of(entry):
    """Paths of the pages below an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for part in inner for page in pages_of(part)]


def test_pages_for_users_are_short():
    """They have at most 10,000 words, without rows of models and of weights."""
    text = (ROOT / 'mkdocs.yml').read_text('utf-8').partition('\nnav:\n')[2]
    levels = {name: x for part in yaml.safe_load(text) for name, x in part.items()}
    assert list(levels) == ['Home', *FOR_USERS, 'Research notes']
    words = 0
    for page in pages_of([levels[name] for name in FOR_USERS]):
        text = (ROOT / 'docs' / page).read_text('utf-8')
        text = re.sub('<!--.*?-->', '', text, flags=re.S)
        if page in ('model_zoo.md', 'weights.md'):
            text = re.sub(r'^\|.*$', '', text, flags=re.M)
        words += len(text.split())
    assert words <= 10_000


@pytest.mark.modern_full
@pytest.mark.skipif(not PYTHON.exists(), reason='make docs makes the environment')
def test_the_site_loads_nothing_from_other_servers_and_hides_comments(tmp_path):
    hosts = load_module('docs/site/hosts.py')
    command = [PYTHON, '-m', 'mkdocs', 'build', '--quiet', '--strict', '-d', tmp_path]
    subprocess.run(
        command, cwd=ROOT, check=True, env=dict(os.environ, NO_MKDOCS_2_WARNING='1')
    )
    assert hosts.foreign_loads(tmp_path) == []
    image = '<img srcset="a.png 1x, http://a.b/a.png 2x">'
    (tmp_path / 'page.html').write_text(hosts.POLICY + image)
    assert len(hosts.foreign_loads(tmp_path)) == 1
    page = (tmp_path / 'model_zoo/index.html').read_text('utf-8')
    assert page.count('class="sortable"') == 1
    assert 'site/tables.js' in page
    # comments on numbers; CONTRIBUTING.md shows some
    pages = {str(x.relative_to(tmp_path)): x for x in tmp_path.rglob('*.html')}
    seen = [x for x in pages if '&lt;!-- =' in pages[x].read_text('utf-8')]
    assert seen == ['contributing/index.html']
