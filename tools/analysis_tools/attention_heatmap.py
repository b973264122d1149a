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

import argparse

import numpy as np
import torch
from mmengine.utils import ProgressBar

from mmlinattn.analysis import attentions_of, watch
from mmlinattn.utils.cli import Parser
from mmlinattn.visualization import (
    add_arguments,
    feature_extractor,
    input_errors,
    load_subjects,
    new_figure,
    save,
    save_numbers,
)

PANEL = 2.2  # inches


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


def position(text):
    try:
        x, y = map(float, text.split(','))
    except ValueError:
        x = y = -1
    if not (0 <= x <= 1 and 0 <= y <= 1):
        raise argparse.ArgumentTypeError(f'{text!r} is not X,Y with both in 0...1')
    return x, y


def choose_layers(backbone, wanted):
    """Names of the attentions to show, in their order.

    Raises:
        KeyError: If one does not exist.
    """
    names = list(attentions_of(backbone))
    short = [name.rpartition('.attn')[0] or name for name in names]
    if wanted is None:
        return default_layers(names)
    chosen = []
    for layer in wanted:
        if layer.isdecimal() and int(layer) < len(names):
            chosen.append(names[int(layer)])
        elif layer in names or layer in short:
            chosen.append(
                names[names.index(layer) if layer in names else short.index(layer)]
            )
        else:
            raise KeyError(
                f'--layers {layer}: there is no such layer; the model has 0 to '
                f'{len(names) - 1}, which are {", ".join(short)}'
            )
    return sorted(set(chosen), key=names.index)


def default_layers(names):
    last = {name.partition('blocks')[0]: name for name in names}
    if len(last) > 2:  # plain models have blocks, and perhaps class layers
        return list(last.values())
    places = np.linspace(0, len(names) - 1, min(len(names), 6)).round().astype(int)
    return [names[i] for i in places]


def choose_heads(maps, wanted):
    """Maps by head, (h, H, W) to titles and (H, W).

    Raises:
        KeyError: If a head does not exist.
    """
    if wanted == ['mean']:
        return {'mean of heads': maps.mean(0)}
    if wanted == ['all']:
        wanted = [str(i) for i in range(len(maps))]
    wrong = [x for x in wanted if not x.isdecimal() or int(x) >= len(maps)]
    if wrong:
        raise KeyError(
            f'--heads {wrong[0]}: there is no such head; a layer shown has 0 to '
            f"{len(maps) - 1}, 'all' or 'mean'"
        )
    return {f'head {x}': maps[int(x)] for x in wanted}


@torch.no_grad()
def attention_maps(backbone, inputs, layers, points):
    """Weights by layer: (queries, h, H, W), on the map of the keys."""
    maps = {}

    def look(call):
        if call.name in layers:
            rows = call.rows([call.query_at(*point) for point in points])[0]
            maps[call.name] = rows.transpose(0, 1).unflatten(-1, call.key_shape).cpu()

    with watch(backbone, look):
        backbone(inputs)
    return maps


def collect(subject, path, points, args):
    """Rows of the figure: a picture, a query, and maps by layer and head."""
    backbone = feature_extractor(subject.model)
    layers = choose_layers(backbone, args.layers)
    picture = subject.read(path)
    maps = attention_maps(backbone, picture.inputs, layers, points)
    rows = []
    for i, point in enumerate(points):
        panels = []
        for layer in (x for x in layers if x in maps):
            for head, weights in choose_heads(maps[layer][i], args.heads).items():
                name = layer.rpartition('.attn')[0] or layer
                panels.append((name, head, weights.numpy()))
        rows.append((subject.label, point, picture.pixels, panels))
    return rows


def draw(rows):
    columns = 1 + max(len(panels) for *_, panels in rows)
    height, width = rows[0][2].shape[:2]
    figure = new_figure(PANEL * columns, (PANEL * height / width + 0.75) * len(rows))
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for axes in grid.flat:
        axes.axis('off')
    for line, (label, point, pixels, panels) in zip(grid, rows):
        gray = pixels.mean(-1)
        line[0].imshow(pixels)
        line[0].set_title(label, fontsize=8, wrap=True)
        mark(line[0], point, pixels)
        for axes, (layer, head, weights) in zip(line[1:], panels):
            axes.imshow(gray, cmap='gray')
            draw_map(figure, axes, weights, pixels)
            axes.set_title(f'{layer}\n{head}', fontsize=8)
            mark(axes, point, pixels)
    return figure


def draw_map(figure, axes, weights, pixels):
    signed = weights.min() < 0
    bound = np.abs(weights).max() or 1.0
    limits = dict(vmin=-bound, vmax=bound) if signed else dict(vmin=0, vmax=bound)
    image = axes.imshow(
        weights,
        cmap='PuOr' if signed else 'viridis',
        alpha=0.75,
        extent=(-0.5, pixels.shape[1] - 0.5, pixels.shape[0] - 0.5, -0.5),
        interpolation='nearest',
        **limits,
    )
    bar = figure.colorbar(
        image, ax=axes, orientation='horizontal', fraction=0.05, pad=0.02, shrink=0.9
    )
    bar.set_ticks([limits['vmin'], limits['vmax']])
    bar.set_ticklabels([f'{limits["vmin"]:.2g}', f'{limits["vmax"]:.2g}'])
    bar.ax.tick_params(labelsize=7)


def mark(axes, point, pixels):
    x, y = (part * length for part, length in zip(point, pixels.shape[1::-1]))
    for color, size in (('black', 9), ('white', 6)):
        axes.plot(x, y, marker='+', color=color, markersize=size, mew=size / 3)


def describe(subjects, rows):
    return dict(
        models=[subject.describe() for subject in subjects],
        rows=[
            dict(
                label=label,
                query=list(point),
                maps=[
                    dict(layer=layer, heads=head, weights=weights.tolist())
                    for layer, head, weights in panels
                ],
            )
            for label, point, _, panels in rows
        ],
    )


def run(args):
    subjects, files = load_subjects(args)
    for subject in subjects:
        choose_layers(feature_extractor(subject.model), args.layers)
    points = args.at or [(0.5, 0.5)]
    bar = ProgressBar(len(files) * len(subjects))
    figures = []
    for path in files:
        rows = []
        for subject in subjects:
            rows += collect(subject, path, points, args)
            bar.update()
        figures.append((path.stem, draw(rows), describe(subjects, rows)))
    print()
    for stem, figure, numbers in figures:
        out = args.out / f'{stem}_attention.png'
        for written in save(figure, out, args.svg):
            print(written)
        print(save_numbers(numbers, out.with_suffix('.json')))


def main(argv=None):
    args = parse_args(argv)
    with input_errors():
        run(args)


if __name__ == '__main__':
    main()
