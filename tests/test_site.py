"""The site of the documentation; `make docs` reports broken links."""

import json
import os
import re
import subprocess
from collections import Counter
from math import log

import pytest
import yaml
from loading import ROOT, load_module

PYTHON = ROOT / '.venv-docs/bin/python'


FOR_USERS = [
    *('Start', 'Train on your own photos', 'Predict', 'In your project'),
    *('Weights and models', 'Other frameworks'),
]
# Words that people type, whose first hit is a page for users.
TYPED = [
    *('yolo', 'fine-tune', 'pretrained weights', 'export onnx', 'license', 'docker'),
    *('confusion matrix', 'out of memory'),
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
    """They have at most 12,900 words, without rows of models and of weights."""
    levels = read_levels()
    assert list(levels) == ['Home', *FOR_USERS, 'Research notes']
    words = 0
    for page in pages_of([levels[name] for name in FOR_USERS]):
        text = (ROOT / 'docs' / page).read_text('utf-8')
        text = re.sub('<!--.*?-->', '', text, flags=re.S)
        if page in ('model_zoo.md', 'weights.md'):
            text = re.sub(r'^\|.*$', '', text, flags=re.M)
        words += len(text.split())
    assert words <= 12_900


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


class Search:
    """The theme's search: BM25 without lengths, of words that begin with those typed.

    Titles count 1,000 times as much as texts, and each section as much as its page.
    """

    def __init__(self, index):
        self.sections = index['docs']
        self.separator = re.compile(index['config']['separator'])
        self.counts = {}  # of a word, by section and field
        for i, section in enumerate(self.sections):
            for field in index['config']['fields']:
                text = re.sub('<[^>]*>', ' ', str(section.get(field, '')))
                for word in self.words_of(text):
                    self.counts.setdefault(word, Counter())[i, field] += 1
        self.weights = {k: x['boost'] for k, x in index['config']['fields'].items()}

    def words_of(self, text):
        return [x for x in self.separator.split(text.lower()) if x]

    def first(self, query):
        """Address of the section that comes first."""
        scores, found = Counter(), {}
        typed = self.words_of(query)
        for start in typed:
            for word in (x for x in self.counts if x.startswith(start)):
                places = self.counts[word]
                rest = len(self.sections) - len(places)
                rarity = log(1 + abs((rest + 0.5) / (len(places) + 0.5)))
                for (i, field), n in places.items():
                    boost = self.weights[field] * self.sections[i].get('boost', 1)
                    scores[i] += boost * rarity * 2.2 * n / (1.2 + n)
                    found.setdefault(i, set()).add(start)
        for i in scores:
            whole_page = '#' not in self.sections[i]['location']
            scores[i] *= 1 + (whole_page + len(found[i]) / len(typed)) ** 2
        return self.sections[scores.most_common(1)[0][0]]['location']


@pytest.mark.modern_full
def test_search_leads_to_pages_for_users(site):
    levels = read_levels()
    pages = {page for name in FOR_USERS for page in pages_of(levels[name])}
    index = json.loads((site / 'search/search_index.json').read_text('utf-8'))
    search = Search(index)
    for query in TYPED:
        page = search.first(query).partition('#')[0].rstrip('/') + '.md'
        assert page in pages and not page.startswith('api/'), (query, page)
