"""Draw how smooth a model's tokens and attention maps become with depth.

Over the blocks of each model, averaged over the images:
- high-frequency proportion of tokens, ||HC[X]|| / ||X||, or with --over-dc
  ||HC[X]|| / ||DC[X]||;
- cosine similarity of pairs of tokens;
- cosine similarity of pairs of columns of attention maps, averaged over heads;
- attention as a filter: the largest response of a frequency band, the zero frequency
  aside, over that of the zero frequency. The response is the norm of the band's row in
  the spectrum, what leaves with the frequency; with --columns that of its column, what
  becomes of the frequency.
The filter is drawn for maps with up to 1024 tokens. Where there are more, similarities
are those of evenly spread tokens, and of the weights of evenly spread queries.
Give configs with and without AttnScale or FeatScale to compare them.

If a model has vectors of AttnScale or FeatScale, they get a figure of their own:
AttnScale by layer and head, FeatScale by layer, median and range over the channels.

Written to --out: frequency_report.png, frequency_vectors.png if there are vectors, and
a JSON file with the numbers drawn.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.figures import HC_OVER_DC, HC_PROPORTION, one_legend, plot_range

# isort: split
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
from mmlinattn_tools.analysis import analysis_parser, run

MEASURES = {
    'hc_proportion': ('High-frequency proportion', HC_PROPORTION),
    'token_similarity': ('Similarity of tokens', r'mean $|\cos|$'),
    'attention_similarity': ('Similarity of attention columns', r'mean $\cos$'),
    'relative_gain': ('Attention as a filter', 'largest gain / gain at 0'),
}
TOKENS = 1024  # the most that are compared with each other
QUERIES = 32  # the most of a map with more keys than that


@torch.no_grad()
def measure_frequencies(subject, path, over_dc=False, columns=False):
    """``MEASURES`` by block, of one image; no relative gain of maps with more than
    ``TOKENS``."""
    found = {}

    def look(call):
        if call.q.size(1) > 1:  # not of class attention
            name = call.name.rpartition('.attn')[0] or call.name
            found.setdefault(name, {}).update(measure_attention(call, columns))

    def look_at_block(block):
        found.setdefault(block.name, {}).update(
            hc_proportion=hc_proportion(block.tokens, over_dc).item(),
            token_similarity=token_similarity(spread(block.tokens)).item(),
        )

    with watch(subject.backbone, look, look_at_block):
        subject.backbone(subject.read(path).inputs)
    return found


def measure_attention(call, columns):
    """Measures of one attention's maps, of the first image."""
    most = TOKENS if call.k.size(1) <= TOKENS else QUERIES
    rows = call.rows(call.queries(most))[:1]  # (1, h, queries, keys)
    of_keys = spread(rows[0].mT).mT.unsqueeze(0)
    found = dict(attention_similarity=attention_similarity(of_keys).item())
    if rows.size(2) == rows.size(3) > 1:
        # over heads, the mean of the largest gain of a frequency but 0 over that of 0
        gains = frequency_gain(rows, columns)
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
            for name in dict.fromkeys(x for report in reports for x in report[block])
            if all(name in report[block] for report in reports)
        }
        for block in reports[0]
    }


def draw_frequencies(models, over_dc=False):
    """Draws the measures over the ``blocks`` of models, each with its ``label``."""
    figure = Figure((9, 6.5), layout='constrained')
    grid = figure.subplots(2, 2)
    for axes, (key, (title, label)) in zip(grid.flat, MEASURES.items()):
        for model in models:
            draw_blocks(axes, model, key, label=model['label'])
        axes.set(title=title, xlabel='block', ylabel=label)
        if key == 'hc_proportion' and over_dc:
            axes.set_ylabel(HC_OVER_DC)
        if key == 'relative_gain':
            axes.axhline(1, color='gray', linewidth=0.8)
        axes.set_ylim(0, 1.02 if key.endswith('similarity') else None)
    one_legend(figure, 2)
    return figure


def draw_blocks(axes, model, key, **look):
    """Draws one number of each of a model's blocks, if there is any."""
    values = [block.get(key, np.nan) for block in model['blocks'].values()]
    if not np.isnan(values).all():
        axes.plot(range(1, len(values) + 1), values, **look)
    axes.set_xlim(0.5, max(axes.get_xlim()[1], len(values) + 0.5))
    axes.xaxis.get_major_locator().set_params(integer=True)


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
    options = args.over_dc, args.columns
    reports = [
        [measure_frequencies(subject, path, *options) for subject in subjects]
        for path in track_iter_progress(files)
    ]
    models = [
        subject.describe(
            blocks=average(by_image), vectors=scaling_vectors(subject.backbone)
        )
        for subject, by_image in zip(subjects, zip(*reports))
    ]
    figure = draw_frequencies(models, args.over_dc)
    numbers = dict(images=[path.name for path in files], models=models)
    yield 'frequency_report', figure, numbers
    if any(model['vectors'] for model in models):
        yield 'frequency_vectors', draw_vectors(models), None


def main(argv=None):
    parser = analysis_parser(__doc__, 'frequency_report')
    add = parser.add_argument
    text = 'the proportion over the norm of the mean token, not over that of all'
    add('--over-dc', action='store_true', help=text)
    text = 'the filter by columns of the spectrum, not by rows'
    add('--columns', action='store_true', help=text)
    run(parser, argv, draw)


if __name__ == '__main__':
    main()
