"""The numbers of pages are those of the files that they name."""

import re

import pytest
import yaml
from loading import ROOT, load_module

PAGES = [
    str(page.relative_to(ROOT))
    for pattern in ('*.md', 'docs/*.md', 'docs/*/*.md', 'configs/*/README.md')
    for page in sorted(ROOT.glob(pattern))
]
MEASURED = re.compile(r'benchmarks/\w+_(cpu|cuda)|benchmarks/precision')
# Pages whose decimals and percentages all have a source, up to their generated part.
EVERY = {
    'README.md': None,
    'docs/attentions.md': None,
    'docs/claims.md': None,
    'docs/claims/bag.md': None,
    'docs/claims/pyramids.md': None,
    'docs/benchmarks/README.md': None,
    **dict.fromkeys((x for x in PAGES if MEASURED.search(x)), '<!-- measured -->'),
}
ENTRIES = yaml.safe_load((ROOT / 'docs/values.yml').read_text('utf-8'))
NOTES = 'claims', 'reliability'
FILE = 'claims/exact.json bag softmax'
TWO = [f'mean % {FILE} seeds * 112', f'range % {FILE} seeds * 112']
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
    faults = quoted.faults_of(text, ENTRIES.get(page, []), every=page in EVERY)
    assert faults == []


def test_every_entry_has_its_page():
    assert ENTRIES.keys() <= {*PAGES}


def test_research_notes_stay_short():
    claims, reliability = ((ROOT / f'docs/{x}.md').read_text('utf-8') for x in NOTES)
    assert len(reliability.split()) <= 1000
    _, *findings = re.split(r'^## ', claims, flags=re.M)
    assert len(findings) == 7 and all(len(x.split()) <= 120 for x in findings)


def test_tables_of_claims_are_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'docs/site'))
    claims = load_module(ROOT / 'docs/site/claims.py')
    tables = set()
    for page in (ROOT / 'docs/claims').glob('*.md'):
        text = page.read_text('utf-8')
        assert text == claims.render(text), 'run python docs/site/claims.py'
        tables |= {match[2] for match in claims.TABLE.finditer(text)}
    assert tables == {*claims.TABLES}


@pytest.mark.parametrize(
    'text, words, source, fault',
    [
        ('has 46.5', 'has {}', f'mean % {FILE} seeds * 112', None),
        ('has 46.6', 'has {}', f'mean % {FILE} seeds * 112', "['46.6'], not 46.523"),
        ('44 to\n48', '{} to {}', f'range % {FILE} seeds * 112', None),
        ('44 to 47', '{} to {}', f'range % {FILE} seeds * 112', 'not 44.13, 48.05'),
        ('3 ± 2', '{} ± {}', f'interval % {FILE} seeds * 112 - 168', 'not -0.65333'),
        ('0.7 ± 0.8 x', '{} ± {} x', f'-interval % {FILE} seeds * 112 - 168', None),
        ('at 0.975', 'at {}', f'mean {FILE} seeds * 112 / 168', 'not 0.98'),
        (
            '1.5 M',
            '{} M',
            f'values {MICRO} Metadata Parameters / numbers 1000000',
            None,
        ),
        ('| a | 46.5 | 44.13 | 48 |', '| a | {} | {} | {} |', TWO, None),
        ('| a | 46.5 | 44.13 |', '| a | {} | {} |', TWO, "['46.5', '44.13'], not"),
        ('is 0.1', 'is {}', 'mean claims/gone.json a', 'FileNotFoundError'),
        ('is 0.1', 'is {}', f'mean {FILE} gone', 'KeyError'),
        ('is 0.1', 'is {}', f'median {FILE} rates *', 'KeyError'),
        ('is 0.1', 'was {}', f'mean {FILE} rates *', 'on the page 0 times'),
        ('46.5, 46.5', '{}', f'mean % {FILE} seeds * 112', 'on the page 2 times'),
        ('46.5 and 0.3 %', '{} and', f'mean % {FILE} seeds * 112', 'no entry'),
    ],
)
def test_wrong_numbers_are_found(text, words, source, fault, quoted):
    entry = {'words': words, 'from': source}
    faults = quoted.faults_of(text, [entry], every=True)
    assert (fault in faults[0]) if fault else faults == []


@pytest.mark.parametrize(
    'text, entry, fault',
    [
        ('0.5 and 12', dict(words='0.5', no_file='made up'), None),
        ('0.6 and 12', dict(words='0.5', no_file='made up'), '0 times'),
        ('half of 0.5 and 30 %', dict(words='30 %', no_file='made up'), 'no entry'),
        (
            'a 1.0 b 1.0',
            dict(words='1.0', no_file='x', below='gone'),
            'not on the page',
        ),
        ('3 of 12; `0.5`; [a](b/0.5.md); torch 2.1.2', None, None),
    ],
)
def test_numbers_without_a_file(text, entry, fault, quoted):
    faults = quoted.faults_of(text, [entry] if entry else [], every=True)
    assert (fault in faults[0]) if fault else faults == []


def test_words_are_searched_below_others(quoted):
    entry = {'words': 'is {}', 'from': f'mean % {FILE} seeds * 112', 'below': 'second'}
    assert quoted.faults_of('is 1.0. The second is 46.5', [entry]) == []
    assert quoted.faults_of('is 46.5. The second is 1.0', [entry])


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


def test_sources_are_described(quoted):
    """CONTRIBUTING.md has the syntax of the module."""
    (syntax,) = re.findall(r'^    (\[-\]STATISTIC .*)$', quoted.__doc__, re.M)
    assert syntax in (ROOT / 'CONTRIBUTING.md').read_text('utf-8')
