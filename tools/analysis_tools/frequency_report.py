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

With --bounds, a figure shows what factor of the high frequencies is left by attention
(of its input), by attention and its shortcut (of the block's tokens), and by the FFN
(of its input), each below its bound of the Anti-Oversmoothing paper: by the matrices,
and for softmax by its logits. Bounds are drawn for attentions whose heads have one
matrix of up to 1024 tokens, without padding, and for FFNs without convolution. What
else a branch adds to the attention's product, such as LePE, counts as measured.

Written to --out: frequency_report.png, frequency_vectors if there are vectors,
frequency_bounds with --bounds, and JSON files with the numbers drawn.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.figures import (
    HC_OVER_DC,
    HC_PROPORTION,
    one_legend,
    plot_range,
    styles,
)

# isort: split
import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.utils import track_iter_progress

from mmlinattn.analysis import (
    attention_bound,
    attention_similarity,
    blocks_of,
    ffn_bound,
    frequency_gain,
    hc_proportion,
    high_frequencies,
    mean_leakage,
    smoothing_rate,
    softmax_bound,
    spectral_norm,
    token_similarity,
    watch,
)
from mmlinattn_tools.looking import looking_parser, run

MEASURES = {
    'hc_proportion': ('High-frequency proportion', HC_PROPORTION),
    'token_similarity': ('Similarity of tokens', r'mean $|\cos|$'),
    'attention_similarity': ('Similarity of attention columns', r'mean $\cos$'),
    'relative_gain': ('Attention as a filter', 'largest gain / gain at 0'),
}
# By the factor that is measured: a title, and the propositions of its bound.
FACTORS = {
    'attention': 'Heads (Proposition 4)',
    'shortcut': 'Heads and shortcut (Proposition 5)',
    'ffn': 'FFN (Proposition 6)',
}
# By the end of its key, how a factor or its bound is named and drawn.
BOUNDS = {
    '': ('', '-'),
    '_bound': (', bound', '--'),
    '_logits': (', bound by logits', ':'),
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


@torch.no_grad()
def measure_bounds(subject, path):
    """``FACTORS`` by block, of one image, and their bounds."""
    found, seen, heads = {}, {}, {}

    def keep(module, args, out):
        seen[module] = args[0][0].double(), out[0].double()

    def look(call):
        queries, attn = call.q.size(1), call.module
        whole = call.map_shape == call.hw_shape and attn.one_matrix_per_head
        if whole and max(queries, call.k.size(1)) <= TOKENS:
            maps = call.probe.rows(range(queries))
            heads[attn] = [x[0].double() for x in (maps, call.v, call.probe.out)]

    def look_at_block(call):
        factors = measure_block(call.module, seen, heads.pop(call.module.attn, None))
        found[call.name] = {key: float(x) for key, x in factors.items()}

    with ExitStack() as stack:
        for block in blocks_of(subject.backbone).values():
            for module in (block, block.norm1, block.attn, block.norm2):
                stack.callback(module.register_forward_hook(keep).remove)
        stack.enter_context(watch(subject.backbone, look, look_at_block))
        subject.backbone(subject.read(path).inputs)
    return found


def measure_block(block, seen, heads):
    """``FACTORS`` of a block and their bounds, of what its modules took and gave, and
    the attention matrices, values and product of its heads, or None."""
    (x, out), (taken, normed) = seen[block], seen[block.norm1]
    middle, fed = seen[block.norm2]
    if block.pre_norm:
        x, attended, ffn = taken, middle - taken, out - middle
    else:
        attended, fed, ffn = taken - x, normed, middle - normed
    into = size(seen[block.attn][0])
    found = dict(
        attention=size(attended) / into,
        shortcut=size(x + attended) / size(x),
        ffn=size(ffn) / size(fed),
    )
    if heads:
        for key, bound in bounds_of_attention(block, into, attended, *heads).items():
            found[f'attention{key}'] = bound / into
            found[f'shortcut{key}'] = 1 + bound / size(x)
    if block.ffn_conv is None:
        (first, act, _), second = block.ffn.layers[:2]
        grid = torch.linspace(-10, 10, 20001, dtype=torch.float64)
        slope = (act(grid).diff() / grid.diff()).abs().max()
        second = scaled(second.weight, block.scale2)
        found['ffn_bound'] = ffn_bound(first.weight.double(), second, slope)
    return found


def bounds_of_attention(block, into, attended, maps, values, product):
    """Bounds on the high frequencies that attention adds, by key of ``BOUNDS``."""
    attn = block.attn
    dims = list(attn.dims_of_heads)
    weight = scaled(attn.proj.weight, block.scale1, block.feat_scale)
    parts = values.split(dims, -1)
    high = torch.stack([size(part) for part in parts])
    if hasattr(attn, 'v'):
        high = into * norms_of_heads(attn.v.weight, dims)
    elif hasattr(attn, 'qkv'):  # values, and perhaps a gate, come last
        rows = attn.qkv.weight.split(attn.embed_dims)[-1 - attn.gated]
        high = into * norms_of_heads(rows, dims)
    mean = torch.stack([part.mean(0).norm() * len(part) ** 0.5 for part in parts])
    leaked, rates = mean_leakage(maps) * mean, dict(_bound=smoothing_rate(maps))
    if maps.min() >= 0 and maps.sum(-1).sub(1).abs().max() < 1e-4:
        rates['_logits'] = softmax_bound(maps)
    rest = size(attended - product @ weight.mT)
    return {
        key: attention_bound(rate * high + leaked, weight, dims) + rest
        for key, rate in rates.items()
    }


def size(x):
    """Norm of the high frequencies of tokens (N, C)."""
    return high_frequencies(x).norm()


def norms_of_heads(weight, dims):
    """Norms of a weight (C, C) by heads of the channels that it gives."""
    return torch.stack([spectral_norm(x) for x in weight.double().split(dims)])


def scaled(weight, *layers):
    """A weight (C, C), with the factors that the layers after it give to channels."""
    weight = weight.double()
    for layer in layers:
        factor = getattr(layer, 'weight', None)  # LayerScale
        if factor is None and hasattr(layer, 'hc_scale'):
            factor = 1 + layer.hc_scale
        weight = weight if factor is None else factor.double()[:, None] * weight
    return weight


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


def draw_bounds(models):
    """Draws ``FACTORS`` over the blocks of models, and their bounds."""
    figure = Figure((12, 4), layout='constrained')
    for axes, (key, title) in zip(figure.subplots(1, 3), FACTORS.items()):
        for model, look in zip(models, styles(x['label'] for x in models).values()):
            for end, (name, style) in BOUNDS.items():
                look.update(label=f'{model["label"]}{name}', linestyle=style)
                draw_blocks(axes, model, f'{key}{end}', **look)
        axes.set(title=title, xlabel='block', yscale='log')
    figure.axes[0].set_ylabel(r'factor of $\|\mathrm{HC}[X]\|$')
    one_legend(figure, 3)
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
    def measured(measure, *options):
        reports = [
            [measure(subject, path, *options) for subject in subjects]
            for path in track_iter_progress(files)
        ]
        return [
            x.describe(blocks=average(of_images))
            for x, of_images in zip(subjects, zip(*reports))
        ]

    images = dict(images=[path.name for path in files])
    models = measured(measure_frequencies, args.over_dc, args.columns)
    for model, subject in zip(models, subjects):
        model['vectors'] = scaling_vectors(subject.backbone)
    figure = draw_frequencies(models, args.over_dc)
    yield 'frequency_report', figure, dict(images, models=models)
    if any(model['vectors'] for model in models):
        yield 'frequency_vectors', draw_vectors(models), None
    if args.bounds:
        models = measured(measure_bounds)
        yield 'frequency_bounds', draw_bounds(models), dict(images, models=models)


def main(argv=None):
    parser = looking_parser(__doc__, 'frequency_report')
    add = parser.add_argument
    text = 'also draw what blocks leave of high frequencies, below its bounds'
    add('--bounds', action='store_true', help=text)
    text = 'the proportion over the norm of the mean token, not over that of all'
    add('--over-dc', action='store_true', help=text)
    text = 'the filter by columns of the spectrum, not by rows'
    add('--columns', action='store_true', help=text)
    run(parser, argv, draw)


if __name__ == '__main__':
    main()
