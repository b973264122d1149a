"""Draw the attention of query positions to all patches of an image.

For each model and query position there is a row: the image as the model sees it, with
the query marked, and the weights that the query gives to all keys in some layers,
averaged over the heads or for the heads of --heads. Each map has its own scale, which
is below it; where weights are negative, as softmax-free attention and AttnScale have
them, the scale is symmetric about 0. Class attention, whose query is the class token,
shows that of the token.

Any attention of mmlinattn will do, at any size: its rows come from gradients, without
an N x N matrix. A folder of images gives one figure for each.

Written to --out: IMAGE_attention.png, and IMAGE_attention.json with the weights drawn.

example:
  python tools/analysis_tools/attention_heatmap.py configs/soft/soft-t_in1k.py \\
      configs/soft/softpp-t_in1k.py --image demo.jpg --at 0.5,0.5 --at 0.2,0.7
"""

import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from mmengine.utils import track_iter_progress

from mmlinattn.analysis import attentions_of, watch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser
from mmlinattn_tools.figures import new_figure
from mmlinattn_tools.looking import add_arguments, load_subjects, position, run

PANEL = 2.2  # inches
LINE = 0.16  # inches of a line of a title
LABEL = 30  # letters that fit above a panel
COLUMNS = 7  # the most panels beside each other
# Where the scale of a map is.
SCALE = dict(orientation='horizontal', fraction=0.05, pad=0.02, shrink=0.9)


class Row(NamedTuple):
    """A query in a picture, and its maps."""

    label: str  # name of the model
    point: tuple  # (x, y) as parts of the sides, 0 to 1
    picture: tuple  # a Picture
    maps: list  # each dict(layer=..., heads=..., weights=(H, W))


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add_arguments(parser, 'attention_heatmap')
    parser.add_argument(
        '--at',
        action='append',
        type=position,
        metavar='X,Y',
        help='a query: its place from the left and from the top as parts of the sides, '
        '0 to 1; may be given several times (default: 0.5,0.5)',
    )
    parser.add_argument(
        '--layers',
        nargs='+',
        metavar='NAME',
        help='layers by name, such as stages.0.blocks.1, or by number from 0 '
        '(default: the last one of each stage, up to six in a plain model)',
    )
    parser.add_argument(
        '--heads',
        nargs='+',
        default=['mean'],
        metavar='HEAD',
        help="numbers of heads from 0, 'all', or 'mean' (default: mean)",
    )
    return parser.parse_args(argv)


def short_name(layer):
    """Name of an attention's block, or of the attention if it is in none."""
    return layer.rpartition('.attn')[0] or layer


def choose_layers(backbone, wanted):
    """Names of the attentions that ``--layers`` names, in their order."""
    names = list(attentions_of(backbone))
    if wanted is None:
        last = {name.partition('blocks')[0]: name for name in names}
        if len(last) > 2:  # plain models have blocks, and perhaps class layers
            return list(last.values())
        places = np.linspace(0, len(names) - 1, min(len(names), 6)).round()
        return [names[int(i)] for i in places]
    known = {}
    for i, name in enumerate(names):
        known.update(dict.fromkeys((str(i), name, short_name(name)), name))
    for layer in wanted:
        if layer not in known:
            raise KeyError(
                f'--layers {layer}: there is no such layer; the model has 0 to '
                f'{len(names) - 1}, which are {", ".join(map(short_name, names))}'
            )
    return sorted({known[layer] for layer in wanted}, key=names.index)


def choose_heads(maps, wanted):
    """Maps (H, W) that ``--heads`` names, by title, of all (h, H, W)."""
    if wanted == ['mean']:
        return {'mean of heads': maps.mean(0)}
    by_title = {f'head {i}': weights for i, weights in enumerate(maps)}
    if wanted == ['all']:
        return by_title
    for head in wanted:
        if f'head {head}' not in by_title:
            raise KeyError(
                f'--heads {head}: there is no such head; a layer shown has 0 to '
                f"{len(maps) - 1}, 'all' or 'mean'"
            )
    return {f'head {x}': by_title[f'head {x}'] for x in wanted}


@torch.no_grad()
def attention_rows(subject, path, points, layers=None, heads=('mean',)):
    """A :class:`Row` for each query, a point (x, y) as parts of an image's sides."""
    picture = subject.read(path)
    names = choose_layers(subject.backbone, layers)
    rows = [Row(subject.label, point, picture, []) for point in points]
    # parts of the padded image
    down, right = np.divide(picture.pixels.shape[:2], picture.inputs.shape[2:])
    places = [(x * right, y * down) for x, y in points]

    def look(call):
        if call.name not in names:
            return
        weights = call.rows([call.query_at(*place) for place in places])[0]
        layer = short_name(call.name)
        if not weights.isfinite().all():
            raise ValueError(f'the attention of {layer} has NaN or infinite weights')
        maps = weights.transpose(0, 1).unflatten(-1, call.key_shape).cpu().numpy()
        for row, by_head in zip(rows, maps):
            for title, drawn in choose_heads(by_head, list(heads)).items():
                row.maps.append(dict(layer=layer, heads=title, weights=drawn))

    with watch(subject.backbone, look):
        subject.backbone(picture.inputs)
    return rows


def numbers_of(subjects, rows):
    """What the JSON file says of a figure."""
    return dict(
        models=[subject.describe() for subject in subjects],
        rows=[dict(label=x.label, query=x.point, maps=x.maps) for x in rows],
    )


def draw_attention(rows):
    """Draws each picture with its query, and then the maps, in lines."""
    columns = min(1 + max(len(row.maps) for row in rows), COLUMNS)
    panels = []
    for row in rows:
        panels += [(row, found) for found in ('picture', *row.maps)]
        panels += [(row, None)] * (-len(panels) % columns)
    lines = len(panels) // columns
    height, width = rows[0].picture.pixels.shape[:2]
    labels = {row.label: textwrap.fill(row.label, LABEL) for row in rows}
    room = 0.55 + LINE * max(2, *(x.count('\n') + 1 for x in labels.values()))
    figure = new_figure(PANEL * columns, (PANEL * height / width + room) * lines)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, (row, found) in zip(grid.flat, panels):
        axes.axis('off')
        if found == 'picture':
            # an unseen scale keeps the picture in line with the maps
            scale = figure.colorbar(axes.imshow(row.picture.pixels), **SCALE)
            scale.ax.set_visible(False)
            axes.set_title(labels[row.label], fontsize=8)
        elif found:
            axes.imshow(row.picture.pixels.mean(-1), cmap='gray')
            draw_map(figure, axes, found['weights'], row.picture.inputs.shape[2:])
            axes.set_title(f'{found["layer"]}\n{found["heads"]}', fontsize=8)
        if found:
            mark_query(axes, row)
    return figure


def draw_map(figure, axes, weights, shape):
    signed = weights.min() < 0
    bound = np.abs(weights).max() or 1.0
    least = -bound if signed else 0.0
    image = axes.imshow(
        weights,
        cmap='PuOr' if signed else 'viridis',
        alpha=0.75,
        extent=(-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5),
        interpolation='nearest',
        vmin=least,
        vmax=bound,
    )
    bar = figure.colorbar(image, ax=axes, ticks=[least, bound], format='%.2g', **SCALE)
    bar.ax.tick_params(labelsize=7)


def mark_query(axes, row):
    """A cross at the query."""
    height, width = row.picture.pixels.shape[:2]
    x, y = row.point[0] * width, row.point[1] * height
    for color, size in (('black', 9), ('white', 6)):
        axes.plot(x, y, marker='+', color=color, markersize=size, mew=size / 3)


def draw(args):
    subjects, files = load_subjects(args)
    points = args.at or [(0.5, 0.5)]
    for path in track_iter_progress(files):
        rows = []
        for subject in subjects:
            rows += attention_rows(subject, path, points, args.layers, args.heads)
        name = f'{path.stem}_attention'
        yield name, draw_attention(rows), numbers_of(subjects, rows)


def main(argv=None):
    run(parse_args(argv), draw)


if __name__ == '__main__':
    main()
