"""Parameters and FLOPs of our configs equal the papers'."""

from pathlib import Path

import pytest
from loading import load_module

# Counts don't depend on the stack: test_flops.py runs on both.
for library in ('mmdet', 'mmseg', 'mmpretrain'):
    pytest.importorskip(library)

paper = load_module(Path(__file__).with_name('paper_flops.py'))


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
    assert written == paper.render(written), 'run tests/test_analysis/paper_flops.py'
    assert all(f'<!-- flops: {title} -->' in written for title in paper.TABLES)


# Stages of SOFT-Tiny at 224 x 224: dims, depth, heads, tokens.
SOFT = ((64, 1, 2, 56**2), (128, 2, 4, 28**2), (320, 3, 10, 14**2))
SOFT_LAST = 2 * 2 * 512 * (7**2 + 1) ** 2  # softmax attention and a class token


@pytest.mark.parametrize(
    'name, softmax, matmul',
    (
        ('Transformer', lambda c, h, n: 2 * n**2 * c, lambda c, h, n: 0),
        # 49 keys
        ('Linformer', lambda c, h, n: 2 * n * 49 * c, lambda c, h, n: 0),
        # 110 random features: of queries, of keys, and two products with them
        ('Performer', lambda c, h, n: 0, lambda c, h, n: 4 * n * 110 * c),
        # 49 landmarks; six steps of four products for the pseudo-inverse
        (
            'Nystromformer',
            lambda c, h, n: 4 * n * 49 * c,
            lambda c, h, n: 2 * 49**2 * c + 6 * 4 * 49**3 * h,
        ),
    ),
)
def test_attentions_in_the_soft_pyramid(name, softmax, matmul):
    """Their products by hand."""

    def each_block(products):
        return sum(
            depth * products(dims, heads, tokens) for dims, depth, heads, tokens in SOFT
        )

    title = "Other attentions in SOFT-Tiny's pyramid"
    kinds = paper.measure(title, name)[1].by_kind()
    assert kinds['softmax_attention'] == each_block(softmax) + SOFT_LAST
    assert kinds['matmul'] == each_block(matmul)
