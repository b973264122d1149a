"""Draw predictions of models side by side on the same images.

Each image gets a figure: the image, and the predictions of every model as its library
draws them; a classifier's most likely classes are listed. Boxes and masks with a score
of --score or more are drawn. Detectors, segmentors and classifiers may be mixed.

It goes on in a folder --out that has the predictions of some images, with the same
models and --score; --overwrite begins anew.

It writes IMAGE_predictions, and IMAGE_predictions.json with boxes, scores and classes,
or the share of pixels of each class, or probabilities, to --out.

example:
  python tools/analysis_tools/compare_predictions.py \\
      configs/soft/mask-rcnn_softpp-t_fpn_1x_coco.py \\
      configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py \\
      --checkpoint softpp.pth elfatt.pth --image photos/
"""

import json
import sys
from pathlib import Path
from textwrap import shorten

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import number

# isort: split
import mmcv
import numpy as np
import torch
from mmengine.registry import VISUALIZERS, DefaultScope
from mmengine.utils import track_iter_progress

from mmlinattn_tools.analysis import analysis_parser, output_stem, run
from mmlinattn_tools.figures import picture_grid

SHOWN = 5  # most likely classes of a classifier


def read_pixels(path):
    """An image file unchanged, (H, W, 3), uint8, RGB."""
    return mmcv.imread(str(path), channel_order='rgb')


@torch.no_grad()
def predict(subject, path, score):
    """A model's predictions for an image: numbers, boxes as (x1, y1, x2, y2) in pixels,
    and the image as its library draws it, (H, W, 3), uint8, RGB."""
    pixels = read_pixels(path)
    with DefaultScope.overwrite_default_scope(subject.scope):
        sample = subject.model.test_step(subject.batch(path))[0].cpu()
        if 'pred_sem_seg' in sample:
            labels, counts = np.unique(sample.pred_sem_seg.data, return_counts=True)
            numbers = dict(shares=counts / counts.sum())
            pixels = draw_sample(subject, pixels, sample, 'SegLocalVisualizer')
        elif 'pred_score' in sample:
            values, labels = sample.pred_score.topk(min(SHOWN, len(sample.pred_score)))
            numbers = dict(probabilities=values.tolist())
        elif 'pred_instances' in sample:
            found = sample.pred_instances
            found = found[found.scores >= score]
            labels = found.labels
            numbers = dict(boxes=found.bboxes.tolist(), scores=found.scores.tolist())
            kind, options = 'DetLocalVisualizer', dict(pred_score_thr=score)
            pixels = draw_sample(subject, pixels, sample, kind, **options)
        else:
            raise ValueError(
                f'{subject.config}: {type(subject.model).__name__} is neither a '
                'detector, a segmentor nor a classifier'
            )
    names = [subject.class_name(label) for label in labels.tolist()]
    return dict(classes=names, **numbers), pixels


def draw_sample(subject, pixels, sample, kind, **options):
    """An image with the predictions of a data sample, as the library draws them."""
    drawn = []
    visualizer = VISUALIZERS.build(dict(type=kind, name=kind))
    # mmseg's visualizer does not return the image that it has drawn
    visualizer.add_image = lambda name, image, step=0: drawn.append(image)
    visualizer.dataset_meta = subject.meta
    visualizer.add_datasample('', pixels, sample, draw_gt=False, **options)
    return drawn[0]


def summary(numbers):
    """Numbers of :func:`predict` in words."""
    if 'probabilities' in numbers:
        return '\n'.join(
            f'{shorten(name, 28, placeholder="...")}: {value:.1%}'
            for name, value in zip(numbers['classes'], numbers['probabilities'])
        )
    what = 'classes' if 'shares' in numbers else 'objects'
    return f'{what}: {len(numbers["classes"])}'


def draw_predictions(path, labels, predictions):
    """Draws an image, and beside it the result of :func:`predict` for each label."""
    figure, grid = picture_grid(1, 1 + len(labels), predictions[0][1].shape, 4.0)
    titles = [f'{x}\n{summary(found)}' for x, (found, _) in zip(labels, predictions)]
    pictures = [read_pixels(path), *(pixels for _, pixels in predictions)]
    for axes, title, pixels in zip(grid[0], ['image', *titles], pictures):
        axes.imshow(pixels)
        axes.set_title(title)
    return figure


def is_done(args, subjects, path, name):
    """True if --out has an image's predictions of these models with this score."""
    file = args.out / f'{name}.json'
    if args.overwrite or not file.is_file():
        return False
    wanted = [
        dict(image=path.name, score=args.score),
        *(x.describe() for x in subjects),
    ]
    told = json.loads(file.read_text('utf-8'))
    same = zip(wanted, [told, *told.get('models', ())])
    weights = [Path(x.checkpoint) for x in subjects]
    times = [x.stat().st_mtime for x in weights if x.is_file()]
    return max(times, default=0) <= file.stat().st_mtime and all(
        x.items() <= {key: y.get(key) for key in x}.items() for x, y in same
    )


def draw(args, subjects, files):
    labels = [subject.label for subject in subjects]
    names = {x: f'{output_stem(x, files)}_predictions' for x in files}
    left = [x for x in files if not is_done(args, subjects, x, names[x])]
    if len(left) < len(files):
        print(f'{args.out}: it has {len(files) - len(left)} images, {len(left)} left')
    for path in track_iter_progress(left):
        found = [predict(subject, path, args.score) for subject in subjects]
        models = [x.describe(**numbers) for x, (numbers, _) in zip(subjects, found)]
        numbers = dict(image=path.name, score=args.score, models=models)
        figure = draw_predictions(path, labels, found)
        yield names[path], figure, numbers


def main(argv=None):
    parser = analysis_parser(__doc__, 'compare_predictions')
    text = 'the lowest score of a detection that is drawn (default: %(default)s)'
    score = dict(type=number(float, 0, 1), default=0.3, metavar='S')
    parser.add_argument('--score', help=text, **score)
    run(parser, argv, draw, whole=True)


if __name__ == '__main__':
    main()
