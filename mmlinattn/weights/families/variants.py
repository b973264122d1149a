"""Families that are Swin and CSWin with an attention of their own.

A paper's attention replaces Swin's or CSWin's in the first blocks of a stage; all else
has their names. So such a family is a table of the attention's rows besides
projections.
"""

import re
from collections.abc import Iterable

from mmlinattn.utils.names import count_blocks

from ..rows import Keys, Row, nested
from .cswin import cswin_rows, our_cswin_layout, read_cswin
from .layout import Family, Layout, our_layout
from .swin import FAMILY as SWIN
from .swin import read_swin, swin_rows

CSWIN = 'cswin'  # style of a layout
STEM = 'stage1_conv_embed.'


def count_own(keys: Keys, stages: Iterable[str], pattern: str) -> tuple[int, ...]:
    """Return blocks of each stage with the family's attention; at least one in the
    first, so that a plain model's is reported as missing."""
    return tuple(
        count_blocks(keys, prefix, pattern, least=int(i == 0))
        for i, prefix in enumerate(stages)
    )


def variant(
    name: str,
    title: str,
    code: str,
    attention: str,
    both: tuple[Row, ...],
    swin: tuple[Row, ...] = (),
    cswin: tuple[Row, ...] = (),
) -> Family:
    """Return a family of Swin and CSWin with another attention.

    Args:
        name, title, code: See :class:`~.layout.Family`.
        attention: Our class of the attention.
        both: Rows of the attention in both models, by which the family is recognized.
            Names are those inside the attention, official and ours.
        swin: Additional rows of its Swin.
        cswin: Additional rows of its CSWin.
    """
    own_swin = tuple(nested('attn.', 'attn.', both + swin))
    own_cswin = tuple(nested('attn.', 'attns.0.', both + cswin))
    first = [next(iter(row.sources().values()))[0] for row in both]
    official = f'(attn|attns\\.0)\\.({"|".join(map(re.escape, first))})$'
    ours = f'attn\\.({"|".join(next(iter(row.sources())) for row in both)})$'

    def read(keys: Keys) -> Layout:
        is_cswin = any(key.startswith(STEM) for key in keys)
        if is_cswin:
            layout = read_cswin(keys)._replace(style=CSWIN)
            blocks = [f'stage{i + 1}.' for i in range(len(layout.depths))]
        else:
            layout = read_swin(keys)
            blocks = [f'layers.{i}.blocks.' for i in range(len(layout.depths))]
        return layout._replace(own=count_own(keys, blocks, official))

    def back(keys: Keys) -> Layout:
        if 'stages.1.embedding.layer.0.weight' in keys:
            layout = our_cswin_layout(keys)._replace(style=CSWIN)
        else:
            layout = our_layout(keys)
        blocks = (f'stages.{i}.blocks.' for i in range(len(layout.depths)))
        return layout._replace(own=count_own(keys, blocks, ours))

    def rows(layout: Layout) -> list[Row]:
        if layout.style == CSWIN:
            return cswin_rows(layout, own_cswin)
        return swin_rows(layout, own_swin)

    return Family(
        name=name,
        title=title,
        code=code,
        marks=tuple(
            rf'(layers\.0\.blocks\.0\.attn|stage1\.0\.attns\.0)\.{re.escape(key)}$'
            for key in first
        ),
        read=read,
        rows=rows,
        attentions=(
            attention,
            'WindowAttention',
            'CrossShapedWindowAttention',
            'SoftmaxAttention',
        ),
        back=back,
        buffers=SWIN.buffers,
    )
