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
from pathlib import Path

from mmengine.utils import ProgressBar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser
from mmlinattn_tools.visualization import (
    add_arguments,
    choose_layers,
    draw_heatmaps,
    feature_extractor,
    heatmap_numbers,
    heatmap_rows,
    input_errors,
    load_subjects,
    position,
    save,
    save_numbers,
)


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add_arguments(parser, 'attention_heatmap', '{}_attention')
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
            rows += heatmap_rows(subject, path, points, args.layers, args.heads)
            bar.update()
        figures.append(
            (path.stem, draw_heatmaps(rows), heatmap_numbers(subjects, rows))
        )
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
