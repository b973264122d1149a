"""The site of the documentation; `make docs` reports broken links."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from loading import load_module

pytestmark = pytest.mark.modern

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / '.venv-docs/bin/python'


def load(name):
    return load_module(ROOT / f'docs/site/{name}.py')


hosts, demo_browser = load('hosts'), load('demo_browser')


@pytest.mark.parametrize(
    'text',
    [
        '<script src="https://unpkg.com/mermaid@11/dist/mermaid.min.js"></script>',
        '<link rel="preload stylesheet" href="//fonts.googleapis.com/css?family=A">',
        '<style>@import "https://a.b/c.css";</style>',
        '<img srcset="a.png 1x, http://a.b/a.png 2x">',
        '<p style="background: url( \'https://a.b/c.svg\')">',
    ],
)
def test_what_is_loaded_is_found(text, tmp_path):
    (tmp_path / 'right').mkdir()
    right = '<a href="https://a.b/c"><link rel="canonical" href="https://a.b/">'
    (tmp_path / 'right/index.html').write_text(hosts.POLICY + right)
    assert not hosts.foreign_loads(tmp_path)
    (tmp_path / 'page.html').write_text(hosts.POLICY + text)
    (found,) = hosts.foreign_loads(tmp_path)
    assert found.startswith('page.html: ')
    (tmp_path / 'page.html').write_text(text.partition('src')[0] + 'none>')
    assert 'without the policy' in hosts.foreign_loads(tmp_path)[-1]


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
        if page in ('model_zoo.md', 'weights.md'):
            text = re.sub(r'^\|.*$', '', text, flags=re.M)
        words += len(text.split())
    assert words <= 10_000


@pytest.mark.modern_full
@pytest.mark.skipif(not PYTHON.exists(), reason='make docs makes the environment')
def test_the_site_loads_nothing_from_other_servers(tmp_path):
    command = [PYTHON, '-m', 'mkdocs', 'build', '--quiet', '--strict', '-d', tmp_path]
    subprocess.run(
        command, cwd=ROOT, check=True, env=dict(os.environ, NO_MKDOCS_2_WARNING='1')
    )
    assert hosts.foreign_loads(tmp_path) == []
    page = (tmp_path / 'model_zoo/index.html').read_text('utf-8')
    assert page.count('class="sortable"') == 1
    assert 'site/tables.js' in page


@pytest.mark.full
def test_the_zoo_sorts_and_filters(tmp_path):
    """tables.js in a browser, on a page without the theme."""
    hint = 'pip install -r requirements/demo.txt'
    sync_api = pytest.importorskip('playwright.sync_api', reason=hint)
    if not any(map(shutil.which, demo_browser.BROWSERS)):
        pytest.skip('there is no browser')
    rows = [('b', 'det', '9.5'), ('a', 'seg', '1,000.5'), ('c', 'det', '')]
    cells = ''.join(f'<tr>{"".join(f"<td>{x}" for x in row)}' for row in rows)
    head = '<thead><tr><th>model<th>task<th>GFLOPs</thead>'
    script = (ROOT / 'docs/site/tables.js').read_text('utf-8')
    table = f'<div class="sortable"><table>{head}<tbody>{cells}</table></div>'

    def names():
        return page.locator('tbody tr:visible td:first-child').all_inner_texts()

    with sync_api.sync_playwright() as playwright:
        browser = demo_browser.launch(playwright)
        page = browser.new_page()
        page.set_content(f'{table}<script>{script}</script>')
        page.locator('th', has_text='model').click()
        assert names() == ['a', 'b', 'c']
        page.locator('th', has_text='GFLOPs').click()
        assert names() == ['b', 'a', 'c']
        page.locator('th', has_text='GFLOPs').press('Enter')
        assert names() == ['a', 'b', 'c']  # empty cells come last
        page.get_by_label('filter by task').select_option('det')
        assert names() == ['b', 'c']
        assert '2 of 3' in page.locator('p').inner_text()
        browser.close()
