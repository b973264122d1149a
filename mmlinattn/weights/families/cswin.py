"""CSWin: classifiers and the backbone of segmentors."""

from mmlinattn.utils.names import count_blocks

from ..rows import NORM, Keys, Row, modules, nested
from .layout import BLOCK, Family, Layout, find_norms, our_layout

CSWIN_STEM = modules({'layer.0': '0', 'layer.1': '2'})
CSWIN_MERGING = modules({'layer.0': 'conv', 'layer.1': 'norm'})
CSWIN_BLOCK = modules({**BLOCK, 'attn.qkv': 'qkv', 'attn.proj': 'proj'})
# LePE of upright stripes, the first half of the channels, and of flat ones
CSWIN_STRIPES = modules(
    {'attn.lepe.0': 'attns.0.get_v', 'attn.lepe.1': 'attns.1.get_v'}
)
# the last stage attends to the whole map
CSWIN_WHOLE_MAP = modules({'attn.lepe': 'attns.0.get_v'})


def read_cswin(keys: Keys) -> Layout:
    """Return the layout of an official CSWin.

    Segmentors norm every map, norm1 to norm4; classifiers the last one, norm.
    """
    depths = tuple(count_blocks(keys, f'stage{i + 1}.') for i in range(4))
    return Layout('official', depths, *find_norms(keys, 4, first=1))


def our_cswin_layout(keys: Keys) -> Layout:
    """Return the layout of our CSWin in the official repository."""
    return our_layout(keys, first_norm=1)


def cswin_rows(layout: Layout, own: tuple[Row, ...] = ()) -> list[Row]:
    """Return rows of CSWin, whose official stages count from 1.

    ``own`` are rows of an attention that replaces CSWin's, besides projections.
    """
    rows = [Row('norm3', layout.last_norm, NORM)]
    rows += [Row(f'norm{i}', f'norm{i + 1}', NORM) for i in layout.norms]
    for i, depth in enumerate(layout.depths):
        rows += nested(
            f'stages.{i}.embedding.',
            f'merge{i}.' if i else 'stage1_conv_embed.',
            CSWIN_MERGING if i else CSWIN_STEM,
        )
        lepe = CSWIN_WHOLE_MAP if i == 3 else CSWIN_STRIPES
        for j in range(depth):
            block = CSWIN_BLOCK + (own if layout.has_own(i, j) else lepe)
            rows += nested(f'stages.{i}.blocks.{j}.', f'stage{i + 1}.{j}.', block)
    return rows


FAMILY = Family(
    name='cswin',
    title='CSWin',
    code='microsoft/CSWin-Transformer',
    marks=(r'stage1_conv_embed\.',),
    read=read_cswin,
    rows=cswin_rows,
    attentions=('CrossShapedWindowAttention', 'SoftmaxAttention'),
    place='state_dict_ema',
    back=our_cswin_layout,
)
