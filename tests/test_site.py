"""The site of the documentation; `make docs` reports broken links."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.modern

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / '.venv-docs/bin/python'
spec = importlib.util.spec_from_file_location('hosts', ROOT / 'docs/site/hosts.py')
hosts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hosts)


@pytest.mark.parametrize(
    'text',
    [
        '<script src="https://unpkg.com/mermaid@11/dist/mermaid.min.js"></script>',
        '<link rel="preload stylesheet" href="//fonts.googleapis.com/css?family=Roboto">',
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
