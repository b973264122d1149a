"""The numbers of pages are those of the files that they name."""

import re

import pytest
from loading import ROOT, load_module

PAGES = [
    str(page.relative_to(ROOT))
    for pattern in ('*.md', 'docs/*.md', 'docs/*/*.md', 'configs/*/README.md')
    for page in sorted(ROOT.glob(pattern))
]
MEASURED = re.compile(r'benchmarks/\w+_(cpu|cuda)|benchmarks/precision')
# Pages whose decimals and percentages all name their file, up to their generated part.
EVERY = {
    'README.md': None,
    'docs/attentions.md': None,
    'docs/claims.md': None,
    'docs/model_zoo.md': '<!-- sortable -->',
    'docs/benchmarks/README.md': None,
    **dict.fromkeys((x for x in PAGES if MEASURED.search(x)), '<!-- measured -->'),
}
NOTES = 'claims', 'reliability'
FILE = 'claims/exact.json bag softmax'
MICRO = '../configs/soft/metafile.yml Models Name=softpp-micro-linear_imagenette-112px'


@pytest.fixture(scope='module')
def quoted():
    return load_module(ROOT / 'docs/site/quoted.py')


@pytest.mark.parametrize('page', PAGES)
def test_numbers_are_those_of_the_files(page, quoted):
    text = (ROOT / page).read_text('utf-8')
    if EVERY.get(page):
        assert EVERY[page] in text
        text = text.partition(EVERY[page])[0]
    assert quoted.faults_of(text, every=page in EVERY) == []


def test_research_notes_stay_short():
    claims, reliability = ((ROOT / f'docs/{x}.md').read_text('utf-8') for x in NOTES)
    seen = re.sub('<!--.*?-->', '', reliability, flags=re.S)
    assert len(claims.splitlines()) <= 85 and len(seen.split()) <= 1000


@pytest.mark.parametrize(
    'text, fault',
    [
        (f'46.5<!-- = mean % {FILE} seeds * 112 -->', None),
        (f'46.6<!-- = mean % {FILE} seeds * 112 -->', "['46.6'], not 46.523"),
        (f'from 44 to 48<!-- = range % {FILE} seeds * 112 -->', None),
        (f'from 44 to 47<!-- = range % {FILE} seeds * 112 -->', 'not 44.13, 48.05'),
        (f'3 ± 2<!-- = interval % {FILE} seeds * 112 - 168 -->', 'not -0.65333, 0.78'),
        (f'0.7 ± 0.8<!-- = -interval % {FILE} seeds * 112 - 168 -->', None),
        (f'0.975<!-- = mean {FILE} seeds * 112 / 168 -->', 'not 0.98'),
        (f'1.5<!-- = values {MICRO} Metadata Parameters / numbers 1000000 -->', None),
        ('0.1<!-- = mean claims/gone.json a -->', 'FileNotFoundError'),
        (f'0.1<!-- = mean {FILE} gone -->', 'KeyError'),
        (f'0.1<!-- = median {FILE} rates * -->', 'KeyError'),
        (f'text<!-- = mean {FILE} rates * -->', '[], not'),
        (f'| 0.4 |<!-- = mean {FILE} rates 0.001|0.002 -->', 'KeyError'),  # ends a cell
        ('0.5 and 12<!-- no file: made up --> and 13', None),
        ('half of 0.5, 12 and 30 %', 'no comment'),
        ('3 of 12; `0.5`; [a](b/0.5.md); torch 2.1.2', None),
        (f'a\n<!-- = mean {FILE} rates * -->', 'begins a line'),
    ],
)
def test_wrong_numbers_are_found(text, fault, quoted):
    faults = quoted.faults_of(text, every=True)
    assert (fault in faults[0]) if fault else faults == []


@pytest.mark.parametrize(
    'text, value, right',
    [
        *(('0.58', 0.5751, True), ('0.58', 0.5747, False), ('0.6', 0.5747, True)),
        *(('9,400', 9449.0, True), ('9,400', 9451.0, False), ('40', 44.0, False)),
        *(('4.2e6', 4.24e6, True), ('4.2e6', 4.26e6, False), ('-3', -3.4, True)),
    ],
)
def test_numbers_are_rounded_as_they_are_printed(text, value, right, quoted):
    assert quoted.is_rounded(text, value) == right


def test_powers_are_fitted(quoted):
    words = "claims/counts.json rows 'attention=softmax' 'N=3136;12544' millions / N"
    (power,) = quoted.evaluate(f'exponent {words}')
    assert 1.9 < power < 2.1


def test_comments_are_described(quoted):
    """CONTRIBUTING.md has the syntax of the module."""
    (syntax,) = re.findall(r'^    (<!-- = .*-->)$', quoted.__doc__, re.M)
    assert syntax in (ROOT / 'CONTRIBUTING.md').read_text('utf-8')
