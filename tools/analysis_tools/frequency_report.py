"""Draw how smooth a model's tokens and attention maps become with depth.

Over the blocks of each model, averaged over the images:
- high-frequency proportion of tokens, ||HC[X]|| / ||DC[X]||;
- cosine similarity of pairs of tokens;
- cosine similarity of pairs of columns of attention maps, averaged over heads;
- gain of the attention at the frequency that it amplifies most, the zero frequency
  aside, over its gain at the zero frequency: below 1, it is a low-pass filter.
The gain is drawn for maps with up to --tokens tokens. Where there are more,
similarities are those of evenly spread tokens, and of the weights of evenly spread
queries, the fewer the larger the map.
Give configs with and without AttnScale or FeatScale to compare them.

If a model has vectors of AttnScale or FeatScale, they get a figure of their own:
AttnScale by layer and head, FeatScale by layer, median and range over the channels.

Written to --out: frequency_report.png, frequency_vectors.png if there are vectors, and
frequency_report.json with the numbers drawn.

example:
  python tools/analysis_tools/frequency_report.py \\
      configs/antioversmoothing/deit-s12_in1k.py \\
      configs/antioversmoothing/deit-s12-attnscale_in1k.py --image photos/
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from mmengine.utils import ProgressBar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser
from mmlinattn_tools.visualization import (
    add_arguments,
    average_reports,
    draw_frequencies,
    feature_extractor,
    input_errors,
    line_style,
    load_subjects,
    measure_frequencies,
    new_figure,
    save,
    save_numbers,
    tidy,
)


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add_arguments(parser, 'frequency_report', 'frequency_report', 'frequency_vectors')
    parser.add_argument(
        '--tokens',
        type=count,
        default=1024,
        metavar='N',
        help='the most tokens that are compared with each other (default: %(default)s)',
    )
    return parser.parse_args(argv)


def count(text):
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number, 2 or more')
    return int(text)


def scaling_vectors(model):
    """Learned vectors by block: AttnScale's omega, FeatScale's s and t."""
    vectors = {}
    for name, parameter in model.named_parameters():
        block, _, last = name.rpartition('.')
        if last == 'omega':
            key, block = 'omega', block.rpartition('.attn')[0]
        elif last in ('dc_scale', 'hc_scale'):
            key, block = last, block.rpartition('.feat_scale')[0]
        else:
            continue
        vectors.setdefault(key, {})[block] = parameter.detach().cpu().tolist()
    return vectors


def draw_vectors(models):
    panels = [
        (model['label'], key, blocks)
        for model in models
        for key, blocks in panels_of(model['vectors']).items()
    ]
    if not panels:
        return None
    figure = new_figure(5.5 * min(len(panels), 2), 3.8 * -(-len(panels) // 2))
    grid = figure.subplots(-(-len(panels) // 2), min(len(panels), 2), squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.axis('off')
    for axes, (label, key, vectors) in zip(grid.flat, panels):
        if key == 'omega':
            draw_omega(figure, axes, label, vectors)
        else:
            draw_feat_scale(axes, label, vectors)
    return figure


def panels_of(vectors):
    panels = {'omega': vectors['omega']} if 'omega' in vectors else {}
    if 'dc_scale' in vectors:
        panels['feat_scale'] = vectors
    return panels


def draw_omega(figure, axes, label, blocks):
    table = np.full((max(map(len, blocks.values())), len(blocks)), np.nan)
    for column, omega in enumerate(blocks.values()):
        table[: len(omega), column] = omega
    bound = np.nanmax(np.abs(table)) or 1.0
    image = axes.imshow(table, cmap='PuOr', vmin=-bound, vmax=bound, aspect='auto')
    axes.set_xticks(range(len(blocks)), range(1, len(blocks) + 1))
    axes.set_yticks(range(len(table)))
    tidy(axes, f'AttnScale of {label}', 'block', 'head')
    axes.grid(False)
    bar = figure.colorbar(image, ax=axes)
    bar.set_label('omega', fontsize=9)
    bar.ax.tick_params(labelsize=8)


def draw_feat_scale(axes, label, vectors):
    names = dict(dc_scale='s, of the mean token', hc_scale='t, of the rest')
    for i, (key, name) in enumerate(names.items()):
        blocks = list(vectors[key].values())
        depth = np.arange(1, len(blocks) + 1)
        style = line_style(i)
        axes.plot(depth, [np.median(x) for x in blocks], label=name, **style)
        low, high = ([edge(x) for x in blocks] for edge in (np.min, np.max))
        axes.fill_between(depth, low, high, color=style['color'], alpha=0.2, lw=0)
    tidy(axes, f'FeatScale of {label}', 'block', 'median and range over channels')
    axes.xaxis.get_major_locator().set_params(integer=True)
    # the ranges leave no room inside
    axes.legend(fontsize=8, loc='upper center', bbox_to_anchor=(0.5, -0.15), ncols=2)


def run(args):
    subjects, files = load_subjects(args)
    bar = ProgressBar(len(files) * len(subjects))
    models = []
    for subject in subjects:
        backbone, reports = feature_extractor(subject.model), []
        for path in files:
            inputs = subject.read(path).inputs
            reports.append(measure_frequencies(backbone, inputs, args.tokens))
            bar.update()
        models.append(
            dict(
                subject.describe(),
                blocks=average_reports(reports),
                vectors=scaling_vectors(backbone),
            )
        )
    print()
    numbers = dict(images=[path.name for path in files], tokens=args.tokens)
    figures = dict(
        frequency_report=draw_frequencies(models),
        frequency_vectors=draw_vectors(models),
    )
    for name, figure in figures.items():
        for written in (
            save(figure, args.out / f'{name}.png', args.svg) if figure else []
        ):
            print(written)
    out = args.out / 'frequency_report.json'
    print(save_numbers(dict(numbers, models=models), out))


def main(argv=None):
    args = parse_args(argv)
    with input_errors():
        run(args)


if __name__ == '__main__':
    main()
