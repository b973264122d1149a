"""Draw how smooth a model's tokens and attention maps become with depth.

Over the blocks of each model, averaged over the images:
- high-frequency proportion of tokens, ||HC[X]|| / ||DC[X]||;
- cosine similarity of pairs of tokens;
- cosine similarity of pairs of columns of attention maps, averaged over heads;
- gain of the attention at the frequency that it amplifies most, the zero frequency
  aside, over its gain at the zero frequency: below 1, it is a low-pass filter.
The gain is drawn for maps with up to 1024 tokens. Where there are more, similarities
are those of evenly spread tokens, and of the weights of evenly spread queries.
Give configs with and without AttnScale or FeatScale to compare them.

If a model has vectors of AttnScale or FeatScale, they get a figure of their own:
AttnScale by layer and head, FeatScale by layer, median and range over the channels.

Written to --out: frequency_report.png, frequency_vectors if there are vectors, and
frequency_report.json with the numbers drawn.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.utils import track_iter_progress

from mmlinattn.analysis import (
    attention_similarity,
    frequency_gain,
    hc_proportion,
    token_similarity,
    watch,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.figures import HC_PROPORTION, one_legend, plot_range
from mmlinattn_tools.looking import looking_parser, run

MEASURES = {
    'hc_proportion': ('High-frequency proportion', HC_PROPORTION),
    'token_similarity': ('Similarity of tokens', r'mean $|\cos|$'),
    'attention_similarity': ('Similarity of attention columns', r'mean $\cos$'),
    'relative_gain': ('Attention as a filter', 'largest gain / gain at 0'),
}
TOKENS = 1024  # the most that are compared with each other
QUERIES = 32  # the most of a map with more keys than that


@torch.no_grad()
def measure_frequencies(subject, path):
    """``MEASURES`` by block, of one image; no relative gain of maps with more than
    ``TOKENS``."""
    found = {}

    def look(call):
        if call.q.size(1) > 1:  # not of class attention
            name = call.name.rpartition('.attn')[0] or call.name
            found.setdefault(name, {}).update(measure_attention(call))

    def look_at_block(block):
        found.setdefault(block.name, {}).update(
            hc_proportion=hc_proportion(block.tokens).item(),
            token_similarity=token_similarity(spread(block.tokens)).item(),
        )

    with watch(subject.backbone, look, look_at_block):
        subject.backbone(subject.read(path).inputs)
    return found


def measure_attention(call):
    """Measures of one attention's maps, of the first image."""
    most = TOKENS if call.k.size(1) <= TOKENS else QUERIES
    rows = call.rows(call.queries(most))[:1]  # (1, h, queries, keys)
    columns = spread(rows[0].mT).mT.unsqueeze(0)
    found = dict(attention_similarity=attention_similarity(columns).item())
    if rows.size(2) == rows.size(3) > 1:
        # over heads, the mean of the largest gain of a frequency but 0 over that of 0
        gains = frequency_gain(rows)
        ratio = gains[..., 1:].amax(-1) / gains[..., 0]
        found['relative_gain'] = ratio.mean().item()
    return found


def spread(x):
    """Up to ``TOKENS`` evenly spread tokens of (B, N, C)."""
    places = torch.linspace(0, x.size(1) - 1, min(x.size(1), TOKENS))
    return x[:, places.round().long()]


def average(reports):
    """Mean over images, by block and measure."""
    return {
        block: {
            name: float(np.mean([report[block][name] for report in reports]))
            for name in MEASURES
            if all(name in report[block] for report in reports)
        }
        for block in reports[0]
    }


def draw_frequencies(models):
    """Draws the measures over the ``blocks`` of models, each with its ``label``."""
    figure = Figure((9, 6.5), layout='constrained')
    grid = figure.subplots(2, 2)
    for axes, (key, (title, label)) in zip(grid.flat, MEASURES.items()):
        for model in models:
            values = [block.get(key, np.nan) for block in model['blocks'].values()]
            axes.plot(range(1, len(values) + 1), values, label=model['label'])
        axes.set(title=title, xlabel='block', ylabel=label)
        if key == 'relative_gain':
            axes.axhline(1, color='gray', linewidth=0.8)
        axes.set_ylim(0, 1.02 if key.endswith('similarity') else None)
        axes.set_xlim(0.5, max(len(model['blocks']) for model in models) + 0.5)
        axes.xaxis.get_major_locator().set_params(integer=True)
    one_legend(figure, 2)
    return figure


def scaling_vectors(model):
    """Learned vectors by block: AttnScale's omega, FeatScale's s and t."""
    vectors = {}
    for name, parameter in model.named_parameters():
        block, _, key = name.rpartition('.')
        if key in ('omega', 'dc_scale', 'hc_scale'):
            block = block.rpartition('.attn')[0] or block.rpartition('.')[0]
            vectors.setdefault(key, {})[block] = parameter.detach().cpu().numpy()
    return vectors


def draw_vectors(models):
    """Draws AttnScale and FeatScale of models that have them."""
    panels = [
        (draw_panel, model)
        for model in models
        for key, draw_panel in (('omega', draw_omega), ('dc_scale', draw_feat_scale))
        if key in model['vectors']
    ]
    figure = Figure((5.5 * len(panels), 3.8), layout='constrained')
    grid = figure.subplots(1, len(panels), squeeze=False)
    for axes, (draw_panel, model) in zip(grid[0], panels):
        draw_panel(axes, model['label'], model['vectors'])
    if any('dc_scale' in model['vectors'] for model in models):
        one_legend(figure)
    return figure


def draw_omega(axes, label, vectors):
    blocks = vectors['omega'].values()
    table = np.full((max(map(len, blocks)), len(blocks)), np.nan)
    for column, omega in enumerate(blocks):
        table[: len(omega), column] = omega
    bound = np.nanmax(np.abs(table)) or 1.0
    image = axes.imshow(table, cmap='PuOr', vmin=-bound, vmax=bound, aspect='auto')
    axes.set_xticks(range(len(blocks)), range(1, len(blocks) + 1))
    axes.set_yticks(range(len(table)), range(1, len(table) + 1))
    axes.set(title=f'AttnScale of {label}', xlabel='block', ylabel='head')
    axes.grid(False)
    axes.figure.colorbar(image, ax=axes, label=r'$\omega$')


def draw_feat_scale(axes, label, vectors):
    names = dict(dc_scale='$s$, of the mean token', hc_scale='$t$, of the rest')
    for key, name in names.items():
        blocks = list(vectors[key].values())
        plot_range(axes, range(1, len(blocks) + 1), blocks, name, np.median)
    axes.set(title=f'FeatScale of {label}', xlabel='block')
    axes.set_ylabel('median and range over channels')
    axes.xaxis.get_major_locator().set_params(integer=True)


def draw(args, subjects, files):
    reports = [
        [measure_frequencies(subject, path) for subject in subjects]
        for path in track_iter_progress(files)
    ]
    models = [
        x.describe(blocks=average(of_images), vectors=scaling_vectors(x.backbone))
        for x, of_images in zip(subjects, zip(*reports))
    ]
    numbers = dict(images=[path.name for path in files], models=models)
    yield 'frequency_report', draw_frequencies(models), numbers
    if any(model['vectors'] for model in models):
        yield 'frequency_vectors', draw_vectors(models), None


def main(argv=None):
    run(looking_parser(__doc__, 'frequency_report'), argv, draw)


if __name__ == '__main__':
    main()
