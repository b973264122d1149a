"""Parameters and FLOPs of our configs equal the papers'."""

import pytest
from loading import load_module

# Counts don't depend on the stack: test_flops.py runs on both.
pytestmark = pytest.mark.openmmlab

paper = load_module('docs/site/flops.py')


def is_long(title, name):
    """Rows take seconds: of detectors and segmentors, ELFATT's own are enough, of other
    tables, the first and the last row."""
    if title.endswith('segmentors'):
        return not name.endswith(' Swin-T-ELFATT')
    first, *_, last = paper.TABLES[title]['Rows']
    return name not in (first, last)


@pytest.mark.parametrize(
    'title, name',
    [
        pytest.param(
            title,
            name,
            id=f'{title}-{name}',
            marks=pytest.mark.full if is_long(title, name) else (),
        )
        for title, table in paper.TABLES.items()
        for name in table['Rows']
    ],
)
def test_printed(title, name):
    """They agree to the last printed digit."""
    compared = paper.compare(title, name).items()
    wrong = [column for column, (_, _, agrees) in compared if not agrees]
    assert wrong == paper.TABLES[title].get('Differs', {}).get(name, [])


@pytest.mark.full
def test_page():
    written = paper.PAGE.read_text(encoding='utf-8')
    assert written == paper.render(written), 'run python docs/site/flops.py'
    assert all(f'<!-- flops: {title} -->' in written for title in paper.TABLES)
