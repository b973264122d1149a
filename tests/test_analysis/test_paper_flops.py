"""Parameters and FLOPs of our configs are those that the papers print."""

import importlib.util
from pathlib import Path

import pytest

# Counts don't depend on the stack: test_flops.py runs on both.
for library in ('mmdet', 'mmseg', 'mmpretrain'):
    pytest.importorskip(library)

spec = importlib.util.spec_from_file_location(
    'paper_flops', Path(__file__).with_name('paper_flops.py')
)
paper = importlib.util.module_from_spec(spec)
spec.loader.exec_module(paper)

# columns of what does not agree; the page says by how much
NOT_REPRODUCED = {
    'Agent-CSWin-T': {paper.PARAMS.title},
    **{
        f'{method}, Swin-T-{attention}': {paper.FLOPS.title}
        for method in ('Mask R-CNN', 'UperNet')
        for attention in ('LOCAL', 'Agent', 'FLatten')
    },
    **{
        name: {paper.NO_SOFTMAX.title}
        for table in (paper.ELFATT, paper.DOWNSTREAM)
        for name in table
        if 'CSWin' in name and 'Agent' in name
    },
    'Transformer': {paper.FLOPS.title},
    'Linformer': {paper.PARAMS.title},
    'Nyströmformer': {paper.FLOPS.title},
    'SOFT-Small': {paper.NO_INVERSE.title},
    'SOFT-Medium': {paper.PARAMS.title, paper.NO_INVERSE.title},
    'SOFT-Large': {paper.PARAMS.title, paper.NO_INVERSE.title},
    'SOFT-Huge': {paper.NO_INVERSE.title},
}


def is_long(title, name):
    """Detectors and segmentors take seconds each: ELFATT's own are enough."""
    return title.endswith('segmentors') and not name.endswith(' Swin-T-ELFATT')


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
        for name, row in table.rows.items()
        if row.printed
    ],
)
def test_printed(title, name):
    """To the last digit."""
    compared = paper.compare(title, name).items()
    wrong = {column for column, (_, _, agrees) in compared if not agrees}
    assert wrong == NOT_REPRODUCED.get(name, set())


@pytest.mark.full
def test_page():
    written = paper.PAGE.read_text(encoding='utf-8')
    assert written == paper.render(), 'run python tests/test_analysis/paper_flops.py'


# Stages of CSWin-T and of SOFT-Tiny at 224 x 224: dims, depth, heads, tokens.
CSWIN = ((64, 2, 2, 56**2), (128, 4, 4, 28**2), (256, 18, 8, 14**2), (512, 1, 16, 7**2))
SOFT = ((64, 1, 2, 56**2), (128, 2, 4, 28**2), (320, 3, 10, 14**2))
SOFT_LAST = 2 * 2 * 512 * (7**2 + 1) ** 2  # softmax attention and a class token


def variant(name, **kwargs):
    """Parameters and MACs by kind of a variant of CSWin-T-ELFATT."""
    num_params, flops = paper.measure('ELFATT: variants', name, **kwargs)
    return num_params, flops.by_kind()


def elfatt_products(block_sizes, share):
    """MACs of ELFATT's products by hand, `share` of the channels being global."""
    softmax = matmul = 0
    for (dims, depth, heads, tokens), block_size in zip(CSWIN, (*block_sizes, None)):
        # ELFATT in all blocks, in every other one, in none
        linear = 0 if block_size is None else depth // (2 if depth == 18 else 1)
        half_heads = heads // 2 if 0 < share < 1 else heads
        softmax += (depth - linear) * 2 * tokens**2 * dims
        if linear:
            softmax += linear * 2 * tokens * block_size * (1 - share) * dims
            matmul += linear * 2 * tokens * (share * dims) ** 2 / half_heads
    return dict(softmax_attention=softmax, matmul=matmul)


@pytest.mark.parametrize(
    'name, block_sizes, share',
    (
        ('blocks of 196', (196, 196, 196), 0.5),
        ('blocks of 49', (49, 49, 49), 0.5),
        ('blocks of 49, 49, 196', (49, 49, 196), 0.5),
        ('no LePE', (196, 196, 196), 0.5),
        ('c₁ : c₂ = 0 : 1', (196, 196, 196), 0),
        ('c₁ : c₂ = 0.25 : 0.75', (196, 196, 196), 0.25),
        ('c₁ : c₂ = 0.75 : 0.25', (196, 196, 196), 0.75),
        ('c₁ : c₂ = 1 : 0', (196, 196, 196), 1),
    ),
)
def test_products_of_elfatt(name, block_sizes, share):
    counted = variant(name)[1]
    by_hand = elfatt_products(block_sizes, share)
    assert {kind: counted[kind] for kind in by_hand} == by_hand


def test_lepe():
    """3 x 3 filters and biases of every channel; the rest does not depend on it."""
    num_params, kinds = variant('blocks of 196')
    fewer_params, without = variant('no LePE')
    assert num_params - fewer_params == sum(
        10 * dims * depth for dims, depth, _, _ in CSWIN
    )
    assert kinds.pop('conv') - without.pop('conv') == sum(
        9 * dims * depth * tokens for dims, depth, _, tokens in CSWIN
    )
    assert kinds == without


def test_variants_have_the_same_parameters():
    names = set(paper.VARIANTS) - {'no LePE'}
    assert len({variant(name)[0] for name in names}) == 1


def test_levels():
    """The list says what the names say, and each level saves something."""
    assert variant('in levels 1-3, alternating in 3') == variant('blocks of 196')
    num_params, flops = paper.measure('ELFATT: classifiers', 'CSWin-T24181-GLOBAL')
    assert variant('in no level') == (num_params, flops.by_kind())
    levels = list(paper.VARIANTS)[-6:]
    softmax = [variant(name)[1]['softmax_attention'] for name in levels]
    assert softmax == sorted(set(softmax), reverse=True)


@pytest.mark.parametrize(
    'name, linear',
    (
        ('blocks of 196', True),
        ('c₁ : c₂ = 0 : 1', True),
        ('c₁ : c₂ = 1 : 0', True),
        ('in no level', False),
    ),
)
def test_growth(name, linear):
    """ELFATT's levels take four times as much for four times the pixels."""
    small, large = (
        paper.measure('ELFATT: variants', name, shape=shape)[1]
        for shape in ((224, 224), (448, 448))
    )
    for stage in ('backbone.stages.0', 'backbone.stages.1'):
        assert (large.total(stage) == 4 * small.total(stage)) == linear


def each_block(products):
    """Sum over SOFT-Tiny's blocks of products of dims, heads and tokens."""
    return sum(
        depth * products(dims, heads, tokens) for dims, depth, heads, tokens in SOFT
    )


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
            'Nyströmformer',
            lambda c, h, n: 4 * n * 49 * c,
            lambda c, h, n: 2 * 49**2 * c + 6 * 4 * 49**3 * h,
        ),
    ),
)
def test_attentions_in_the_soft_pyramid(name, softmax, matmul):
    """Their products by hand."""
    title = "Other attentions in SOFT-Tiny's pyramid"
    kinds = paper.measure(title, name)[1].by_kind()
    assert kinds['softmax_attention'] == each_block(softmax) + SOFT_LAST
    assert kinds['matmul'] == each_block(matmul)
