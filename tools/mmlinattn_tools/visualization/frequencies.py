"""How smooth tokens and attention maps become with depth.

Legend: B batch, h heads, N tokens, Q queries, M keys, C channels.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from mmlinattn.analysis import (
    AttentionCall,
    BlockCall,
    attention_similarity,
    frequency_gain,
    hc_proportion,
    token_similarity,
    watch,
)

from .figures import line_style, new_figure, tidy
from .heatmaps import short_name

MEASURES = {
    'hc_proportion': ('High-frequency proportion', '||HC[X]|| / ||DC[X]||'),
    'token_similarity': ('Similarity of tokens', 'mean |cosine|'),
    'attention_similarity': ('Similarity of attention columns', 'mean cosine'),
    'relative_gain': ('Attention as a filter', 'largest gain / gain at 0'),
}

# Of maps with more keys than the limit: the most weights and queries of a head.
ENTRIES = 2**20
QUERIES = 64

Report = dict[str, dict[str, float]]


@torch.no_grad()
def measure_frequencies(model: nn.Module, inputs: Tensor, limit: int = 1024) -> Report:
    """Measures after each block, of one image.

    Args:
        model (nn.Module): In eval mode, with attentions of mmlinattn.
        inputs (Tensor): (1, 3, height, width).
        limit (int): The most tokens that are compared with each other. The relative
            gain is that of maps with up to so many; for others it is NaN.

    Returns:
        dict[str, dict[str, float]]: By name of the block, then of the measure, see
        ``MEASURES``.

    Raises:
        ValueError: If the model has no attention of mmlinattn.
    """
    found: Report = {}

    def look(call: AttentionCall) -> None:
        if call.q.size(1) > 1:  # not of class attention
            found.setdefault(short_name(call.name), {}).update(
                _measure_attention(call, limit)
            )

    def look_at_block(block: BlockCall) -> None:
        tokens = block.tokens
        found.setdefault(block.name, {}).update(
            hc_proportion=hc_proportion(tokens).item(),
            token_similarity=token_similarity(_spread(tokens, limit)).item(),
        )

    with watch(model, look, look_at_block):
        model(inputs)
    return found


def _measure_attention(call: AttentionCall, limit: int) -> dict[str, float]:
    """Measures of one attention's maps, of the first image."""
    num_keys = call.k.size(1)
    most = limit
    if num_keys > limit:
        most = min(max(ENTRIES // num_keys, 16), QUERIES, limit)
    rows = call.rows(call.queries(most))  # (B, h, Q, M)
    whole = rows.size(2) == rows.size(3) > 1
    return dict(
        attention_similarity=attention_similarity(
            _spread(rows[0].mT, limit).mT.unsqueeze(0)
        ).item(),
        relative_gain=_relative_gain(rows) if whole else float('nan'),
    )


def _spread(x: Tensor, limit: int) -> Tensor:
    """Up to a limit of evenly spread tokens of (B, N, C)."""
    places = torch.linspace(0, x.size(1) - 1, min(x.size(1), limit))
    return x[:, places.round().long()]


def _relative_gain(attn: Tensor) -> float:
    """Over heads, the mean of the largest gain of a frequency but 0 over that of 0."""
    gain = frequency_gain(attn)[0]
    return (gain[:, 1:].amax(-1) / gain[:, 0]).mean().item()


def average_reports(reports: Sequence[Report]) -> Report:
    """Mean over images, by block and measure."""
    return {
        block: {
            name: float(np.mean([report[block][name] for report in reports]))
            for name in MEASURES
            if name in reports[0][block]
        }
        for block in reports[0]
    }


def draw_frequencies(models: Sequence[dict[str, Any]]) -> Figure:
    """Draws the measures over the blocks.

    Args:
        models (list[dict]): Each with ``label``, and ``blocks``, a report.
    """
    figure = new_figure(9, 6.5)
    for axes, (key, (title, label)) in zip(
        figure.subplots(2, 2).flat, MEASURES.items()
    ):
        for i, model in enumerate(models):
            values = [block.get(key, np.nan) for block in model['blocks'].values()]
            depth = np.arange(1, len(values) + 1)
            axes.plot(depth, values, label=model['label'], **line_style(i))
        tidy(axes, title, 'block', label)
        axes.set_xlim(0.5, max(len(model['blocks']) for model in models) + 0.5)
        if not any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
            note = 'every map has more tokens than are compared'
            axes.text(0.5, 0.5, note, transform=axes.transAxes, ha='center', fontsize=9)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if key == 'relative_gain':
            axes.axhline(1, color='gray', linewidth=0.8)
        if key.endswith('similarity'):
            axes.set_ylim(-0.02, 1.02)
        else:
            axes.set_ylim(0, max(1.05 * axes.dataLim.ymax, 1e-6))
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside lower center', ncols=2, fontsize=9)
    return figure
