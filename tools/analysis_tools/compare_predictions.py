"""Draw predictions of detectors or segmentors side by side on the same images.

Each image gets a figure: the image, and the predictions of every model as its library
draws them. Boxes and masks with a score of --score or more are drawn. Detectors and
segmentors may be mixed.

Written to --out: IMAGE_predictions.png, and IMAGE_predictions.json with boxes, scores
and classes, or the share of pixels of each class.

example:
  python tools/analysis_tools/compare_predictions.py \\
      configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py \\
      configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \\
      --checkpoint softpp.pth elfatt.pth --image photos/
"""

import argparse
import sys
from pathlib import Path

from mmengine.utils import ProgressBar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser
from mmlinattn_tools.visualization import (
    add_arguments,
    dataset_meta,
    draw_predictions,
    input_errors,
    kind_of,
    load_subjects,
    look_at,
    read_pixels,
    save,
    save_numbers,
)


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add_arguments(parser, 'compare_predictions', '{}_predictions')
    parser.add_argument(
        '--score',
        type=part,
        default=0.3,
        metavar='S',
        help='the lowest score of a detection that is drawn (default: %(default)s)',
    )
    return parser.parse_args(argv)


def part(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f'{text!r} is not a number in 0...1')
    return value


def check(subject):
    """Refuses models that neither detect nor segment.

    Raises:
        ValueError: If it is one.
    """
    if kind_of(subject) not in ('detector', 'segmentor'):
        raise ValueError(
            f'{subject.config}: {type(subject.model).__name__} is neither a detector '
            'nor a segmentor: give a config of mmdet or mmseg'
        )


def run(args):
    subjects, files = load_subjects(args, whole=True)
    for subject in subjects:
        check(subject)
    metas = [dataset_meta(subject) for subject in subjects]
    bar, results = ProgressBar(len(files)), []
    for path in files:
        found = [look_at(*x, path, args.score) for x in zip(subjects, metas)]
        models = [
            dict(subject.describe(), **prediction.numbers)
            for subject, prediction in zip(subjects, found)
        ]
        results.append((path, draw_predictions(read_pixels(path), found), models))
        bar.update()
    print()
    for path, figure, models in results:
        out = args.out / f'{path.stem}_predictions.png'
        for written in save(figure, out, args.svg):
            print(written)
        numbers = dict(image=path.name, score=args.score, models=models)
        print(save_numbers(numbers, out.with_suffix('.json')))


def main(argv=None):
    args = parse_args(argv)
    with input_errors():
        run(args)


if __name__ == '__main__':
    main()
