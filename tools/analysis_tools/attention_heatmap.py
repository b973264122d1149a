"""Draw the attention of query positions to all patches of an image.

Each model and query position has a row: the image as the model sees it, with the query
marked, and the weights that the query gives to all keys in some layers, averaged over
the heads or, with --heads all, by head. Each map has its own scale below it; if weights
are negative, as in softmax-free attention and AttnScale, the scale is symmetric about
0. Class attention has one query, the class token, and shows its weights.

Any attention of mmlinattn will do, at any size: its rows come from gradients, without
an N x N matrix. A folder of images gives one figure for each.

It writes IMAGE_attention.png, and IMAGE_attention.json with the weights, to --out.
"""

import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import number

# isort: split
import numpy as np
import torch
from mmengine.utils import track_iter_progress

from mmlinattn.analysis import attentions_of, watch
from mmlinattn_tools.analysis import analysis_parser, output_stem, run
from mmlinattn_tools.figures import layer_title, picture_grid

# Place of a map's scale.
SCALE = dict(orientation='horizontal', fraction=0.05, pad=0.02, shrink=0.9)


def position(text):
    """Type of an argument X,Y: a place in an image, in fractions of its sides."""
    x, y = map(number(float, 0, 1), text.split(','))
    return x, y


def choose_layers(backbone, wanted):
    """The attentions to draw, by name, and the names of their blocks."""
    names = {x: x.rpartition('.attn')[0] or x for x in attentions_of(backbone)}
    if wanted is None:
        last = {x.partition('blocks')[0]: x for x in names}
        if len(last) > 2:  # plain models have blocks, and perhaps class layers
            return {x: names[x] for x in last.values()}
        places = np.linspace(0, len(names) - 1, min(len(names), 6)).round()
        return dict(list(names.items())[int(i)] for i in places)
    for layer in wanted:
        if layer not in names.values():
            raise KeyError(
                f'--layers {layer}: there is no such layer; the model has '
                f'{", ".join(names.values())}'
            )
    return {x: layer for x, layer in names.items() if layer in wanted}


@torch.no_grad()
def attention_rows(subject, path, points, layers=None, heads='mean'):
    """The picture and the maps of weights (H, W) of each query, (x, y) in fractions of
    an image's sides."""
    picture = subject.read(path)
    names = choose_layers(subject.backbone, layers)
    rows = [
        dict(label=subject.label, query=point, picture=picture, maps=[])
        for point in points
    ]
    # fractions of the padded image
    down, right = np.divide(picture.pixels.shape[:2], picture.inputs.shape[2:])

    def look(call):
        if call.name not in names:
            return
        weights = call.rows([call.query_at(x * right, y * down) for x, y in points])[0]
        maps = weights.transpose(0, 1).unflatten(-1, call.key_shape).cpu().numpy()
        for row, by_head in zip(rows, maps):
            row['maps'] += titled_maps(names[call.name], by_head, heads)

    with watch(subject.backbone, look):
        subject.backbone(picture.inputs)
    return rows


def titled_maps(layer, by_head, heads):
    """Maps (h, ...) of a layer as they are drawn, by head or their mean."""
    titled = {f'heads.{i}': x for i, x in enumerate(by_head)}
    if heads == 'mean':
        titled = {'mean of heads': by_head.mean(0)}
    return [dict(layer=layer, heads=x, weights=y) for x, y in titled.items()]


def draw_weights(axes, found, extent):
    """Draws weights on a picture, with their scale and title."""
    most = np.abs(found['weights']).max() or 1.0
    least, cmap = (-most, 'PuOr') if found['weights'].min() < 0 else (0, 'viridis')
    look = dict(cmap=cmap, vmin=least, vmax=most, alpha=0.75)
    image = axes.imshow(
        found['weights'], extent=extent, interpolation='nearest', **look
    )
    axes.figure.colorbar(image, ticks=[least, most], format='%.2g', **SCALE)
    axes.set_title('\n'.join(layer_title(found[x]) for x in ('layer', 'heads')))


def draw_attention(rows):
    """Draws a line for each query: the picture, and the maps."""
    columns = 1 + max(len(row['maps']) for row in rows)
    shape = rows[0]['picture'].pixels.shape
    figure, grid = picture_grid(len(rows), columns, shape, 2.2)
    for line, row in zip(grid, rows):
        pixels, (height, width) = row['picture'].pixels, row['picture'].inputs.shape[2:]
        # an invisible scale aligns the picture with the maps
        scale = figure.colorbar(line[0].imshow(pixels), **SCALE)
        scale.ax.set_visible(False)
        line[0].set_title(textwrap.fill(row['label'], 30))
        for axes, found in zip(line[1:], row['maps']):
            axes.imshow(pixels.mean(-1), cmap='gray')
            extent = (-0.5, width - 0.5, height - 0.5, -0.5)
            draw_weights(axes, found, extent)
        x, y = row['query'][0] * pixels.shape[1], row['query'][1] * pixels.shape[0]
        for axes in line[: 1 + len(row['maps'])]:
            for color, size in (('black', 9), ('white', 6)):
                axes.plot(x, y, '+', color=color, markersize=size, mew=size / 3)
    return figure


def draw(args, subjects, files):
    for path in track_iter_progress(files):
        points = args.at or [(0.5, 0.5)]
        rows = []
        for subject in subjects:
            rows += attention_rows(subject, path, points, args.layers, args.heads)
        figure = draw_attention(rows)
        for row in rows:
            row.pop('picture', None)
        models = [subject.describe() for subject in subjects]
        name = f'{output_stem(path, files)}_attention'
        yield name, figure, dict(models=models, rows=rows)


def main(argv=None):
    parser = analysis_parser(__doc__, 'attention_heatmap')
    add = parser.add_argument
    text = (
        'a query: its distance from the left and from the top in fractions of the '
        'sides, 0 to 1; may be given several times (default: 0.5,0.5)'
    )
    add('--at', action='append', type=position, metavar='X,Y', help=text)
    text = (
        'layers by name, such as stages.0.blocks.1 (default: the last one of each '
        'stage, up to six in a plain model)'
    )
    add('--layers', nargs='+', metavar='NAME', help=text)
    text = 'one map for all heads, or one for each (default: %(default)s)'
    add('--heads', choices=['mean', 'all'], default='mean', help=text)
    run(parser, argv, draw)


if __name__ == '__main__':
    main()
